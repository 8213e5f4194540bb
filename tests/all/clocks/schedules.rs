//! Tests schedules whose next tick was computed while the clock was ahead.

use std::time::{Duration, SystemTime};

use trunkline::{Missed, Queue, Schedule, Settings};

use super::{AHEAD, Clock, HOUR};
use crate::{
    fixture::{eventually, within},
    schedules::Ticks,
};

/// Returns a schedule's next tick by the clock of this process, which is not changed.
async fn next(clock: &Clock, name: &str) -> Option<SystemTime> {
    let all = clock.db.schedules().await.expect("listed");
    all.into_iter().find(|one| one.name == name).expect("it is there").next
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn schedules_tick_on_after_the_clock_was_set_back() {
    let clock = Clock::start().await;
    clock.db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = clock.db.queue("q").await.expect("opened");
    let second = Schedule::new("second", "every second").missed(Missed::Skip);
    let hour = Schedule::new("hour", "0 * * * *");
    queue.schedule(&second, &1).await.expect("set");
    queue.schedule(&hour, &2).await.expect("set");
    let living = Ticks::start(&clock.db);
    for ahead in AHEAD {
        clock.is_ahead_by(ahead);
        let ticked = "select coalesce(bool_and(placed) and min(next_at) > clock_timestamp() - interval '5 s' and min(last_at) > clock_timestamp() - interval '1 hour', false)
                      from trunkline.schedule";
        eventually("ticks are made ahead of time", async || clock.says_yes(ticked).await).await;
        clock.is_ahead_by(Duration::ZERO);
        let back = "select last_at <= clock_timestamp() and next_at > clock_timestamp() - interval '5 s' and next_at < clock_timestamp() + interval '5 s'
                    from trunkline.schedule where name = 'second' and placed";
        within(Duration::from_secs(60), "it ticks by the clock that was set back", async || {
            clock.sql.query_opt(back, &[]).await.expect("read").is_some_and(|row| row.get(0))
        })
        .await;
        let expected = hour.next_after(SystemTime::now()).expect("valid");
        eventually("its time is right", async || {
            next(&clock, "hour").await == expected
                || next(&clock, "hour").await == hour.next_after(SystemTime::now()).expect("valid")
        })
        .await;
    }
    living.stop().await;

    // Sets the clock back while no worker is running. The next worker, or a new declaration,
    // repairs the times.
    clock.is_ahead_by(AHEAD[0]);
    let ticks = Ticks::start(&clock.another().await);
    eventually("it ticks", async || {
        clock.says_yes("select min(next_at) > now() from trunkline.schedule where name = 'hour'").await
    })
    .await;
    ticks.stop().await;
    clock.is_ahead_by(Duration::ZERO);
    assert!(!queue.schedule(&hour, &2).await.expect("set"), "nothing is changed");
    assert!(
        clock
            .says_yes("select not placed and next_at <= clock_timestamp() from trunkline.schedule where name = 'hour'")
            .await
    );
    let ticks = Ticks::start(&clock.another().await);
    eventually("its time is right", async || {
        next(&clock, "hour").await.is_some_and(|next| next <= SystemTime::now() + HOUR)
    })
    .await;
    ticks.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn tick_computed_before_the_clock_was_set_back_is_repaired() {
    let clock = Clock::start().await;
    clock.db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = clock.db.queue("q").await.expect("opened");
    queue.schedule(&Schedule::new("hour", "0 * * * *"), &2).await.expect("set");
    clock.is_ahead_by(AHEAD[1]);
    clock.say("begin").await;
    clock.is_ahead_by(Duration::ZERO);
    let place = "select trunkline.place_schedules(array[s.ctid], array[now() + interval '1 hour'], array[null::timestamptz], array[null::text])
                 from trunkline.schedule s; commit";
    clock.say(place).await;
    assert!(clock.says_yes("select trunkline.right_schedules() = 1").await);
    assert!(clock.says_yes("select next_at <= clock_timestamp() from trunkline.schedule").await);
    // A tick that was claimed while the clock was ahead, and is given up afterwards.
    let given_up = "update trunkline.schedule set next_at = now() + interval '2 hours';
                    select trunkline.fail_schedule('hour', s.next_at, s.next_at + interval '1 hour', 'no') from trunkline.schedule s";
    clock.say(given_up).await;
    assert!(clock.says_yes("select trunkline.right_schedules() = 1").await);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn clock_set_back_by_a_moment_repeats_no_tick() {
    let clock = Clock::start().await;
    clock.db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = clock.db.queue("q").await.expect("opened");
    queue.schedule(&Schedule::new("second", "every second").missed(Missed::Each), &1).await.expect("set");
    let ticks = Ticks::start(&clock.db);
    eventually("it ticks", async || clock.says_yes("select count(*) >= 3 from trunkline.messages_q").await).await;
    clock.disk.clock_is_ahead_by(-1500).expect("set");
    eventually("it ticks on", async || clock.says_yes("select count(*) >= 8 from trunkline.messages_q").await).await;
    ticks.stop().await;
    let twice = "select count(*) = count(distinct metadata ->> 'tick') from trunkline.messages_q";
    assert!(clock.says_yes(twice).await);
}
