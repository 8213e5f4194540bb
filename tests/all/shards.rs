//! Tests a queue on several servers. Most tests use three databases of one server; some use three
//! servers, one of which becomes unavailable.

mod away;
mod consumed;
mod drained;
mod expired;
mod joined;
mod leaving;
mod moved;
mod reads;
mod silent;
mod streamed;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join_all, try_join_all};
use tokio::{runtime::Handle, time::timeout};
use trunkline::{Draft, Metadata, Settings, shards};

use crate::fixture::{Ids, SOON, connect, database, eventually, superuser};

/// Three databases, each of which is a shard with the queue `q` of numbers.
pub struct Three {
    pub urls: Vec<String>,
    pub shards: shards::Set,
    pub queue: shards::Queue<i64>,
}

pub async fn three(settings: Settings) -> Three {
    let urls = join_all((0..3).map(|_| shard())).await;
    let shards = shards::Set::connect(&urls).await.expect("connected");
    shards.create_queue("q", &settings).await.expect("created");
    let queue = shards.queue("q").await.expect("opened");
    Three { urls, shards, queue }
}

/// Creates a database with its own shard number. This is necessary because the tests' databases are
/// copies of one template.
pub async fn shard() -> String {
    let url = database().await;
    let renew = "update trunkline.stripe set number = default";
    superuser(&url).await.batch_execute(renew).await.expect("renewed");
    url
}

pub fn numbers() -> Settings {
    Settings::new("int8")
}

impl Three {
    pub fn ids(&self) -> Vec<shards::Id> {
        self.queue.queues().iter().map(|part| part.shard).collect()
    }

    /// Returns the address of a shard.
    pub async fn url(&self, id: shards::Id) -> String {
        for url in &self.urls {
            let number =
                connect(url).await.query_one("select number from trunkline.stripe", &[]).await.expect("one row");
            if number.get::<_, i32>(0).cast_unsigned() == id.0 {
                return url.clone();
            }
        }
        panic!("no database is shard {id}")
    }
}

