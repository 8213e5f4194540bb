//! Tests schedules that no process has read since they were set, changed or resumed.

use std::time::{Duration, SystemTime};

use tokio_postgres::Client;
use trunkline::{Missed, Schedule, Settings};

use super::{Ticks, YEARLY, one, ticks};
use crate::fixture::{Place, eventually, place, within};

/// Moves the time at which the schedule was set, changed or resumed into the past.
async fn set_at(sql: &Client, name: &str, when: &str) {
    let moved = format!("update trunkline.schedule set next_at = {when} where name = '{name}' and not placed");
    assert_eq!(sql.execute(&moved, &[]).await.expect("moved"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_before_the_first_look_are_made_as_if_they_were_missed() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    // Declares an hourly schedule whose last tick was ten minutes ago, so that even this tick
    // counts as missed.
    let minute = "select format('%s * * * *', extract(minute from now() at time zone 'UTC' - interval '10 min'))";
    let hourly: String = sql.query_one(minute, &[]).await.expect("a minute").get(0);
    let since = "now() - interval '3 hours 30 minutes'";
    for (missed, count) in [(Missed::Skip, 0), (Missed::Once, 1), (Missed::Each, 4)] {
        let schedule = Schedule::new("s", hourly.as_str()).missed(missed);
        for how in ["set", "changed", "resumed"] {
            match how {
                "set" => assert!(queue.schedule(&schedule, &1).await.expect("set")),
                "changed" => {
                    queue.schedule(&Schedule::new("s", YEARLY).missed(missed), &1).await.expect("set");
                    queue.schedule(&schedule, &1).await.expect("changed");
                }
                _ => {
                    db.pause_schedule("s").await.expect("paused");
                    db.resume_schedule("s").await.expect("resumed");
                }
            }
            set_at(&sql, "s", since).await;
            let runs = Ticks::start(&db);
            eventually("it is placed", async || one(&db, "s").await.next > Some(SystemTime::now())).await;
            runs.stop().await;
            let made = queue.take(10).await.expect("taken");
            assert_eq!(made.len(), count, "{how}, {missed:?}: {:?}", ticks(&made));
        }
        db.drop_schedule("s").await.expect("dropped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_tick_that_fails_stays_owed() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let refuse = "create function public.refuse() returns trigger language plpgsql as $$ begin
            raise exception 'refused' using errcode = '53200'; end $$;
         create trigger refuses before insert on trunkline.queue_q for each row execute function public.refuse()";
    sql.batch_execute(refuse).await.expect("made");
    queue.schedule(&Schedule::new("s", YEARLY), &1).await.expect("set");
    set_at(&sql, "s", "now() - interval '1 year'").await;
    let runs = Ticks::start(&db);
    eventually("its problem is written down", async || one(&db, "s").await.problem.is_some()).await;
    runs.stop().await;
    sql.batch_execute(
        "drop trigger refuses on trunkline.queue_q; update trunkline.schedule set next_at = now() where next_at > now()",
    )
    .await
    .expect("mended");
    let runs = Ticks::start(&db);
    within(Duration::from_secs(20), "the tick is made", async || one(&db, "s").await.last.is_some()).await;
    assert!(one(&db, "s").await.problem.is_none());
    runs.stop().await;
    let made = queue.take(10).await.expect("taken");
    assert!(made.len() == 1 && ticks(&made)[0].ends_with("-01-01T00:00:00Z"), "{:?}", ticks(&made));
}
