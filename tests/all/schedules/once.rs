//! Each tick happens once, regardless of what happens to the processes that make the ticks.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::timeout;
use trunkline::{Db, Missed, Schedule, Settings};

use super::{Ticks, not_since, one};
use crate::fixture::{Place, SOON, Said, connect, eventually, place};

#[tokio::test(flavor = "multi_thread")]
async fn ticks_are_made_once_by_processes_with_cut_connections() {
    const SCHEDULES: usize = 200;
    let Place { db: _db, queue, sql, url } = place::<i64>(Settings::new("int8")).await;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(Db::connect(&url).await.expect("connected"));
    }
    for nr in 0..SCHEDULES {
        let schedule = Schedule::new(format!("each.second.{nr}"), "every second").missed(Missed::Each);
        queue.schedule(&schedule, &(nr as i64)).await.expect("set");
    }
    let runs: Vec<Ticks> = others.iter().map(Ticks::start).collect();
    let killer = connect(&url).await;
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where application_name = 'trunkline' and datname = current_database() and query like '%schedule%' and random() < 0.5";
    let since: std::time::SystemTime = sql.query_one("select clock_timestamp()", &[]).await.expect("a time").get(0);
    let through = since + Duration::from_secs(6);
    // Terminates half of the sessions that run a statement about schedules. Such a statement may be
    // part of a tick or one of the library's own queries.
    let made = "select coalesce(bool_and(last_at > $1), false) from trunkline.schedule";
    let six_seconds = async {
        while !sql.query_one(made, &[&through]).await.expect("read").get::<_, bool>(0) {
            killer.query_one(cut, &[]).await.expect("cut");
            // Lets the processes make progress. After a pause of a whole second, every cut would
            // hit the same moment of a tick.
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
    };
    timeout(SOON * 8, six_seconds).await.expect("six seconds of ticks");
    for runs in runs {
        runs.stop().await;
    }
    let made = queue.take(1_000_000).await.expect("taken");
    let mut by_schedule: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for message in &made {
        let name = message.metadata.get("schedule").expect("a name");
        by_schedule.entry(name).or_default().push(message.metadata.get("tick").expect("a tick"));
    }
    assert_eq!(by_schedule.len(), SCHEDULES);
    for (name, mut ticks) in by_schedule {
        ticks.sort_unstable();
        let seconds: Vec<i64> = ticks.iter().map(|tick| second(tick)).collect();
        let expected: Vec<i64> = (seconds[0]..).take(seconds.len()).collect();
        assert_eq!(seconds, expected, "{name}: each second once");
        assert!(seconds.len() >= 6, "{name}: {}", seconds.len());
    }
}

/// Returns the second of the day at which a tick was made.
fn second(tick: &str) -> i64 {
    let part = |range: std::ops::Range<usize>| tick[range].parse::<i64>().expect("digits");
    part(8..10) * 86_400 + part(11..13) * 3600 + part(14..16) * 60 + part(17..19)
}

#[tokio::test]
async fn tick_claimed_and_not_made_is_made_by_another_process() {
    let Place { db, queue, sql, url } = place::<i64>(Settings::new("int8")).await;
    queue.schedule(&Schedule::new("yearly", "0 0 1 1 *"), &1).await.expect("set");
    not_since(&sql, "yearly", "now()").await;
    let holder = connect(&url).await;
    holder.batch_execute("begin; select * from trunkline.claim_schedules('-infinity', 10)").await.expect("locked");
    let said = Said::statements();
    let _ear = said.listen();
    let runs = Ticks::start(&db);
    // Between two looks that find the schedule due, the process tries to claim it.
    let mut looks = 0;
    eventually("it has tried to claim what another session has locked", || {
        looks += said.take().iter().filter(|line| line.contains("schedules_due_in")).count();
        std::future::ready(looks >= 2)
    })
    .await;
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
    holder.batch_execute("rollback").await.expect("let go");
    eventually("the tick", async || one(&db, "yearly").await.last.is_some()).await;
    runs.stop().await;
    assert_eq!(queue.take(10).await.expect("taken").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_ticks_are_made_in_transactions_of_a_thousand_messages() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    for nr in 0..8 {
        let schedule = Schedule::new(format!("each.second.{nr}"), "every second").missed(Missed::Each);
        queue.schedule(&schedule, &nr).await.expect("set");
        db.pause_schedule(schedule_name(nr).as_str()).await.expect("paused until all are there");
        let since = if nr < 4 { "1 hour" } else { "300 seconds" };
        not_since(&sql, &schedule_name(nr), &format!("date_trunc('second', now()) - interval '{since}'")).await;
    }
    sql.batch_execute("update trunkline.schedule set paused = false").await.expect("all at once");
    let runs = Ticks::start(&db);
    eventually("all is made up for", async || {
        let all = "select bool_and(next_at > now() - interval '2 s') from trunkline.schedule";
        sql.query_one(all, &[]).await.expect("read").get(0)
    })
    .await;
    runs.stop().await;
    let made = "select max(m.made), count(*), sum(m.made)::int8
                from (select sum(size)::int8 as made from trunkline.queue_q group by xmin::text) m";
    let made = sql.query_one(made, &[]).await.expect("read");
    let (most, transactions, all): (i64, i64, i64) = (made.get(0), made.get(1), made.get(2));
    assert!(most <= 1000, "{most} messages in one transaction");
    assert!(all >= 4 * 1000 + 4 * 300 && transactions >= 6, "{all} in {transactions} transactions");
}

fn schedule_name(nr: i64) -> String {
    format!("each.second.{nr}")
}