/// Counts the values on each shard.
pub fn counts<V>(all: impl IntoIterator<Item = shards::Sharded<V>>) -> BTreeMap<shards::Id, usize> {
    let mut counts = BTreeMap::new();
    all.into_iter().for_each(|one| *counts.entry(one.shard).or_default() += 1);
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn enqueued_messages_are_spread_and_their_ids_name_the_shard() {
    let three = three(numbers()).await;
    for spread in [shards::Routing::RoundRobin, shards::Routing::LeastLoaded] {
        let queue = three.queue.routing(spread);
        let ids = try_join_all((0..300).map(|n| queue.enqueue(n))).await.expect("enqueued").ids();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 300, "an id is one message's");
        let spread = counts(ids.iter().copied());
        assert!(spread.len() == 3 && spread.values().all(|count| (90..=110).contains(count)), "{spread:?}");
        for (n, id) in ids.iter().enumerate().step_by(37) {
            let found = three.queue.find(*id).await.expect("looked for").expect("it is there");
            assert_eq!((found.shard, found.id, found.payload), (id.shard, id.of, n as i64));
        }
    }
    let stats = three.queue.stats().await;
    let parts: Vec<u64> = stats.parts.iter().map(|part| part.of.as_ref().expect("counted").due).collect();
    assert_eq!((stats.sum.due, parts.iter().sum::<u64>(), parts.len()), (600, 600, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn hash_is_one_shard_for_all_processes_and_server_orders() {
    let three = three(numbers()).await;
    let reversed: Vec<&String> = three.urls.iter().rev().collect();
    let other = shards::Set::connect(reversed).await.expect("connected").queue::<i64>("q").await.expect("opened");
    let mut seen = BTreeSet::new();
    for n in 0..20 {
        let by = shards::Routing::by_key(format!("tenant {n}"));
        let one = three.queue.routing(by).enqueue(n).await.expect("enqueued").id();
        let many = other.routing(by).enqueue_many([n, n]).await.expect("enqueued").ids();
        assert!(many.iter().all(|id| id.shard == one.shard), "{one} and {many:?}");
        seen.insert(one.shard);
    }
    assert_eq!(seen.len(), 3, "20 keys are on all of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn enqueue_many_stays_on_one_shard_and_drafts_keep_metadata() {
    let three = three(numbers()).await;
    let metadata = Metadata::new().with("tenant", "acme");
    let draft = |n: i64| Draft::new(n).metadata(metadata.clone());
    let ids = three.queue.enqueue_many((0..3000).map(draft)).await.expect("enqueued").ids();
    assert_eq!((ids.len(), counts(ids.iter().copied()).len()), (3000, 1));
    let found = three.queue.find(ids[7]).await.expect("looked for").expect("it is there");
    assert_eq!((found.payload, &found.metadata), (7, &metadata));
    let one = three.queue.enqueue(&draft(9)).await.expect("enqueued").id();
    let found = three.queue.find(one).await.expect("looked for").expect("it is there");
    assert_eq!(found.metadata.get("tenant"), Some("acme"));
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_by_id_go_to_the_shard_of_the_id() {
    let three = three(numbers().max_attempts(1)).await;
    let mut ids = try_join_all((0..30).map(|n| three.queue.enqueue(n))).await.expect("enqueued").ids();
    ids.sort_unstable();
    let stranger = shards::MessageId { shard: shards::Id(7), of: ids[0].of };
    let error = three.queue.cancel(&[stranger]).await.expect_err("no such shard");
    assert!(error.to_string().contains("shard 00000007: it is not one of the reached shards"), "{error}");
    assert_eq!(error.shards()[0].0, "00000007");
    assert_eq!(three.queue.cancel(&ids[..9]).await.expect("cancelled"), ids[..9]);
    let later = std::time::Duration::from_secs(60);
    assert_eq!(three.queue.reschedule(&ids[9..12], later).await.expect("moved"), ids[9..12]);
    let mut consumer = three.queue.consumer(trunkline::Wait::Adaptive);
    let mut leased = Vec::new();
    while leased.len() < 18 {
        leased.extend(timeout(SOON, consumer.lease(100)).await.expect("in time").expect("leased"));
    }
    assert_eq!(leased.len(), 18);
    three.queue.archive(&leased[..3]).await.expect("archived");
    three.queue.bury(&leased[3..], "never").await.expect("buried");
    let lost = three.queue.ack(&leased[..5]).await.expect_err("they are over");
    assert!(lost.is_lease_lost() && lost.shards().iter().map(|(_, part)| part.lost_ids().len()).sum::<usize>() == 5);

    // Checks that the pages cover all shards, and contain each dead letter once.
    let (mut after, mut letters) = (None, Vec::new());
    loop {
        let page = three.queue.dead_letters(after, 4).await.expect("read");
        assert!(page.len() <= 4);
        let Some(end) = page.last() else { break };
        after = Some(shards::Sharded { shard: end.shard, of: end.id });
        letters.extend(page.iter().map(|letter| shards::Sharded { shard: letter.shard, of: letter.id }));
    }
    assert!(letters.is_sorted() && letters.len() == 15, "{letters:?}");
    assert_eq!(three.queue.archived(None, 100).await.expect("read").len(), 3);
    assert_eq!(three.queue.replay(&letters[..10]).await.expect("replayed"), 10);
    assert_eq!(three.queue.discard(&letters[10..]).await.expect("discarded"), 5);
    let purged = three.queue.on_each(|part| async move { part.purge().await.expect("purged") }).await;
    assert_eq!(purged.iter().map(|part| part.of).sum::<u64>(), 13);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_payload_fails_its_own_caller_without_asking_other_shards() {
    let urls = join_all((0..2).map(|_| shard())).await;
    let shards = shards::Set::connect(&urls).await.expect("connected");
    shards.create_queue("q", &Settings::new("text")).await.expect("created");
    let queue = shards.queue::<String>("q").await.expect("opened");
    let texts = (0..40).map(|n| if n == 7 { "\0".to_owned() } else { format!("text {n}") });
    let outcomes = join_all(texts.map(|text| queue.enqueue(text))).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Ok(_) => assert_ne!(n, 7),
            Err(error) => assert!(n == 7 && error.is_bad_payload() && error.shards().len() == 1, "{n}: {error}"),
        }
    }
    assert_eq!(queue.stats().await.sum.due, 39);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unique_key_has_one_shard_and_one_message_there() {
    let three = three(numbers().uniqueness(true)).await;
    let of = |nr: usize| Draft::new(nr as i64).unique(format!("key {}", nr % 20));
    let ids = try_join_all((0..200).map(|nr| three.queue.enqueue(of(nr)))).await.expect("enqueued").ids();
    let by_key: BTreeMap<usize, BTreeSet<String>> =
        ids.iter().enumerate().fold(BTreeMap::new(), |mut all, (nr, id)| {
            all.entry(nr % 20).or_default().insert(format!("{id:?}"));
            all
        });
    assert!(by_key.values().all(|ids| ids.len() == 1), "{by_key:?}");
    assert!(counts(ids).len() > 1, "the keys are spread");
    assert_eq!(three.queue.enqueue_many([of(0)]).await.expect("one goes").len(), 1);
    let error = three.queue.enqueue_many([of(0), of(1)]).await.expect_err("they go to several").to_string();
    assert!(error.contains("in separate calls"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_queue_leaves_no_task_behind() {
    let three = three(numbers()).await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..50 {
        three.shards.queue::<i64>("q").await.expect("opened");
    }
    eventually("their tasks have ended", || async { tasks() <= before + 10 }).await;
}
