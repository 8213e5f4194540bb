//! A tick that fails, with any error and at any time, blocks no other schedule.

use std::time::{Duration, SystemTime};

use trunkline::{Missed, Schedule, Settings};

use super::{Ticks, YEARLY, not_since, one, ticks};
use crate::fixture::{Place, connect, eventually, place, within};

/// Errors that triggers may raise, and errors of the server itself.
const CODES: [&str; 13] = [
    "UE001", "XX000", "0A000", "55000", "38000", "55P03", "40001", "40P01", "57014", "53200", "P0001", "42501", "22000",
];

#[tokio::test(flavor = "multi_thread")]
async fn failing_tick_stops_no_other_whatever_the_error() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let refuse = "create function public.refuse() returns trigger language plpgsql as $$ begin
            raise exception 'refused by the trigger of %', tg_table_name using errcode = tg_argv[0]; end $$";
    sql.batch_execute(refuse).await.expect("made");
    let mut names = Vec::new();
    for (nr, code) in CODES.into_iter().enumerate() {
        for (when, trigger) in [("now", "trigger"), ("late", "constraint trigger")] {
            let name = format!("bad.{nr}.{when}");
            db.create_queue(&name, &Settings::new("int8")).await.expect("created");
            let (before, deferred) = match when {
                "now" => ("before", ""),
                _ => ("after", "deferrable initially deferred"),
            };
            let made = format!(
                "create {trigger} refuses {before} insert on trunkline.\"queue_{name}\" {deferred} for each row execute function public.refuse('{code}')"
            );
            sql.batch_execute(&made).await.expect("made");
            let bad = db.queue::<i64>(&name).await.expect("opened");
            bad.schedule(&Schedule::new(name.as_str(), YEARLY), &1).await.expect("set");
            not_since(&sql, &name, "now() - interval '1 s'").await;
            names.push((code, name));
        }
    }
    queue.schedule(&Schedule::new("good", YEARLY), &1).await.expect("set");
    not_since(&sql, "good", "now()").await;
    let runs = Ticks::start(&db);
    eventually("the good one ticks", async || one(&db, "good").await.last.is_some()).await;
    for (_, name) in &names {
        eventually("its problem is written down", async || one(&db, name).await.problem.is_some()).await;
        let bad = one(&db, name).await;
        assert!(bad.last.is_none() && bad.problem.is_some_and(|why| why.contains("refused by the trigger")), "{name}");
    }
    for (code, name) in &names {
        let is_given_up = ["P0", "42", "22"].contains(&&code[..2]);
        let next = one(&db, name).await.next.expect("one");
        assert_eq!(next > SystemTime::now(), is_given_up, "{name} of {code} ticks at {next:?}");
        sql.batch_execute(&format!("drop trigger refuses on trunkline.\"queue_{name}\"")).await.expect("mended");
    }
    for (code, name) in &names {
        if !["P0", "42", "22"].contains(&&code[..2]) {
            eventually("what is owed is made", async || one(&db, name).await.last.is_some()).await;
            assert_eq!(one(&db, name).await.problem, None, "{name}");
        }
    }
    runs.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_queue_holds_up_its_own_schedules_alone() {
    let Place { db, queue, sql, url } = place::<i64>(Settings::new("int8")).await;
    db.create_queue("locked", &Settings::new("int8")).await.expect("created");
    let locked = db.queue::<i64>("locked").await.expect("opened");
    locked.schedule(&Schedule::new("locked", YEARLY), &1).await.expect("set");
    queue.schedule(&Schedule::new("good", YEARLY), &1).await.expect("set");
    let holder = connect(&url).await;
    holder.batch_execute("begin; lock table trunkline.queue_locked in share mode").await.expect("locked");
    not_since(&sql, "locked", "now() - interval '1 s'").await;
    not_since(&sql, "good", "now()").await;
    let runs = Ticks::start(&db);
    eventually("the good one ticks", async || one(&db, "good").await.last.is_some()).await;
    assert!(one(&db, "locked").await.problem.is_some_and(|why| why.contains("lock")), "it says why");
    holder.batch_execute("commit").await.expect("let go");
    within(Duration::from_secs(40), "it ticks", async || one(&db, "locked").await.last.is_some()).await;
    assert_eq!(locked.stats().await.expect("counted").messages, 1, "once");
    runs.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_schedules_of_a_locked_queue_delay_others_as_little_as_one() {
    const LOCKED: usize = 20;
    let Place { db, queue, sql, url } = place::<i64>(Settings::new("int8")).await;
    db.create_queue("locked", &Settings::new("int8")).await.expect("created");
    let locked = db.queue::<i64>("locked").await.expect("opened");
    for nr in 0..LOCKED {
        locked.schedule(&Schedule::new(format!("locked.{nr}"), YEARLY), &1).await.expect("set");
        not_since(&sql, &format!("locked.{nr}"), "now() - interval '1 s'").await;
    }
    queue.schedule(&Schedule::new("good", YEARLY), &1).await.expect("set");
    not_since(&sql, "good", "now()").await;
    let holder = connect(&url).await;
    holder.batch_execute("begin; lock table trunkline.queue_locked in share mode").await.expect("locked");
    let runs = Ticks::start(&db);
    // Allows for two waits for the lock, which take two seconds. One wait for each schedule would
    // take twenty.
    within(Duration::from_secs(12), "the good one ticks", async || one(&db, "good").await.last.is_some()).await;
    for nr in 0..LOCKED {
        let problem = one(&db, &format!("locked.{nr}")).await.problem;
        assert!(problem.as_ref().is_some_and(|why| why.contains("lock")), "{nr}: {problem:?}");
    }
    holder.batch_execute("commit").await.expect("let go");
    within(Duration::from_secs(60), "all tick", async || {
        locked.stats().await.expect("counted").messages == LOCKED as u64
    })
    .await;
    runs.stop().await;
    assert!(
        sql.query_one("select bool_and(problem is null) from trunkline.schedule", &[])
            .await
            .expect("read")
            .get::<_, bool>(0)
    );
}

/// A drain closes a queue with this constraint, and a resume drops it.
#[tokio::test(flavor = "multi_thread")]
async fn ticks_of_a_drained_queue_are_made_after_its_resume() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    queue.schedule(&Schedule::new("owed", YEARLY).missed(Missed::Each), &1).await.expect("set");
    sql.batch_execute("alter table trunkline.queue_q add constraint drained check (false)").await.expect("drained");
    not_since(&sql, "owed", "'2020-01-01T00:00:00Z'").await;
    let runs = Ticks::start(&db);
    eventually("it says so", async || one(&db, "owed").await.problem.is_some()).await;
    runs.stop().await;
    let resume = "alter table trunkline.queue_q drop constraint drained; update trunkline.schedule set next_at = now()";
    sql.batch_execute(resume).await.expect("resumed");
    let runs = Ticks::start(&db);
    eventually("its ticks are made", async || one(&db, "owed").await.problem.is_none()).await;
    runs.stop().await;
    let made = ticks(&queue.take(1000).await.expect("taken"));
    assert_eq!(made[..2], ["2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn expression_that_one_process_cannot_read_is_left_to_others() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let set = "select trunkline.set_schedule('bad', 'q', '99 * * * *', '1')";
    sql.batch_execute(set).await.expect("SQL cannot tell");
    for (since, placed) in [("2020-01-01T00:00:00Z", true), ("2020-12-31T23:59:00Z", false)] {
        let due = format!("update trunkline.schedule set next_at = '{since}', placed = {placed}");
        sql.batch_execute(&due).await.expect("due");
        let runs = Ticks::start(&db);
        eventually("it says so", async || one(&db, "bad").await.problem.is_some()).await;
        runs.stop().await;
        let owed = format!(
            "select placed = {placed} and owed_at = '{since}' and next_at <= now() + interval '1 minute' from trunkline.schedule"
        );
        assert!(sql.query_one(&owed, &[]).await.expect("read").get::<_, bool>(0), "nothing is lost");
        // Makes the schedule readable, as if a newer process had started.
        let read = format!("update trunkline.schedule set expression = '{YEARLY}', missed = 'each', next_at = now()");
        sql.batch_execute(&read).await.expect("readable");
        let runs = Ticks::start(&db);
        eventually("the tick is made", async || one(&db, "bad").await.problem.is_none()).await;
        runs.stop().await;
        let made = ticks(&queue.take(1000).await.expect("taken"));
        let first = if placed { "2020-01-01T00:00:00Z" } else { "2021-01-01T00:00:00Z" };
        assert_eq!(made[0], first, "{made:?}");
        sql.batch_execute("update trunkline.schedule set expression = '99 * * * *'").await.expect("unreadable again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn due_schedule_that_one_process_cannot_read_stays_due_for_a_moment() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("select trunkline.set_schedule('bad', 'q', '99 * * * *', '1')").await.expect("set");
    let place =
        "with due as (update trunkline.schedule set next_at = clock_timestamp() - $1::text::interval returning next_at)
                 select next_at from due";
    let left = "select trunkline.place_schedules(array[s.ctid], array[null::timestamptz], array[null::timestamptz], array['why'])
                from trunkline.schedule s";
    let state = "select next_at, owed_at, problem, next_at > clock_timestamp() from trunkline.schedule";
    for (age, is_left) in [("0", true), ("5 s", false)] {
        let due: SystemTime = sql.query_one(place, &[&age]).await.expect("due").get(0);
        sql.batch_execute(left).await.expect("left");
        let state = sql.query_one(state, &[]).await.expect("read");
        let (next, owed): (SystemTime, Option<SystemTime>) = (state.get(0), state.get(1));
        assert_eq!(state.get::<_, Option<&str>>(2).is_none(), is_left);
        match is_left {
            true => assert_eq!((next, owed), (due, None)),
            false => assert!(owed == Some(due) && state.get::<_, bool>(3)),
        }
    }
}
