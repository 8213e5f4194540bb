//! A role with a right to one queue creates types, tables, views and values. None of them affects
//! the owner or another queue.

use tokio_postgres::{Client, error::SqlState};
use trunkline::{Draft, Settings};

use crate::fixture::{Place, connect, place, superuser};

/// Creates two queues, and a session of a role that has rights to the first queue and may create
/// schemas.
async fn outsider(kind: &str, role: &str, settings: Settings) -> (Place<i64>, Client) {
    let here = place::<i64>(settings).await;
    here.db.create_queue("other", &Settings::new("int8")).await.expect("created");
    let admin = superuser(&here.url).await;
    let create = format!(
        "do $$ begin create role {role} login; exception when duplicate_object or unique_violation then null; end $$;
         do $$ begin execute format('grant create on database %I to {role}', current_database()); end $$"
    );
    admin.batch_execute(&create).await.expect("created");
    here.sql.batch_execute(&format!("select trunkline.grant_rights('{role}', '{kind}', 'q')")).await.expect("granted");
    let sql = connect(&format!("{} user={role}", here.url)).await;
    sql.batch_execute("create schema own").await.expect("created");
    (here, sql)
}

fn code<T: std::fmt::Debug>(outcome: Result<T, tokio_postgres::Error>) -> Option<String> {
    outcome.expect_err("refused").code().map(|state| state.code().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_triggers_serve_no_table_of_another_role() {
    let (here, sql) = outsider("producer", "outsider_producer", Settings::new("int8")).await;
    here.sql.batch_execute("select trunkline.enqueue('other', 1::int8)").await.expect("enqueued");
    // Creates a cast with the role. If the trigger used it, the cast would run with the rights of
    // the trigger's owner.
    sql.batch_execute(
        "create type own.id as (n int); create table own.seen (who name);
         create function own.cast(own.id) returns bigint language plpgsql as $$ begin insert into own.seen values (current_user); return 1024; end $$;
         create cast (own.id as bigint) with function own.cast(own.id) as implicit;
         grant all on schema own to public; grant all on own.seen to public",
    )
    .await
    .expect("created");
    let owners = "select format('trunkline.%I()', p.proname) from pg_proc p
                  where p.pronamespace = 'trunkline'::regnamespace and p.prosecdef and p.prorettype = 'trigger'::regtype";
    let functions = here.sql.query(owners, &[]).await.expect("read");
    assert!(!functions.is_empty());
    for row in functions {
        let function: String = row.get(0);
        for table in ["dead_other", "queue_other", "archive_q"] {
            for (kind, value) in [("own.id", "row(1)::own.id"), ("bigint", "1024")] {
                let made = format!(
                    "create table own.{table} (id {kind});
                     create trigger t before insert on own.{table} for each row execute function {function}"
                );
                sql.batch_execute(&made).await.expect("its own table");
                let fired = sql.batch_execute(&format!("insert into own.{table} values ({value})")).await;
                assert_eq!(code(fired).as_deref(), Some("42501"), "{function} of {table}");
                sql.batch_execute(&format!("drop table own.{table}")).await.expect("dropped");
            }
        }
    }
    let seen = sql.query_one("select count(*) from own.seen", &[]).await.expect("read");
    assert_eq!(seen.get::<_, i64>(0), 0, "nothing of its own ran as the owner");
}

/// The owner's functions compare text by the column's collation. With a collation that the caller
/// chose, all names might be equal.
#[tokio::test(flavor = "multi_thread")]
async fn owners_functions_compare_by_no_collation_of_the_caller() {
    let (here, sql) = outsider("producer", "outsider_producer", Settings::new("int8")).await;
    here.sql.batch_execute("insert into trunkline.waiting values ('abcdef', 'other', 1)").await.expect("inserted");
    // Uses the default collation on a server without ICU, which has no collation that ignores case.
    let collation = "create collation own.any (provider = icu, locale = 'und-u-ks-level1', deterministic = false)";
    let collation = match sql.batch_execute(collation).await {
        Ok(()) => "own.any",
        Err(error) => {
            assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{error:?}");
            "\"default\""
        }
    };
    let texts = "select format('trunkline.%I(%s)', p.proname, (
                     select string_agg(case when t = 'text'::regtype then format('%L::text collate %s', 'ABCDEF', $1::text) else 'null' end, ', ')
                     from unnest(p.proargtypes::oid[]) t))
                 from pg_proc p where p.pronamespace = 'trunkline'::regnamespace and p.prosecdef and 'text'::regtype = any (p.proargtypes::oid[])";
    let calls = here.sql.query(texts, &[&collation]).await.expect("read");
    assert!(!calls.is_empty());
    for row in calls {
        let call: String = row.get(0);
        let found = sql.query(&format!("select {call}"), &[]).await.expect(&call);
        assert!(found.is_empty(), "{call} knows nothing of that name");
    }
    let left = here.sql.query_one("select count(*) from trunkline.waiting", &[]).await.expect("read");
    assert_eq!(left.get::<_, i64>(0), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dependent_objects_go_with_their_queue_if_asked() {
    let (here, sql) = outsider("producer", "outsider_producer", Settings::new("int8")).await;
    here.db.limit_queue("other", &trunkline::Limits::none().per_second(1.0)).await.expect("limited");
    // The role creates objects that depend on the other queue, for which it needs no right to that
    // queue.
    sql.batch_execute(
        "create view own.rows as select * from trunkline.queue_other; create view own.messages as select * from trunkline.messages_other;
         create view own.limits as select * from trunkline.limit_other;
         create table own.typed (r trunkline.queue_other, n int);
         create function own.calls() returns float8 begin atomic select due_in from trunkline.do_look_other('-infinity'); end",
    )
    .await
    .expect("created");
    here.db.limit_queue("other", &trunkline::Limits::none()).await.expect("nothing keeps a limit");
    let error = here.db.drop_queue("other").await.expect_err("others depend on it");
    assert!(error.to_string().contains("cascade => true"), "{error}");
    let still =
        here.sql.query_one("select trunkline.enqueue('other', 1::int8) is not null", &[]).await.expect("all is there");
    assert!(still.get::<_, bool>(0));
    here.sql.batch_execute("select trunkline.drop_queue('other', cascade => true)").await.expect("dropped");
    let left = "select array(select relname::text from pg_class where relnamespace = 'own'::regnamespace)
                     || array(select attname::text from pg_attribute where attrelid = to_regclass('own.typed') and attnum > 0 and not attisdropped)";
    let left: Vec<String> = here.sql.query_one(left, &[]).await.expect("read").get(0);
    assert_eq!(left, ["typed", "n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wild_id_of_a_dead_letter_ends_no_sequence() {
    let (here, sql) = outsider("consumer", "outsider_consumer", Settings::new("int8")).await;
    let last = here.queue.enqueue(1).await.expect("enqueued").id();
    for id in [i64::MAX, i64::MAX - 2000, i64::MAX / 2 + 1] {
        for _ in 0..2 {
            let letter = format!(
                "insert into trunkline.dead_q (id, enqueued_at, attempt, error, payload) values ({id}, now(), 1, '', 1)"
            );
            sql.batch_execute(&letter).await.expect("it may");
        }
    }
    let next = here.queue.enqueue(2).await.expect("enqueued").id();
    assert!(next > last && next < last + 64 * 1024, "{next} after {last}");
    // A sequence that has reached its maximum is repaired.
    here.sql.batch_execute("select setval('trunkline.id_q', 9223372036854775807)").await.expect("set");
    here.queue.enqueue(3).await.expect_err("no number is left");
    here.sql.batch_execute("select trunkline.rebuild('q')").await.expect("rebuilt");
    let again = here.queue.enqueue(3).await.expect("enqueued").id();
    assert!(again > next && again < next + 64 * 1024, "{again} after {next}");
    here.sql.batch_execute("select setval('trunkline.id_q', 9223372036854775807)").await.expect("set");
    here.db.drop_queue("q").await.expect("dropped");
    here.db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let newest = here.db.queue::<i64>("q").await.expect("opened").enqueue(4).await.expect("enqueued").id();
    assert!(newest > again && newest < again + 64 * 1024, "{newest} after {again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uncommitted_relay_row_blocks_no_change_of_a_queue() {
    let (here, sql) = outsider("producer", "outsider_producer", Settings::new("int8")).await;
    sql.batch_execute("begin; insert into trunkline.relay (name, queue, broker, inward) values ('r', 'q', 'b', true)")
        .await
        .expect("its own");
    here.sql
        .batch_execute("set lock_timeout = '10s'; select trunkline.alter_queue('q', 7), trunkline.pause_queue('q')")
        .await
        .expect("nothing is waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_no_program_writes_are_refused_in_shared_tables() {
    let (here, sql) = outsider("consumer", "outsider_consumer", Settings::new("int8").uniqueness(true)).await;
    here.queue.enqueue(Draft::new(1).unique(trunkline::Unique::key("k"))).await.expect("enqueued");
    let report = |change: (&str, &str)| {
        let fields = [
            ("process", "1"),
            ("version", "'1'"),
            ("started_at", "now()"),
            ("seconds", "1"),
            ("handled", "1"),
            ("failed", "1"),
            ("running", "1"),
            ("hands", "1"),
            ("p50", "1"),
            ("p99", "1"),
        ];
        let (names, values): (Vec<&str>, Vec<&str>) =
            fields.into_iter().map(|(name, value)| (name, if name == change.0 { change.1 } else { value })).unzip();
        format!(
            "insert into trunkline.worker (worker, queue, ended, {}) values (gen_random_uuid(), 'q', false, {})",
            names.join(", "),
            values.join(", ")
        )
    };
    sql.batch_execute(&report(("", ""))).await.expect("what a worker reports");
    let mut wild: Vec<String> = [
        ("process", "-1"),
        ("process", "0"),
        ("version", "repeat('9', 101)"),
        ("started_at", "'infinity'"),
        ("seconds", "'nan'"),
        ("seconds", "-1"),
        ("handled", "9223372036854775807"),
        ("handled", "-1"),
        ("failed", "9223372036854775807"),
        ("running", "-1"),
        ("hands", "9223372036854775807"),
        ("p50", "'nan'"),
        ("p99", "'infinity'"),
    ]
    .map(report)
    .to_vec();
    wild.extend(
        [
            "floor set reached = 'infinity'",
            "floor set shown = 'infinity'",
            "floor set shown = '-infinity'",
            "unique_q set until = 'infinity'",
            "unique_q set until = now(), claimed_at = 'infinity'",
            "unique_q set until = '4714-11-24 BC', claimed_at = now()",
        ]
        .map(|set| format!("update trunkline.{set}")),
    );
    for statement in wild {
        let error = sql.batch_execute(&statement).await.expect_err(&statement);
        assert_eq!(error.code(), Some(&SqlState::CHECK_VIOLATION), "{statement}: {error:?}");
    }
    here.sql.batch_execute("select trunkline.set_schedule('s', 'q', '@daily', '1')").await.expect("made");
    for time in ["next_at = '-infinity'", "owed_at = 'infinity'"] {
        let error = here.sql.batch_execute(&format!("update trunkline.schedule set {time}")).await.expect_err(time);
        assert_eq!(error.code(), Some(&SqlState::CHECK_VIOLATION), "{time}: {error:?}");
    }
}
