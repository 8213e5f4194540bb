//! Many calls enqueue the same key at once: exactly one stores its message, all return that
//! message's id, and no call fails or waits forever.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use tokio::time::timeout;
use trunkline::{Db, Draft, Enqueued, Queue, Unique};

use super::{HOUR, held, of, older, settings};
use crate::fixture::{Place, SOON, connect, eventually, one_waits, place};

/// Opens `count` handles, which represent separate processes.
async fn handles(url: &str, count: usize) -> Vec<Queue<i64>> {
    let open = async || Db::connect(url).await.expect("connected").queue("q").await.expect("opened");
    join_all((0..count).map(|_| open())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn hundred_producers_of_a_key_all_get_the_winners_id() {
    let Place { queue, url, sql, .. } = place::<i64>(settings()).await;
    let handles = handles(&url, 4).await;
    let clients = join_all((0..20).map(|_| connect(&url))).await;
    for round in 0..20 {
        // Uses the key of the previous round in every second round. It has expired by then.
        let unique = Unique::key(format!("round {}", round / 2)).within(HOUR);
        let calls = (0..80).map(|nr| {
            let (queue, draft) = (handles[nr % 4].clone(), Draft::new(round).unique(unique.clone()));
            tokio::spawn(async move { queue.enqueue(draft).await.expect("no call errs") })
        });
        let calls: Vec<_> = calls.collect();
        let by_sql = clients.iter().map(|client| async move {
            let call = "select id, outcome from trunkline.enqueue_unique('q', $1::int8, $2, unique_for => '1 hour')";
            let row = client.query_one(call, &[&round, &format!("round {}", round / 2)]).await.expect("no error");
            match row.get(1) {
                "new" => Enqueued::New(row.get(0)),
                _ => Enqueued::Duplicate(row.get(0)),
            }
        });
        let mut told = timeout(SOON, join_all(by_sql)).await.expect("in time");
        for call in calls {
            told.push(timeout(SOON, call).await.expect("in time").expect("no panic"));
        }
        let ids: BTreeSet<i64> = told.iter().map(|one| one.id()).collect();
        let new = told.iter().filter(|one| one.is_new()).count();
        assert_eq!((ids.len(), new), (1, 1), "round {round}: {told:?}");
        assert_eq!(queue.stats().await.expect("counted").messages, round as u64 + 1);
        older(&sql, 3600.0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crossing_batches_with_keys_in_any_order_never_deadlock() {
    let Place { queue, url, sql, .. } = place::<i64>(settings()).await;
    let handles = handles(&url, 3).await;
    let calls = (0..60_usize).map(|nr| {
        let queue = handles[nr % 3].clone();
        tokio::spawn(async move {
            let mut told = BTreeMap::new();
            for round in 0..5_usize {
                // Gives each call its own order of keys, and several rows. Some keys are kept for a
                // time, and some messages have no key.
                let drafts: Vec<Draft<i64>> = (0..100_usize)
                    .map(|at| (at * (2 * nr + 1) + round * 31 + nr) % 100)
                    .map(|key| match key % 4 {
                        0 => Draft::new(-1),
                        1 => Draft::new(key as i64).unique(Unique::key(format!("{key}")).within(HOUR)),
                        _ => of(key as i64, &format!("{key}")).after(HOUR * (key % 3) as u32),
                    })
                    .collect();
                let all = queue.enqueue_many(&drafts).await.expect("no call errs");
                for (draft, one) in drafts.iter().zip(all).filter(|(draft, _)| format!("{draft:?}").contains("key")) {
                    let text = format!("{draft:?}");
                    let key =
                        text.split("payload: ").nth(1).and_then(|rest| rest.split(',').next()).expect("a payload");
                    told.entry(key.to_owned()).or_insert_with(BTreeSet::new).insert(one.id());
                }
            }
            told
        })
    });
    let mut all: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for call in calls.collect::<Vec<_>>() {
        for (key, ids) in timeout(SOON * 4, call).await.expect("in time").expect("no panic") {
            all.entry(key).or_default().extend(ids);
        }
    }
    all.remove("-1");
    assert_eq!(all.len(), 75);
    assert!(all.values().all(|ids| ids.len() == 1), "{all:?}");
    assert_eq!(held(&sql).await.len(), 75);
    // Checks that every id belongs to a message with the same payload.
    for (payload, ids) in &all {
        for id in ids {
            let found = queue.find(*id).await.expect("looked for").expect("there");
            assert_eq!(found.payload.to_string(), *payload);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_with_keys_share_rows_beside_callers_without() {
    let Place { queue, .. } = place::<i64>(settings()).await;
    let calls = (0..3000).map(|nr| {
        let queue = queue.clone();
        tokio::spawn(async move {
            match nr % 3 {
                0 => (nr, queue.enqueue(Draft::new(nr)).await.expect("enqueued")),
                _ => (nr, queue.enqueue(of(nr % 1000, &(nr % 1000).to_string())).await.expect("enqueued")),
            }
        })
    });
    let mut by_key: BTreeMap<i64, Vec<Enqueued>> = BTreeMap::new();
    for call in calls.collect::<Vec<_>>() {
        let (nr, one) = call.await.expect("no panic");
        match nr % 3 {
            0 => assert!(one.is_new()),
            _ => by_key.entry(nr % 1000).or_default().push(one),
        }
    }
    for (key, told) in &by_key {
        assert_eq!(told.iter().filter(|one| one.is_new()).count(), 1, "{key}: {told:?}");
        assert!(told.iter().all(|one| one.id() == told[0].id()), "{key}: {told:?}");
    }
    let stats = queue.stats().await.expect("counted");
    assert!(stats.messages == 1000 + by_key.len() as u64 && stats.rows < 600, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn second_enqueue_of_a_key_waits_for_the_firsts_transaction() {
    let Place { queue, sql, db, .. } = place::<i64>(settings()).await;
    for commits in [true, false] {
        let transaction = db.begin().await.expect("begun");
        let first = queue.enqueue_in(&transaction, of(1, "k")).await.expect("enqueued").id();
        let other = queue.clone();
        let second = tokio::spawn(async move { other.enqueue(of(2, "k")).await });
        eventually("the second waits", || one_waits(&sql)).await;
        match commits {
            true => transaction.commit().await.expect("committed"),
            false => transaction.rollback().await.expect("rolled back"),
        }
        let second = timeout(SOON, second).await.expect("in time").expect("no panic").expect("enqueued");
        assert_eq!(second.is_new(), !commits, "{second:?}");
        assert_eq!(second.id() == first, commits);
        assert_eq!(queue.take(10).await.expect("taken").len(), 1);
    }
    // A call that finds the key taken keeps no lock. So the other message can end while the
    // transaction of that call continues.
    let transaction = db.begin().await.expect("begun");
    let first = queue.enqueue_in(&transaction, of(1, "k")).await.expect("enqueued").id();
    let loser = db.begin().await.expect("begun");
    let lost = async { queue.enqueue_in(&loser, of(2, "k")).await.expect("enqueued") };
    let commits = async {
        eventually("the second waits", || one_waits(&sql)).await;
        transaction.commit().await.expect("committed");
    };
    let (lost, ()) = tokio::join!(lost, commits);
    assert_eq!(lost, Enqueued::Duplicate(first));
    let taken = timeout(SOON, queue.take(10)).await.expect("no transaction is waited for").expect("taken");
    assert_eq!(taken.len(), 1);
    loser.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn enqueue_is_tried_again_in_serializable_sessions() {
    let Place { queue: _, url, .. } = place::<i64>(settings()).await;
    let url = url.replace("options=''", "options='-c default_transaction_isolation=serializable'");
    let handles = handles(&url, 4).await;
    let calls = (0..40).map(|nr| {
        let queue = handles[nr % 4].clone();
        tokio::spawn(async move { queue.enqueue(of(1, "k")).await.expect("no call errs").id() })
    });
    let mut ids = BTreeSet::new();
    for call in calls.collect::<Vec<_>>() {
        ids.insert(timeout(SOON, call).await.expect("in time").expect("no panic"));
    }
    assert_eq!(ids.len(), 1);
}
