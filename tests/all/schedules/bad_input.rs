//! Invalid schedules are refused, and a schedule that fails later does not block any other.

use std::time::SystemTime;

use trunkline::{Metadata, Schedule, Settings};

use super::{Ticks, YEARLY, not_since, one};
use crate::fixture::{Place, eventually, place};

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_says_what_would_be_good() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let long = Metadata::new().with("a", "x".repeat(16_350));
    let cases = [
        (Schedule::new("No", YEARLY), "a lower-case letter"),
        (Schedule::new("n", "soon"), "five cron fields"),
        (Schedule::new("n", "99 * * * *"), "five cron fields"),
        (Schedule::new("n", "0 0 30 2 *"), "no such date"),
        (Schedule::new("n", YEARLY).zone("Mars/Olympus"), "Europe/Berlin"),
        (Schedule::new("n", YEARLY).metadata(long), "16,384 bytes"),
        (Schedule::new("n", YEARLY).priority(1), "Settings::priorities"),
    ];
    for (schedule, word) in cases {
        let error = queue.schedule(&schedule, &1).await.expect_err(word).to_string();
        assert!(error.contains(word), "{schedule:?}: {error}");
    }
    let calls = [
        ("'n', 'nowhere', '@daily', '1'", "there is no queue"),
        ("'n', 'q', '@daily', 'seven'", "invalid input syntax"),
        ("'n', 'q', '@daily', null", "is null"),
        ("'n', 'q', '* * *', '1'", "invalid schedule expression"),
        ("'n', 'q', null, '1'", "invalid schedule expression"),
        ("'n', 'q', '@daily', '1', 'Mars/Olympus'", "time zone"),
        ("'n', 'q', '@daily', '1', null", "time zone"),
        ("'n', 'q', '@daily', '1', missed => 'twice'", "skip, once or each"),
        ("'n', 'q', '@daily', '1', metadata => '[]'", "metadata must be a JSON object"),
        ("'n', 'q', '@daily', '1', metadata => '1'", "metadata must be a JSON object, not 1 Pass names"),
        ("'N', 'q', '@daily', '1'", "cannot be named"),
        ("'n', 'q', '@daily', '1', priority => 1", "priorities => 4"),
        ("'n', 'q', '@daily', '1', priority => -1", "no priority -1"),
        ("'n', 'q', '@daily', '1', priority => null", "no priority null"),
    ];
    for (call, word) in calls {
        let error = sql.batch_execute(&format!("select trunkline.set_schedule({call})")).await.expect_err(call);
        let error = error.as_db_error().expect("the server's");
        let told = format!("{} {}", error.message(), error.hint().unwrap_or_default());
        assert!(told.contains(word), "{call}: {told}");
    }
    assert_eq!(db.schedules().await.expect("listed"), []);
}

