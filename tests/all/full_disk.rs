//! A disk becomes full: enqueues return an error, confirmed messages are kept, and the queue works
//! again once there is free space.

mod small_disk;

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use trunkline::{Db, Error, Queue, Settings, Wait};
use trunkline_embedded::{Cluster, Stop};

use self::small_disk::SmallDisk;
use crate::fixture::{SOON, connect, eventually};

/// The enqueued numbers that are certainly stored, certainly not stored, or possibly stored.
#[derive(Debug, Default)]
struct Known {
    kept: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
}

/// Returns a payload: the number, and 20 kB that the server cannot compress.
fn payload(number: u64) -> Vec<u8> {
    let noise = (0..2500).scan(number.wrapping_add(1), |state, _| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((*state ^ (*state >> 33)).to_le_bytes())
    });
    number.to_le_bytes().into_iter().chain(noise.flatten()).collect()
}

fn number(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().expect("eight bytes"))
}

impl Known {
    fn note(&mut self, numbers: &[u64], outcome: Result<(), &Error>) {
        let known = match outcome {
            Ok(()) => &mut self.kept,
            Err(error) if error.is_outcome_unknown() => &mut self.unknown,
            Err(_) => &mut self.refused,
        };
        known.extend(numbers);
    }

    /// Enqueues in bulk and individually until both fail. Returns both errors.
    async fn fill(&mut self, queue: &Queue<Vec<u8>>) -> Vec<Error> {
        for first in (0..).step_by(20) {
            let many: Vec<u64> = (first..first + 10).collect();
            let single: Vec<u64> = (first + 10..first + 20).collect();
            let payloads: Vec<_> = many.iter().map(|number| payload(*number)).collect();
            let (all, each) = tokio::join!(
                queue.enqueue_many(&payloads),
                join_all(single.iter().map(|number| async { queue.enqueue(payload(*number)).await.map(drop) })),
            );
            self.note(&many, all.as_ref().map(drop));
            for (number, outcome) in single.iter().zip(&each) {
                self.note(&[*number], outcome.as_ref().map(drop));
            }
            let failures: Vec<Error> = all.err().into_iter().chain(each.into_iter().filter_map(Result::err)).collect();
            if !failures.is_empty() {
                return failures;
            }
        }
        unreachable!("no disk is endless")
    }

    /// Checks that every stored number is delivered once, and that no refused number is delivered.
    async fn comes(&self, queue: &Queue<Vec<u8>>, before: Vec<u64>) {
        let mut seen = before;
        loop {
            let messages = queue.take(50).await.expect("taken");
            if messages.is_empty() {
                break;
            }
            for message in messages {
                let number = number(&message.payload);
                assert!(message.payload == payload(number), "{number} came as it went");
                seen.push(number);
            }
        }
        let set: BTreeSet<u64> = seen.iter().copied().collect();
        assert_eq!(set.len(), seen.len(), "nothing comes twice");
        assert!(set.is_superset(&self.kept), "lost: {:?}", self.kept.difference(&set));
        assert!(set.is_disjoint(&self.refused), "refused, and there: {:?}", self.refused.intersection(&set));
        assert!(set.iter().all(|number| self.kept.contains(number) || self.unknown.contains(number)));
    }
}

