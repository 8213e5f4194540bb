use crate::fixture::queue;
use trunkline::Settings;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_enqueued_is_dequeued() {
    let (_db, queue) = queue::<String>(Settings::new("text")).await;
    let id = queue.enqueue("hello".to_owned()).await.expect("enqueued");
    let messages = queue.at_most_once(10).await.expect("taken");
    assert_eq!(messages.iter().map(|m| (m.id, m.payload.as_str())).collect::<Vec<_>>(), [(id, "hello")]);
}
