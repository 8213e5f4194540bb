//! The reply to the statement that puts an unreadable message back is lost.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::{Db, Json, Settings, Wait};
use trunkline_embedded::{DelayProxy, Hold};

use crate::fixture::{Place, SOON, Said, cluster, connect, eventually, place, through};

/// Makes inserts into the queue wait for an advisory lock.
const HOLD_UP: &str = "
    create function hold_up() returns trigger language plpgsql as
        $$ begin perform pg_catalog.pg_advisory_xact_lock(7); return new; end $$;
    create trigger hold_up before insert on trunkline.queue_q for each row execute function hold_up()";

#[tokio::test]
async fn message_taken_by_another_consumer_is_not_put_back_again() {
    let warnings = Said::warnings();
    let _ear = warnings.listen();
    let Place { url, sql, queue: readable, .. } = place::<Json<String>>(Settings::new("jsonb")).await;
    readable.enqueue(Json("x".to_owned())).await.expect("enqueued");
    let holder = connect(&url).await;
    sql.batch_execute(HOLD_UP).await.expect("created");
    holder.batch_execute("select pg_advisory_lock(7)").await.expect("locked");

    let proxy = DelayProxy::start("127.0.0.1:0", cluster(), Duration::ZERO).expect("started");
    let way = format!("host=127.0.0.1 port={} sslmode=disable", proxy.addr().port());
    let far = Db::connect(&through(&url, &way)).await.expect("connected");
    let numbers = far.queue::<Json<u64>>("q").await.expect("opened");
    assert_eq!(numbers.take(1).await.expect("taken"), []);
    // A shared connection waits for a lock for half a second. After that, the statement waits on a
    // connection of its own.
    let waits = "select exists (select from pg_locks where locktype = 'advisory' and not granted
                                and clock_timestamp() - waitstart > '700 ms'
                                and database = (select oid from pg_database where datname = current_database()))";
    let is_so = async |text: &str| sql.query_one(text, &[]).await.expect("read").get::<_, bool>(0);
    eventually("the message is being put back", async || is_so(waits).await).await;
    proxy.hold(Hold::Answers);
    holder.batch_execute("select pg_advisory_unlock(7)").await.expect("unlocked");
    let taken = timeout(SOON, readable.consumer(Wait::poll()).take(1)).await.expect("due again").expect("taken");
    assert_eq!(taken[0].payload.0, "x");
    proxy.cut_all(); // loses the reply
    proxy.hold(Hold::Nothing);

    let there = "select exists (select from trunkline.queue_q)";
    let gives_up = async || warnings.contains("cannot give back dequeued messages") || is_so(there).await;
    eventually("the library ends its tries", gives_up).await;
    assert!(!is_so(there).await, "the message would be delivered twice");
}