async fn cluster() -> Arc<Cluster> {
    let started = tokio::task::spawn_blocking(|| {
        // Prevents checkpoints, which would free space in the log.
        let cluster = Cluster::temporary().setting("max_wal_size", "4GB").setting("checkpoint_timeout", "1h");
        cluster.setting("fsync", "off").start().expect("a private PostgreSQL starts")
    });
    Arc::new(started.await.expect("no panic"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root on Linux: mounts a small disk"]
async fn full_data_disk_refuses_enqueues_and_harms_nothing_else() {
    let cluster = cluster().await;
    let disk = SmallDisk::mount(&cluster, 40, 8);
    let admin = connect(&cluster.url("postgres")).await;
    let place = disk.for_server(&cluster, "tablespace");
    let create = format!("create tablespace small location '{}'", place.display());
    admin.batch_execute(&create).await.expect("created");
    admin.batch_execute("create database small tablespace small").await.expect("there is room for an empty one");
    let db = Db::connect(&crate::fixture::settled(&cluster.url("small"))).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("bytea").max_batch(10)).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");

    let first_row: Vec<u64> = (1_000_000..1_000_010).collect();
    let payloads: Vec<_> = first_row.iter().map(|number| payload(*number)).collect();
    queue.enqueue_many(&payloads).await.expect("there is room");
    let mut known = Known { kept: first_row.iter().copied().collect(), ..Known::default() };
    for error in known.fill(&queue).await {
        assert_eq!(error.sqlstate(), Some(&SqlState::DISK_FULL), "{error}");
        assert!(error.to_string().contains("could not extend file"), "{error}");
    }
    assert!(known.unknown.is_empty() && !known.refused.is_empty() && known.kept.len() > 500, "{known:?}");

    // Checks that reads work, and that a partial take fails: it writes a shorter row, which needs
    // free space. A take of whole rows works.
    assert_eq!(queue.stats().await.expect("counted").messages, known.kept.len() as u64);
    let error = queue.take(1).await.expect_err("no room for the rest");
    assert_eq!(error.sqlstate(), Some(&SqlState::DISK_FULL), "{error}");
    let mut consumer = queue.consumer(Wait::Adaptive);
    let taken = timeout(SOON, consumer.take(10)).await.expect("soon").expect("taken");
    let taken: Vec<u64> = taken.iter().map(|message| number(&message.payload)).collect();
    assert_eq!(taken, first_row);

    disk.make_room();
    let more = u64::MAX;
    queue.enqueue(payload(more)).await.expect("there is room");
    known.kept.insert(more);
    known.comes(&queue, taken).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root on Linux: mounts a small disk"]
async fn full_log_disk_stops_the_server_without_losing_stored_messages() {
    let cluster = cluster().await;
    let disk = SmallDisk::mount(&cluster, 72, 20);
    stop(&cluster).await;
    disk.take_over(&cluster.data_dir().join("pg_wal"));
    start(&cluster).await;
    let db = Db::connect(&crate::fixture::settled(&cluster.url("postgres"))).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("bytea").max_batch(10)).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");

    let mut known = Known::default();
    let failures = known.fill(&queue).await;
    assert!(failures.iter().all(|error| error.is_closed() || error.sqlstate().is_some()), "{failures:?}");
    assert!(failures.iter().any(Error::is_outcome_unknown), "{failures:?}");
    assert!(known.kept.len() > 500, "{known:?}");

    disk.make_room();
    eventually("the server is there again", async || {
        start(&cluster).await;
        db.schema_version().await.is_ok()
    })
    .await;
    // Uses all connections. Each one that the stop broke, and that has not been used since then,
    // costs one failed enqueue.
    for more in (0..8).map(|nr| u64::MAX - nr) {
        let stored = queue.enqueue(payload(more)).await;
        known.note(&[more], stored.as_ref().map(drop));
        if stored.is_ok() {
            break;
        }
    }
    assert!(known.kept.last() > Some(&u64::from(u32::MAX)), "there is room");
    known.comes(&queue, Vec::new()).await;
}

async fn stop(cluster: &Arc<Cluster>) {
    let cluster = cluster.clone();
    tokio::task::spawn_blocking(move || cluster.stop(Stop::Fast)).await.expect("no panic").expect("stopped");
}

/// Starts the server, which may be recovering or stopped.
async fn start(cluster: &Arc<Cluster>) {
    let cluster = cluster.clone();
    let _ = tokio::task::spawn_blocking(move || cluster.start_again()).await.expect("no panic");
}
