//! The reply to the statement that puts an unreadable message back is lost.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Db, Json, Queue, Settings, Wait};
use trunkline_embedded::{DelayProxy, Hold};

use crate::fixture::{Place, SOON, Said, cluster, connect, eventually, place, through};

/// Makes inserts into the queue wait for an advisory lock.
const HOLD_UP: &str = "
    create function hold_up() returns trigger language plpgsql as
        $$ begin perform pg_catalog.pg_advisory_xact_lock(7); return new; end $$;
    create trigger hold_up before insert on trunkline.queue_q for each row execute function hold_up()";

/// A message that is no number, whose return to the queue waits for a lock. The library reaches the
/// server through the proxy.
struct HeldUp {
    sql: Client,
    holder: Client,
    proxy: DelayProxy,
    readable: Queue<Json<String>>,
    numbers: Queue<Json<u64>>,
}

impl HeldUp {
    /// Takes the message, and waits until its return has waited for the lock for this time.
    async fn taken(settings: Settings, waited: Duration) -> Self {
        let Place { url, sql, queue: readable, .. } = place::<Json<String>>(settings).await;
        readable.enqueue(Json("x".to_owned())).await.expect("enqueued");
        let holder = connect(&url).await;
        sql.batch_execute(HOLD_UP).await.expect("created");
        holder.batch_execute("select pg_advisory_lock(7)").await.expect("locked");

        let proxy = DelayProxy::start("127.0.0.1:0", cluster(), Duration::ZERO).expect("started");
        let way = format!("host=127.0.0.1 port={} sslmode=disable", proxy.addr().port());
        let far = Db::connect(&through(&url, &way)).await.expect("connected");
        let numbers = far.queue::<Json<u64>>("q").await.expect("opened");
        assert_eq!(numbers.take(1).await.expect("taken"), []);
        let held_up = Self { sql, holder, proxy, readable, numbers };
        let waits = format!(
            "select exists (select from pg_locks where locktype = 'advisory' and not granted
                                and clock_timestamp() - waitstart >= '{} ms'
                                and database = (select oid from pg_database where datname = current_database()))",
            waited.as_millis()
        );
        eventually("the message is being put back", async || held_up.is_so(&waits).await).await;
        held_up
    }

    async fn is_so(&self, text: &str) -> bool {
        self.sql.query_one(text, &[]).await.expect("read").get(0)
    }
}

#[tokio::test]
async fn message_taken_by_another_consumer_is_not_put_back_again() {
    let warnings = Said::warnings();
    let _ear = warnings.listen();
    // A shared connection waits for a lock for half a second. After that, the statement waits on a
    // connection of its own.
    let held_up = HeldUp::taken(Settings::new("jsonb"), Duration::from_millis(700)).await;
    let HeldUp { holder, proxy, readable, .. } = &held_up;
    proxy.hold(Hold::Answers);
    holder.batch_execute("select pg_advisory_unlock(7)").await.expect("unlocked");
    let taken = timeout(SOON, readable.consumer(Wait::poll()).take(1)).await.expect("due again").expect("taken");
    assert_eq!(taken[0].payload.0, "x");
    proxy.cut_all(); // loses the reply
    proxy.hold(Hold::Nothing);

    let there = "select exists (select from trunkline.queue_q)";
    let gives_up = async || warnings.contains("cannot give back dequeued messages") || held_up.is_so(there).await;
    eventually("the library ends its tries", gives_up).await;
    assert!(!held_up.is_so(there).await, "the message would be delivered twice");
}

/// The statement that puts the message back also buries it, because it has only one attempt.
#[tokio::test]
async fn message_that_died_when_it_was_put_back_does_not_die_again() {
    let held_up = HeldUp::taken(Settings::new("jsonb").max_attempts(1), Duration::ZERO).await;
    let HeldUp { sql, holder, proxy, numbers, .. } = &held_up;
    proxy.hold(Hold::Answers);
    holder.batch_execute("select pg_advisory_unlock(7)").await.expect("unlocked");
    eventually("it is dead", async || held_up.is_so("select exists (select from trunkline.dead_q)").await).await;
    proxy.cut_all(); // loses the reply
    proxy.hold(Hold::Nothing);

    let mut consumer = numbers.consumer(Wait::poll());
    timeout(SOON, consumer.close_direct()).await.expect("the library ends its tries");
    let left = "select (select count(*) from trunkline.dead_q), (select count(*) from trunkline.queue_q)";
    let left = sql.query_one(left, &[]).await.expect("counted");
    assert_eq!((left.get::<_, i64>(0), left.get::<_, i64>(1)), (1, 0));
}
