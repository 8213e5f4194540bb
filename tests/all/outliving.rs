//! A handle outlives the runtime in which it was used, and still works in another runtime.

use std::time::Duration;

use futures_util::{future::join_all, poll};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tokio_postgres::Client;
use trunkline::{Db, Message, Queue, Settings};

use crate::fixture::{SOON, connect, database, enqueued, eventually};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts")
}

/// A queue that was opened in a runtime that will end, and a session in a runtime that stays.
struct Outliving {
    beside: Runtime,
    sql: Client,
    first: Runtime,
    queue: Queue<i64>,
}

fn outliving() -> Outliving {
    let (beside, first) = (runtime(), runtime());
    let (url, sql) = beside.block_on(async {
        let url = database().await;
        (url.clone(), connect(&url).await)
    });
    let queue = first.block_on(async {
        let db = Db::connect(&url).await.expect("connected");
        db.create_queue("q", &Settings::new("int8")).await.expect("created");
        db.queue("q").await.expect("opened")
    });
    Outliving { beside, sql, first, queue }
}

impl Outliving {
    /// Locks the queue's table, so that every statement on it waits.
    fn hold(&self) {
        let lock = "begin; lock table trunkline.queue_q in access exclusive mode";
        self.beside.block_on(self.sql.batch_execute(lock)).expect("locked");
    }

    fn until_held(&self, statement: &str) {
        let waits = "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like $1
                                    and datname = current_database())";
        let is_so = || async {
            // Clears the cache of statistics of other sessions, which would stay the same within a
            // transaction.
            self.sql.batch_execute("select pg_stat_clear_snapshot()").await.expect("forgotten");
            self.sql.query_one(waits, &[&format!("%{statement}%")]).await.expect("visible").get(0)
        };
        self.beside.block_on(eventually("it waits", is_so));
    }
}

#[test]
fn next_runtime_enqueues_after_one_ended_during_an_insert() {
    let place = outliving();
    place.hold();
    let queue = place.queue.clone();
    place.first.spawn(async move { queue.enqueue(1).await });
    place.until_held("insert into trunkline");
    let Outliving { beside, sql, first, queue } = place;
    drop(first);
    beside.block_on(sql.batch_execute("rollback")).expect("unlocked");
    runtime().block_on(async {
        timeout(SOON, queue.enqueue(2)).await.expect("no call waits for a writer that is gone").expect("enqueued");
        assert!(queue.take(9).await.expect("taken").iter().any(|message| message.payload == 2));
    });
}

#[test]
fn caller_in_another_runtime_is_answered_when_the_writer_ends() {
    let place = outliving();
    place.hold();
    let (queue, second) = (place.queue.clone(), runtime());
    // With this many waiting payloads, the next caller joins them instead of starting a second
    // statement.
    place.first.spawn(async move { join_all([1; 4].map(|payload| queue.enqueue(payload))).await });
    place.until_held("insert into trunkline");
    let queue = place.queue.clone();
    // Polls the call once, so that it joins the first runtime's statement. A second poll might use
    // a connection of that runtime, which is about to end.
    let mut waiter = Box::pin(async move { timeout(SOON, queue.enqueue(2)).await });
    second.block_on(async { assert!(poll!(&mut waiter).is_pending(), "the table is locked") });
    let waiter = second.spawn(waiter);
    let Outliving { beside, sql, first, queue } = place;
    drop(first);
    beside.block_on(sql.batch_execute("rollback")).expect("unlocked");
    let outcome = second.block_on(waiter).expect("no panic").expect("an answer");
    if let Err(error) = outcome {
        assert!(!error.is_outcome_unknown(), "it was never sent: {error}");
        second.block_on(async { queue.enqueue(2).await.expect("the second time").id() });
    }
    let messages = second.block_on(async { queue.take(9).await.expect("taken") });
    assert_eq!(messages.iter().filter(|message| message.payload == 2).count(), 1);
}

#[test]
fn next_runtime_acknowledges_after_one_ended_during_an_acknowledgement() {
    let place = outliving();
    let leases: Vec<_> = place.first.block_on(async {
        enqueued(&place.queue, 2).await;
        place.queue.lease(2).await.expect("leased").iter().map(Message::lease).collect()
    });
    place.hold();
    let (queue, lease) = (place.queue.clone(), leases[0]);
    place.first.spawn(async move { queue.ack([lease]).await });
    place.until_held("do_ack_q");
    let Outliving { beside, sql, first, queue } = place;
    drop(first);
    beside.block_on(sql.batch_execute("rollback")).expect("unlocked");
    runtime().block_on(async {
        timeout(SOON, queue.ack([leases[1]])).await.expect("no call waits for a settler that is gone").expect("held");
        let longer = timeout(SOON, queue.extend([leases[0]], Duration::from_secs(9))).await.expect("an answer");
        assert!(longer.is_ok() || longer.is_err_and(|error| error.is_lease_lost()), "acknowledged or not");
    });
}

#[test]
fn next_runtime_puts_back_messages_of_an_ended_one() {
    let place = outliving();
    place.first.block_on(async {
        for payload in [1, 2] {
            place.queue.enqueue(payload).await.expect("enqueued, a row of its own");
        }
    });
    place.hold();
    let queue = place.queue.clone();
    let caller = place.first.spawn(async move { queue.take(2).await });
    place.until_held("do_take_q");
    caller.abort(); // from now on, the messages that the statement takes have no caller
    let closed = "create function public.closed() returns trigger language plpgsql as
                  $$ begin perform pg_advisory_xact_lock(7); return new; end $$;
                  create trigger closed before insert on trunkline.queue_q for each row execute function public.closed();
                  select pg_advisory_lock(7);
                  commit";
    place.beside.block_on(place.sql.batch_execute(closed)).expect("the way back is closed");
    place.until_held("do_back_q");
    let Outliving { beside, sql, first, queue } = place;
    drop(first); // ends the runtime while the library puts the first message back, and before it puts back the second
    beside.block_on(sql.batch_execute("select pg_advisory_unlock_all()")).expect("the way back is open");
    let mut got = Vec::new();
    runtime().block_on(async {
        let both = async {
            while got.len() < 2 {
                got.extend(queue.take(2).await.expect("taken").iter().map(|message| message.payload));
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, both).await.expect("they are back");
    });
    got.sort_unstable();
    assert_eq!(got, [1, 2]);
}
