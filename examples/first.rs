//! A first look: enqueue, lease, acknowledge.
use trunkline::{Db, Json, Settings, Wait};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Db::connect(&std::env::var("DATABASE_URL")?).await?;
    db.migrate().await?;
    db.create_queue("first", &Settings::new("jsonb")).await?;
    let queue = db.queue::<Json<Vec<i32>>>("first").await?;
    let ids: Vec<i64> = queue.enqueue_many(&(0..3000).map(|i| Json(vec![i])).collect::<Vec<_>>()).await?;
    assert_eq!(ids.len(), 3000);
    let id = queue.enqueue(Json(vec![7])).await?;
    println!("{id} {:?}", queue.stats().await?);
    let mut consumer = queue.consumer(Wait::Notify);
    let messages = consumer.at_least_once(10).await?;
    println!("{:?}", messages.iter().map(|m| m.id).collect::<Vec<_>>());
    queue.ack(&messages[..5]).await?;
    queue.retry(&messages[5..6], std::time::Duration::from_secs(1), "x").await?;
    println!("{:?}", queue.ack(&messages[5..]).await.unwrap_err().to_string());
    println!("{:?}", queue.stats().await?);
    let n = consumer.at_most_once(1000).await?.len();
    println!("{n} {:?}", queue.peek(2).await?);
    let sum = consumer.exactly_once(5, |tx, m| Box::pin(async move { tx.execute("select 1", &[]).await?; Ok::<_, tokio_postgres::Error>(m.len()) })).await?;
    println!("{sum}");
    let t = std::time::Instant::now();
    let n = consumer.at_most_once(1_000_000_000).await?.len();
    println!("{n} in {:?}", t.elapsed());
    let q2 = queue.clone();
    let h = tokio::spawn(async move { let mut c = q2.consumer(Wait::Adaptive); let m = c.at_least_once(1).await.unwrap(); q2.ack(&m).await.unwrap(); m[0].enqueued_at.elapsed().unwrap() });
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    queue.enqueue(Json(vec![8])).await?;
    println!("woken after {:?}", h.await?);
    println!("{:?}", queue.stats().await?);
    db.drop_queue("first").await?;
    println!("{}", queue.enqueue(Json(vec![8])).await.unwrap_err());
    println!("{}", queue.at_most_once(1).await.unwrap_err());
    Ok(())
}