/// `PostgreSQL` reads more time zones than the processes that make the ticks.
#[tokio::test(flavor = "multi_thread")]
async fn only_zones_that_every_process_reads_are_accepted() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    let zones = [
        "+02:00",
        "CEST",
        "EST6",
        "<+02>-2",
        "Europe/Berlim5",
        "GMT+5",
        "localtime",
        "posixrules",
        "posix/Europe/Berlin",
        "",
    ];
    for zone in zones {
        let set = format!("select trunkline.set_schedule('n', 'q', '@daily', '1', '{zone}')");
        let error = sql.batch_execute(&set).await.expect_err(zone);
        let error = error.as_db_error().expect("the server's");
        assert!(error.hint().is_some_and(|hint| hint.contains("Europe/Berlin")), "{zone}: {error:?}");
    }
    for zone in
        ["UTC", "Europe/Berlin", "europe/berlin", "EST5EDT", "Etc/GMT+5", "GB-Eire", "America/Argentina/Buenos_Aires"]
    {
        let set = format!("select trunkline.set_schedule('n', 'q', '@daily', '1', '{zone}')");
        sql.batch_execute(&set).await.expect(zone);
        Schedule::new("n", YEARLY).zone(zone).next_after(SystemTime::now()).expect(zone);
    }
    // Stores a zone that an older version accepted.
    sql.batch_execute("update trunkline.schedule set zone = 'CEST'").await.expect("changed");
    let again = "select trunkline.set_schedule('n', 'q', '@daily', '1', 'CEST')";
    assert!(sql.batch_execute(again).await.is_err(), "it would never tick");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_schedule_notes_its_problem_and_holds_up_no_other() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    for (name, expression) in [("bad", "99 * * * *"), ("never", "0 0 30 2 *")] {
        let set = format!("select trunkline.set_schedule('{name}', 'q', '{expression}', '1')");
        sql.batch_execute(&set).await.expect("SQL cannot tell");
    }
    queue.schedule(&Schedule::new("good", YEARLY), &7).await.expect("set");
    not_since(&sql, "good", "now()").await;
    let runs = Ticks::start(&db);
    eventually("the good one ticks", async || one(&db, "good").await.last.is_some()).await;
    eventually("the bad one is left by all", async || one(&db, "bad").await.problem.is_some()).await;
    let (bad, never) = (one(&db, "bad").await, one(&db, "never").await);
    assert!(bad.problem.as_deref().is_some_and(|why| why.contains("99 * * * *")) && bad.next.is_none(), "{bad:?}");
    assert!(never.problem.as_deref().is_some_and(|why| why.contains("no such date")), "{never:?}");
    // Once the schedule is corrected, it continues.
    assert!(queue.schedule(&Schedule::new("bad", YEARLY), &1).await.expect("set"));
    eventually("it is mended", async || one(&db, "bad").await.next > Some(SystemTime::now())).await;
    assert_eq!(one(&db, "bad").await.problem, None);
    runs.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_tick_is_reported_and_holds_up_no_other() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    for (name, payload) in [("a", 1), ("b", 2), ("c", 3)] {
        queue.schedule(&Schedule::new(name, YEARLY), &payload).await.expect("set");
    }
    let constraint = "alter table trunkline.queue_q add constraint not_two check (not 2 = any (payload)) not valid";
    sql.batch_execute(constraint).await.expect("added");
    for name in ["a", "b", "c"] {
        not_since(&sql, name, "now()").await;
    }
    let runs = Ticks::start(&db);
    eventually("the others tick", async || one(&db, "a").await.last.is_some() && one(&db, "c").await.last.is_some())
        .await;
    eventually("it is told", async || one(&db, "b").await.problem.is_some()).await;
    let refused = one(&db, "b").await;
    assert!(refused.problem.as_deref().is_some_and(|why| why.contains("not_two")), "{refused:?}");
    assert!(refused.last.is_none() && refused.next > Some(SystemTime::now()), "the next tick is tried: {refused:?}");
    sql.batch_execute("alter table trunkline.queue_q drop constraint not_two").await.expect("dropped");
    not_since(&sql, "b", "now()").await;
    eventually("it ticks again", async || one(&db, "b").await.last.is_some()).await;
    assert_eq!(one(&db, "b").await.problem, None);
    runs.stop().await;
    let mut payloads: Vec<i64> = queue.take(10).await.expect("taken").iter().map(|message| message.payload).collect();
    payloads.sort_unstable();
    assert_eq!(payloads, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tick_is_given_up_for_what_passes() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    queue.schedule(&Schedule::new("a", YEARLY), &1).await.expect("set");
    // Simulates a full disk, until a row exists in `public.room`.
    let full = "create table public.room (is_there bool); create sequence public.tries;
        create function public.full_disk() returns trigger language plpgsql as $$ begin
            perform nextval('public.tries');
            if not exists (select from public.room) then raise exception 'no room' using errcode = 'disk_full'; end if; return new;
        end $$;
        create trigger full_disk before insert on trunkline.queue_q for each row execute function public.full_disk();";
    sql.batch_execute(full).await.expect("full");
    not_since(&sql, "a", "now()").await;
    let runs = Ticks::start(&db);
    eventually("it was tried", async || {
        sql.query_one("select last_value > 2 from public.tries", &[]).await.expect("read").get(0)
    })
    .await;
    let owed = one(&db, "a").await;
    assert!(owed.last.is_none() && owed.problem.as_deref().is_some_and(|why| why.contains("no room")), "{owed:?}");
    assert!(owed.next <= Some(SystemTime::now()), "it is owed: {owed:?}");
    sql.batch_execute("insert into public.room values (true)").await.expect("room");
    eventually("the tick", async || one(&db, "a").await.last.is_some()).await;
    assert_eq!(one(&db, "a").await.problem, None);
    runs.stop().await;
    assert_eq!(queue.take(10).await.expect("taken").len(), 1);
}
