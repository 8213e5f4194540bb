//! A column that users add to a queue's table may have any name, also one that a function of the
//! schema uses for a parameter, a variable or an alias.

use trunkline::Settings;

use crate::fixture::{Place, place};

/// All names that the functions of the schema give to something, and that are words.
const NAMES: &str = r"
    select distinct n.name from pg_proc p,
           lateral (select unnest(p.proargnames) union select chr(97 + g) from generate_series(0, 25) g
                    union select (regexp_matches(p.prosrc, '^    ([a-z_]+) (?:constant )?(?:[a-z0-9.]+(?:\[\])?|trunkline\.[a-z]+)(?:;| :=)', 'gn'))[1]
                    union select (regexp_matches(p.prosrc, '\mas ([a-z_]+)\M', 'g'))[1]) n(name)
    where p.pronamespace = 'trunkline'::regnamespace and n.name ~ '^[a-z_]+$'
      and n.name not in ('cmax', 'cmin', 'ctid', 'metadata', 'tableoid', 'xmax', 'xmin')
      and not exists (select from pg_get_keywords() k where k.word = n.name and k.catcode = 'R')";

/// Statements that use a queue in every way, by the functions that its kind has.
const USES: &[&str] = &[
    "enqueue('q', '1', metadata => '{\"a\": \"b\"}' {key})",
    "enqueue('q', '2', delay => '1 day' {key})",
    "enqueue_many('q', array['3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14'] {keys})",
    "reschedule('q', array_agg(m.id), clock_timestamp()) from trunkline.messages('q') m where m.due_at > clock_timestamp()",
    "extend('q', l.id, l.attempt, '1 minute') from trunkline.{lease}('q', 1) l",
    "stats('q')",
    "own_columns('q', (select array_agg(m.id) from trunkline.messages('q') m))",
    "ack('q', m.id, m.attempt) from trunkline.messages('q') m where m.attempt > 0",
    "release_many('q', array_agg(l.id), array_agg(l.attempt)) from trunkline.{lease}('q', 1) l",
    "retry('q', l.id, l.attempt, '0', 'a') from trunkline.{lease}('q', 1) l",
    "retry('q', l.id, l.attempt, '0', 'a') from trunkline.{lease}('q', 1) l",
    "charge('q', m.id, m.attempt) from trunkline.messages('q') m where m.attempt = 0 limit 1",
    "bury('q', l.id, l.attempt, 'a') from trunkline.{lease}('q', 1) l",
    "archive_many('q', array_agg(l.id), array_agg(l.attempt)) from trunkline.{lease}('q', 2) l",
    "cancel('q', array[(select max(m.id) from trunkline.messages('q') m)])",
    "floor('q')",
    "do_right_q(1)",
    "do_wrong_q()",
    "dead_letters('q')",
    "replay_all('q')",
    "take('q')",
    "find('q', (select min(m.id) from trunkline.messages('q') m))",
    "compact('q', at_least => 1)",
    "rebuild('q')",
    "limit_queue('q', max_leased => 100, per_second => 1000)",
    "extend('q', l.id, l.attempt, '1 minute') from trunkline.{lease}('q', 1) l",
    "purge('q')",
    "drop_queue('q')",
];

#[tokio::test(flavor = "multi_thread")]
async fn added_column_may_have_any_name_that_a_function_uses() {
    let plain = Settings::new("text").max_attempts(2);
    let kinds = [
        ("plain", plain.clone()),
        ("priority", plain.clone().priorities(2)),
        ("unique", plain.clone().uniqueness(true)),
        ("partitioned", plain.partitions(1)),
    ];
    for (kind, settings) in kinds {
        let Place { db, sql, .. } = place::<String>(settings).await;
        let names: Vec<String> = sql.query(NAMES, &[]).await.expect("read").iter().map(|row| row.get(0)).collect();
        assert!(
            names.len() > 100 && ["clock", "q"].iter().all(|name| names.iter().any(|other| other == name)),
            "{names:?}"
        );
        let columns = names.iter().map(|name| format!("add column if not exists \"{name}\" text default 'x'"));
        let added = format!("alter table trunkline.queue_q {}", columns.collect::<Vec<_>>().join(", "));
        sql.batch_execute(&added).await.expect("added");
        let is_keyed = kind == "partitioned";
        for text in USES {
            if is_keyed && text.starts_with("take") {
                continue; // a queue with keys has no such function
            }
            let text = text
                .replace("{key}", if is_keyed { ", key => 'a'" } else { "" })
                .replace("{keys}", if is_keyed { ", keys => array_fill('a'::text, array[12])" } else { "" })
                .replace("{lease}", if is_keyed { "lease_partition" } else { "lease" });
            let used = sql.batch_execute(&format!("select trunkline.{text}")).await;
            used.unwrap_or_else(|error| panic!("{kind}, {text}: {error:?}"));
            if is_keyed && text.contains("lease_partition") {
                sql.batch_execute("update trunkline.lane_q set holder = null, held_until = '-infinity'")
                    .await
                    .expect("released");
            }
            if !text.starts_with("drop") {
                db.queue::<String>("q").await.expect("opened").stats().await.expect("counted");
            }
        }
    }
}
