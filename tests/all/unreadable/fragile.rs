//! A user's type whose decoder or encoder panics.

use std::{
    convert::Infallible,
    future::{pending, ready},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::BytesMut;
use futures_util::FutureExt;
use postgres_types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use trunkline::{Message, Result, Settings, Wait, Worker};

use super::{is_dead, pass};
use crate::fixture::{Place, eventually, place};

type BadValue = Box<dyn std::error::Error + Sync + Send>;

/// A number whose decoder panics at 13.
#[derive(Debug)]
struct Fragile(i64);

impl<'a> FromSql<'a> for Fragile {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> std::result::Result<Self, BadValue> {
        let number = i64::from_sql(ty, raw)?;
        assert!(number != 13, "thirteen is unlucky");
        Ok(Self(number))
    }

    accepts!(INT8);
}

impl ToSql for Fragile {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, BadValue> {
        assert!(self.0 != 666, "cannot be written");
        self.0.to_sql(ty, out)
    }

    accepts!(INT8);
    to_sql_checked!();
}

#[tokio::test(flavor = "multi_thread")]
async fn panicking_decoder_fails_its_own_message_in_every_consumer() {
    for way in ["worker", "batches", "lease", "take", "take_with", "consumer", "handed over"] {
        let Place { queue, sql, db, .. } = place::<Fragile>(Settings::new("int8").max_attempts(2)).await;
        let (wait, ways) = (Wait::Poll(Duration::from_millis(5)), queue.clone());
        if way != "handed over" {
            queue.enqueue_many((10..20).map(Fragile)).await.expect("enqueued");
        }
        let handled = Arc::new(Mutex::new(Vec::new()));
        let seen = handled.clone();
        let see = move |payload: i64| seen.lock().expect("no panic").push(payload);
        let runs = tokio::spawn(async move {
            let outcome: Result<()> = match way {
                "worker" => {
                    let worker = Worker::new(ways, move |message: Message<Fragile>| {
                        see(message.payload.0);
                        ready(Ok::<(), Infallible>(()))
                    });
                    worker.run(pending()).await.map(drop)
                }
                "batches" => {
                    let worker = Worker::of_batches(ways, 5, move |messages: Vec<Message<Fragile>>| {
                        for message in &messages {
                            see(message.payload.0);
                        }
                        ready(messages.iter().map(|_| Ok::<(), Infallible>(())).collect())
                    });
                    worker.run(pending()).await.map(drop)
                }
                "take_with" => {
                    let mut consumer = ways.consumer(wait).retry_after(Duration::from_millis(1));
                    loop {
                        let got =
                            consumer.take_with(5, |_, messages| async move { Ok::<_, Infallible>(messages) }.boxed());
                        for message in got.await? {
                            see(message.payload.0);
                        }
                    }
                }
                "consumer" => {
                    let mut consumer = ways.consumer(wait);
                    loop {
                        let got = consumer.lease(5).await?;
                        ways.ack(&got).await?;
                        for message in &got {
                            see(message.payload.0);
                        }
                    }
                }
                "handed over" => {
                    let mut consumer = ways.consumer(Wait::Notify);
                    loop {
                        see(consumer.receive_direct().await?.payload.0);
                    }
                }
                _ => loop {
                    let got = if way == "lease" { ways.lease(5).await? } else { ways.take(5).await? };
                    if way == "lease" {
                        ways.ack(&got).await?;
                    }
                    for message in &got {
                        see(message.payload.0);
                    }
                    tokio::task::yield_now().await;
                },
            };
            outcome
        });
        if way == "handed over" {
            for payload in 10..20 {
                queue.send_direct(Fragile(payload)).await.expect("handed over");
            }
        }
        eventually(way, || async {
            pass(&sql).await;
            is_dead(&sql).await && handled.lock().expect("no panic").len() >= 9
        })
        .await;
        assert!(!runs.is_finished(), "{way}: it goes on");
        runs.abort();
        let mut handled = handled.lock().expect("no panic").clone();
        handled.sort_unstable();
        assert_eq!(handled, [10, 11, 12, 14, 15, 16, 17, 18, 19], "{way}");
        let dead =
            sql.query_one("select payload, attempt, error from trunkline.dead_q", &[]).await.expect("one is dead");
        let (payload, attempt, error): (i64, i32, String) = (dead.get(0), dead.get(1), dead.get(2));
        assert_eq!((payload, attempt), (13, 2), "{way}");
        assert!(error.contains("its decoder panicked: thirteen is unlucky"), "{way}: {error}");
        drop(db);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn panicking_encoder_panics_in_its_own_call_and_enqueues_nothing() {
    let Place { queue, db: _db, .. } = place::<Fragile>(Settings::new("int8")).await;
    let calls = [1, 666, 2].map(|payload| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.enqueue(Fragile(payload)).await })
    });
    let [one, bad, two] = calls;
    assert!(bad.await.expect_err("its own").is_panic());
    one.await.expect("no panic").expect("enqueued");
    two.await.expect("no panic").expect("enqueued");
    let many = queue.clone();
    let many = tokio::spawn(async move { many.enqueue_many([Fragile(3), Fragile(666)]).await });
    assert!(many.await.expect_err("its own").is_panic());
    let mut taken: Vec<i64> = queue.take(9).await.expect("taken").iter().map(|message| message.payload.0).collect();
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
}
