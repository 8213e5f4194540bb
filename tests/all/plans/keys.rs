//! Tests the plans of queues with keys, whose messages are read by partition.

use std::collections::BTreeSet;

use trunkline::{Db, Settings};

use super::{
    apart::REFUSALS,
    called_of, functions_of,
    list::{Planned, Way},
    oids,
    planner::{Planner, without_log},
    read,
};
use crate::fixture::{connect, database};

/// The statements that have a separate form for queues with keys, and the indexes that each may
/// use. `place_q` has the order of a partition. `due_q` contains leased and delayed messages.
pub const STATEMENTS: &[Planned] = &[
    ("partitioned/enqueue", "0, 1, '{1}', null, -1, '{a}'", Way::NoRows),
    ("partitioned/enqueue_in", "'{1,2,3}', 0, null, '{a,b,a}'", Way::NoRows),
    ("partitioned/peek", "'q', '-infinity', 0, 100", Way::Either(&["due_q"])),
    ("partitioned/dead", "0, 100", Way::NoRows),
    ("partitioned/archived", "0, 100", Way::NoRows),
    ("partitioned/lanes", "20, null, 1, '-infinity'", Way::Either(&["place_q", "key_q", "due_q", "TIDSCAN"])),
    ("partitioned/lanes_in", "1", Way::Either(&["due_q", "place_q"])),
    ("partitioned/leave", "1", Way::Either(&["due_q"])),
    ("partitioned/line", "'{key 1,key 2}', '{1,1}'", Way::NoRows),
];

/// Calls of the remaining functions, and the indexes that each may use.
const CALLS: &[(&str, &[&str])] = &[
    ("select * from trunkline.do_lanes_q(20, null, 2)", &["place_q", "key_q", "due_q", "TIDSCAN"]),
    ("select trunkline.do_behind_q(array[1024, 2048])", &["place_q", "key_q"]),
    ("select * from trunkline.do_retry_q('{2048}', '{1}', '{1}', '{0}', '{x}')", &["key_q", "TIDSCAN"]),
    ("select * from trunkline.do_extend_q('{2048}', '{1}', '{1}', '1 second')", &["key_q"]),
    ("select * from trunkline.do_cancel_q('{2048,2049}')", &["key_q"]),
    ("select * from trunkline.do_reschedule_q('{2048,2049}', now() + interval '1 hour')", &["key_q"]),
    ("select trunkline.do_back_q(7, now(), 1, 0, '', 1, '{1}', null, '{\"keys\": \"{a}\"}')", &[]),
    ("select * from trunkline.do_find_q(2048)", &["key_q"]),
    ("select * from trunkline.messages_within('q', 2048, 4096, null, null)", &["key_q"]),
    ("select * from trunkline.do_look_q('-infinity')", &["due_q"]),
    ("select * from trunkline.do_sweep_q(now(), 0)", &["due_q", "place_q", "TIDRANGESCAN"]),
    ("select * from trunkline.do_sweep_q(now(), 1)", &["TIDRANGESCAN"]),
    ("select trunkline.do_right_q(0)", &["due_q"]),
    ("select trunkline.do_part_q(2048, '{key 1,key 2}')", &["key_q"]),
    ("select trunkline.do_want_q(2, 0, 2, now() + interval '1 hour')", &[]),
];

#[tokio::test]
async fn queues_with_keys_are_read_along_their_lanes() {
    let url = database().await;
    without_log(&url).await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8").partitions(4)).await.expect("created");
    let sql = connect(&url).await;
    let mut called = BTreeSet::new();
    for state in ["empty", "full", "analysed", "limited"] {
        match state {
            "full" => sql
                .batch_execute(
                    "select count(*) from trunkline.enqueue_many('q', array(select generate_series(1, 20000))::int8[],
                            keys => array(select 'key ' || n % 500 from generate_series(1, 20000) n));
                     select trunkline.do_line_q('{key 3,key 4}', '{0,0}');
                     select count(*) from trunkline.do_lanes_q(100, null, 1)",
                )
                .await
                .expect("filled"),
            "analysed" => sql.batch_execute("analyze trunkline.queue_q").await.expect("analysed"),
            "limited" => {
                sql.batch_execute("select trunkline.limit_queue('q', key_per_second => 5)").await.expect("limited");
            }
            _ => {}
        }
        let relations: BTreeSet<u32> = oids(&sql, "queue_q").await.into_keys().collect();
        let indexes = oids(&sql, "due_q key_q place_q lanekey_q linekey_q deadkey_q archivekey_q").await;
        let of_statements = STATEMENTS.iter().filter_map(|(file, params, way)| {
            let text = read("sql/statements", file).replace('{', "\"").replace("_}", "_q\"");
            match way {
                Way::Either(may_use) => Some((*file, format!("prepare s as {text}; execute s({params})"), *may_use)),
                Way::NoRows => Some((*file, format!("prepare s as {text}; execute s({params})"), &[][..])),
                Way::Along(_) | Way::All(_) => None,
            }
        });
        let calls = of_statements.chain(CALLS.iter().map(|(call, may_use)| (*call, (*call).to_owned(), *may_use)));
        // In the state "limited", plans only the calls for partitions, because a rate per key
        // changes no others.
        for (_, call, may_use) in calls.filter(|(name, ..)| state != "limited" || name.contains("lanes")) {
            let planned = Planner::connect(&url, "auto", relations.clone()).await.plan(&call).await;
            called.extend(&planned.calls);
            let scans = planned.plans.iter().flat_map(|plan| plan.all()).filter(|node| node.is_scan());
            let used: BTreeSet<&str> = scans
                .map(|node| {
                    node.index().and_then(|oid| indexes.get(&oid.parse().ok()?)).map_or(&*node.name, |name| name)
                })
                .filter(|name| !["lanekey_q", "linekey_q", "deadkey_q", "archivekey_q"].contains(name))
                .collect();
            assert!(used.iter().all(|used| may_use.contains(used)), "{state}: {call} uses {used:?}");
        }
    }
    let wanted: BTreeSet<_> = functions_of(&["partitioned"]);
    let refusals = REFUSALS.iter().map(|name| format!("do_{name}_q")).collect();
    assert_eq!(&wanted - &called_of(&sql, &called).await, refusals, "planned");
}
