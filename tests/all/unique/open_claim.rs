//! A transaction has claimed a key, and stays open.

use tokio::time::timeout;
use trunkline::{Draft, Settings};

use crate::fixture::{Place, SOON, connect, eventually, one_waits, place};

#[tokio::test(flavor = "multi_thread")]
async fn open_claim_holds_up_no_enqueue_with_another_key_or_of_another_queue() {
    let Place { queue, url, sql, db } = place::<i64>(Settings::new("int8").uniqueness(true)).await;
    db.create_queue("plain", &Settings::new("int8")).await.expect("created");
    let plain = db.queue::<i64>("plain").await.expect("opened");
    let mut stranger = connect(&url).await;
    let transaction = stranger.transaction().await.expect("begun");
    transaction.execute("select trunkline.enqueue_unique('q', 0::int8, 'claimed')", &[]).await.expect("claimed");
    let first = queue.clone();
    let mut waiting = vec![tokio::spawn(async move { first.enqueue(Draft::new(1).unique("claimed")).await })];
    eventually("it waits", || one_waits(&sql)).await;
    let many = queue.clone();
    let keys = ["free", "claimed"].map(|key| Draft::new(7).unique(key));
    let many = tokio::spawn(async move { many.enqueue_many(keys).await });
    for n in 0..20 {
        let unique = queue.enqueue(Draft::new(n).unique(format!("other {n}")));
        assert!(timeout(SOON, unique).await.expect("in time").expect("enqueued").is_new());
        timeout(SOON, plain.enqueue(n)).await.expect("in time").expect("enqueued");
    }
    for n in 2..6 {
        let other = queue.clone();
        waiting.push(tokio::spawn(async move { other.enqueue(Draft::new(n).unique("claimed")).await }));
        timeout(SOON, plain.enqueue(n)).await.expect("in time").expect("enqueued");
    }
    assert!(waiting.iter().all(|call| !call.is_finished()) && !many.is_finished());
    let sessions =
        "select count(*) from pg_stat_activity where application_name = 'trunkline' and datname = current_database()";
    let sessions: i64 = sql.query_one(sessions, &[]).await.expect("counted").get(0);
    assert!(sessions < 10, "{sessions} connections");
    transaction.rollback().await.expect("rolled back");
    let mut new = 0;
    for call in waiting {
        let enqueued = timeout(SOON, call).await.expect("in time").expect("no panic").expect("enqueued");
        new += usize::from(enqueued.is_new());
    }
    let many = timeout(SOON, many).await.expect("in time").expect("no panic").expect("enqueued");
    assert_eq!(many.iter().filter(|one| one.is_new()).count() + new, 2, "'free' and 'claimed', once each");
}
