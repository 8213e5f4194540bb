//! A backup is restored: the queue returns to an older state, but its environment does not.

use trunkline::Db;

use super::{fill, jump, server::Server};
use crate::fixture::connect;

#[tokio::test(flavor = "multi_thread")]
async fn restored_queue_repeats_later_work_and_ids_unless_sequences_jump() {
    let mut server = Server::start(None, &[]);
    let db = Db::connect(&server.url()).await.expect("connected");
    let left = fill(&db).await;
    drop(db);
    server.stop();
    server.backs_up();
    server.start_again();

    let db = Db::connect(&server.url()).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    queue.ack([&left.leased]).await.expect("held");
    let since = queue.take(9).await.expect("taken").iter().map(|message| message.payload).collect::<Vec<_>>();
    assert_eq!(since, [2, 3, 7]);
    let gone = queue.enqueue(10).await.expect("enqueued").id();
    drop((queue, db));
    server.stop();
    server.is_restored();
    server.start_again();

    let db = Db::connect(&server.url()).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    queue.ack([&left.leased]).await.expect("the lease of then is valid again");
    let again = queue.take(9).await.expect("taken").iter().map(|message| message.payload).collect::<Vec<_>>();
    assert_eq!(again, since, "what was done since comes again");
    assert_eq!(queue.enqueue(11).await.expect("enqueued").id(), gone, "the id of a message that is gone");
    let sql = connect(&server.url()).await;
    sql.batch_execute(jump()).await.expect("moved");
    let id = queue.enqueue(12).await.expect("enqueued").id();
    assert!(id > gone + 1024 * 999_999_999 && id % 1024 == 0, "{id}");
}
