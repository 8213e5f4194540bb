//! Tests the messages that a worker holds: leases, isolation, keys and rates.

use std::{sync::Arc, time::SystemTime};

use super::{beat::Beat, *};
use crate::queue::message::{keys::Rate, metadata::Metadata};

const LEASE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

fn message(id: i64, ran_out: bool) -> Message<()> {
    Message {
        id,
        attempt: 1 + i32::from(ran_out),
        enqueued_at: SystemTime::UNIX_EPOCH,
        payload: (),
        metadata: Metadata::new(),
        key: None,
        rate: None,
        ran_out,
        released: 0,
    }
}

/// Leases one row, and starts `hands` tasks that each hold one of its messages.
fn held(messages: i64, hands: usize, now: Instant) -> Held<()> {
    let mut held = Held::new(LEASE, None, now);
    held.leased((1024..1024 + messages).map(|id| message(id, false)).collect(), Vec::new(), now);
    for _ in 0..hands {
        let nr = held.hand();
        held.next(nr, 1, true, now).expect("one waits");
    }
    held
}

fn ids(leases: &[Lease]) -> Vec<i64> {
    leases.iter().map(|lease| lease.id).collect()
}

fn has_no_duties(beat: Beat) -> bool {
    let Beat { release, renew, renewal, changed } = beat;
    release.is_empty() && renew.is_empty() && renewal.is_none() && !changed
}

#[test]
fn running_message_is_renewed_after_a_third_of_its_lease() {
    let now = Instant::now();
    let mut held = held(2, 2, now);
    assert!(has_no_duties(held.beat(now + SECOND * 9, true, true)));
    let beat = held.beat(now + SECOND * 11, true, true);
    assert_eq!(ids(&beat.renew), [1024, 1025]);
    held.renewed(&beat.renew, &[1025], now + SECOND * 11);
    let beat = held.beat(now + SECOND * 22, true, true);
    assert_eq!(ids(&beat.renew), [1024], "the other is lost");
    assert_eq!(held.finish(1, [Decision::Done], now + SECOND * 23), 1, "its answer comes too late");
    assert_eq!(held.finish(0, [Decision::Done], now + SECOND * 23), 0);
    assert_eq!(held.settle().done.len(), 1);
}

#[test]
fn lease_not_renewed_in_time_is_lost() {
    let now = Instant::now();
    let mut held = held(1, 0, now);
    let nr = held.hand();
    let told = held.next(nr, 1, true, now).and_then(|start| start.told).expect("it is told");
    held.beat(now + LEASE, true, true);
    assert!(!told.is_lost());
    held.beat(now + LEASE + SECOND * 2, true, true);
    assert!(told.is_lost());
    assert_eq!(held.finish(nr, [Decision::Done], now + LEASE * 2), 1);
    assert!(held.is_empty());
}

#[test]
fn silent_server_stops_neither_the_loss_of_leases_nor_the_start_of_others() {
    let now = Instant::now();
    let mut held = held(3, 1, now);
    let (nr, after) = (held.hand(), now + LEASE + SECOND * 2);
    let told = held.next(nr, 1, true, now).and_then(|start| start.told).expect("it is told");
    assert_eq!(held.beat(now + SECOND * 11, true, true).renew.len(), 2, "sent, and never answered");
    assert!(held.next(nr, 1, true, after).is_none(), "a message whose lease has ended does not start");
    held.beat(after, false, false);
    assert!(told.is_lost());
}

#[test]
fn runner_ends_only_after_the_messages_were_given_back() {
    let mut held = held(8, 0, Instant::now());
    let release = held.beat(Instant::now() + LEASE, true, true).release;
    assert_eq!((release.len(), held.is_empty()), (8, false), "they are being given back");
    held.end_giving_back(release.len());
    assert!(held.is_empty());
}

#[test]
fn long_handler_is_notified_of_its_lost_lease() {
    let now = Instant::now();
    let mut held = held(2, 1, now);
    let (nr, later) = (held.hand(), now + SECOND * 9 / 10);
    let told = held.next(nr, 1, true, later).and_then(|start| start.told).expect("it is told");
    assert_eq!(held.check(now + SECOND / 4), [], "not so soon");
    let check = held.check(now + SECOND);
    assert_eq!(ids(&check), [1024], "the other has only begun");
    assert_eq!(held.check(now + SECOND * 5 / 4), [], "not again so soon");
    let check = held.check(now + SECOND * 3 / 2);
    assert_eq!(ids(&check), [1024, 1025]);
    held.gone(&check, &[1025]);
    assert!(told.is_lost());
    assert_eq!(ids(&held.check(now + SECOND * 3)), [1024]);
    assert_eq!(held.finish(nr, [Decision::Done], now + SECOND * 3), 1, "its answer comes too late");
    assert_eq!(held.finish(0, [Decision::Done], now + SECOND * 3), 0);
}

#[test]
fn lost_lease_is_noticed_within_three_heartbeats() {
    let beat = SECOND / 4;
    for begun in (0..40).map(|nr| SECOND * nr / 20) {
        for gone in (0..20).map(|nr| begun + SECOND * nr / 20) {
            let now = Instant::now();
            let mut held = held(1, 0, now);
            let (hand, mut runs) = (held.hand(), false);
            let told = (1..20).map(|nr| beat * nr).find(|at| {
                if !runs && *at >= begun {
                    runs = held.next(hand, 1, true, now + begun).is_some();
                }
                !held.check(now + *at).is_empty() && *at >= gone
            });
            let after = told.map(|told| told.saturating_sub(gone));
            assert!(after <= Some(beat * 3), "begun after {begun:?}, gone after {gone:?}: {after:?}");
        }
    }
}

#[test]
fn messages_that_cannot_start_soon_are_given_back() {
    let now = Instant::now();
    let mut held = held(10, 2, now);
    assert_eq!(held.beat(now + SECOND / 10, true, true).release, [], "it may start yet");
    assert_eq!(held.beat(now + SECOND, false, false).release, [], "something is being sent");
    assert_eq!(held.beat(now + SECOND, true, true).release.len(), 8);
    assert_eq!(held.room(2, 1), 2, "and nothing is leased ahead from now on");
}

#[test]
fn isolated_message_stops_leasing_until_it_has_lived_a_while() {
    let now = Instant::now();
    let mut held = held(1, 1, now);
    assert_eq!(held.room(9, 1), 9);
    held.finish(0, [Decision::Done], now);
    held.leased(vec![message(9000, true)], Vec::new(), now);
    assert_eq!(held.room(9, 1), 0);
    let nr = held.hand();
    held.next(nr, 1, false, now).expect("it waits");
    held.finish(nr, [Decision::Done], now);
    assert!(held.room(9, 1) >= 9, "it is done");
    held.leased(vec![message(9100, true)], Vec::new(), now);
    let nr = held.hand();
    held.next(nr, 1, false, now + SECOND).expect("it waits");
    held.settle();
    assert!(!held.beat(now + SECOND * 2, true, true).changed);
    assert!(held.beat(now + SECOND * 3, true, true).changed);
    assert!(held.room(9, 1) >= 9, "it lives");
}

#[test]
fn isolated_message_begins_alone_and_nothing_begins_beside_it() {
    let now = Instant::now();
    let mut held = held(4, 2, now);
    held.leased(vec![message(9000, true)], Vec::new(), now);
    held.leased(vec![message(9100, true)], Vec::new(), now);
    held.leased(vec![message(9200, false)], Vec::new(), now);
    let nr = held.hand();
    assert_eq!((held.ready(now), held.room(9, 1)), (2, 0), "what came before it runs before it, and no more is leased");
    assert_eq!(held.next(nr, 9, false, now).map(|begun| begun.messages.len()), Some(2));
    held.finish(nr, [Decision::Done, Decision::Done], now);
    assert_eq!((held.ready(now), held.next(nr, 2, false, now).is_none()), (0, true), "others run");
    held.finish(0, [Decision::Done], now);
    assert!(held.next(0, 2, false, now).is_none(), "one still does");
    held.finish(1, [Decision::Done], now);
    assert_eq!(held.ready(now), 1);
    for alone in [9000, 9100] {
        let begun = held.next(1, 2, false, now).expect("nothing runs");
        assert_eq!(begun.messages.iter().map(|message| message.id).collect::<Vec<_>>(), [alone], "not one of several");
        assert_eq!((held.ready(now), held.next(nr, 2, false, now).is_none()), (0, true), "it runs alone");
        assert!(held.runs_alone());
        held.finish(1, [Decision::Done], now);
        assert!(!held.runs_alone());
    }
    assert_eq!(held.ready(now), 1, "the one that waited");
    assert_eq!(held.next(nr, 2, false, now).map(|begun| begun.messages[0].id), Some(9200));
}

#[test]
fn isolated_message_and_others_wait_a_second_for_each_other() {
    let now = Instant::now();
    let mut held = held(1, 1, now);
    held.leased(vec![message(9000, true)], Vec::new(), now);
    held.leased(vec![message(9100, false)], Vec::new(), now);
    let (one, two) = (held.hand(), held.hand());
    assert!(!held.beat(now + SECOND, false, false).changed);
    assert!(held.next(one, 1, false, now + SECOND).is_none(), "the other runs");
    let later = now + SECOND * 5 / 4;
    assert!(held.beat(later, false, false).changed, "the other has lived for long enough");
    assert_eq!(held.next(one, 1, false, later).map(|begun| begun.messages[0].id), Some(9000));
    assert!(held.next(two, 1, false, later + SECOND).is_none(), "it runs alone");
    assert!(held.beat(later + SECOND * 5 / 4, false, false).changed, "it has lived for long enough");
    assert_eq!(held.next(two, 1, false, later + SECOND * 5 / 4).map(|begun| begun.messages[0].id), Some(9100));
}

/// An isolated message that is given back would be leased again together with many others.
#[test]
fn isolated_message_is_not_given_back_while_it_waits() {
    let now = Instant::now();
    let mut held = held(10, 2, now);
    held.leased(vec![message(9000, true)], Vec::new(), now);
    let beat = held.beat(now + SECOND, true, true);
    assert_eq!(ids(&beat.release), (1026..1034).rev().collect::<Vec<_>>());
    assert_eq!(held.room(9, 1), 0, "it waits");
    let beat = held.beat(now + SECOND * 20, true, true);
    assert_eq!(
        (ids(&beat.renew), ids(&beat.release)),
        (vec![9000, 1024, 1025], vec![]),
        "nor because its lease nears its end"
    );
    held.renewed(&beat.renew, &[1024, 1025], now + SECOND * 20);
    assert_eq!(ids(&held.beat(now + SECOND * 45, true, true).renew), [9000]);
    assert_eq!(ids(&held.beat(now + SECOND * 60, true, true).release), [9000], "it is over");
    assert!(held.room(9, 1) > 0);
}

/// While an isolated message waits behind others of its key, it delays no other message.
#[test]
fn isolated_message_behind_others_of_its_key_delays_no_other() {
    let now = Instant::now();
    let of_key = |id, ran_out| Message { key: Some("a key".into()), ..message(id, ran_out) };
    for how in ["late", "failed", "done"] {
        let mut held = Held::new(LEASE, Some(1), now);
        held.leased(vec![of_key(1024, false)], Vec::new(), now);
        let nr = held.hand();
        held.next(nr, 1, false, now).expect("it waits");
        held.leased(vec![of_key(9000, true)], Vec::new(), now);
        assert_eq!((held.room(9, 1), held.ready(now)), (9, 0), "it waits behind the first of its key");
        match how {
            "late" => assert_eq!(ids(&held.beat(now + LEASE, true, true).release), [9000]),
            "failed" => {
                held.finish(nr, [Decision::Retry(SECOND, "by chance".into())], now);
                assert_eq!(ids(&held.give_back()), [9000]);
            }
            _ => {
                held.finish(nr, [Decision::Done], now);
                assert_eq!((held.room(9, 1), held.ready(now)), (0, 1), "it is next");
                held.next(nr, 1, false, now).expect("nothing else runs");
                held.finish(nr, [Decision::Done], now);
            }
        }
        assert!(held.room(9, 1) >= 9);
    }
}

/// A worker with few busy keys would lease their backlogs only to give them back.
#[test]
fn no_more_is_asked_for_than_could_be_kept_twice() {
    let now = Instant::now();
    let mut held = Held::new(LEASE, Some(1), now);
    assert_eq!(held.room(5000, 1), 4096);
    let of_key = |id| Message { key: Some("a key".into()), ..message(id, false) };
    let nr = held.hand();
    for rest in [50, 1] {
        held.fetching(now);
        held.leased((1024..2048).map(of_key).collect(), Vec::new(), now);
        let rests: Vec<_> = held.full().into_iter().map(|(_, rest)| rest).collect();
        assert_eq!(rests, [Duration::from_millis(rest)], "as long as half of it may take");
        let back = held.give_back();
        assert_eq!(back.len(), 1024 - 65);
        held.confirm(back);
        while held.next(nr, 1, false, now).is_some() {
            held.finish(nr, [Decision::Done], now + Duration::from_micros(10));
        }
        assert_eq!(held.room(5000, 1), 130);
    }
    held.fetching(now);
    held.leased(Vec::new(), Vec::new(), now);
    assert_eq!(held.room(5000, 1), 130, "nothing came");
    for more in [260, 520] {
        held.fetching(now);
        let others =
            (0..more / 2).map(|nr| Message { key: Some(format!("key {nr}").into()), ..message(4096 + nr, false) });
        held.leased(others.collect(), Vec::new(), now);
        while held.next(nr, 1, false, now).is_some() {
            held.finish(nr, [Decision::Done], now + Duration::from_micros(10));
        }
        assert_eq!(held.room(5000, 1), more as usize, "all that came was kept");
    }
}

#[test]
fn unsettled_message_is_retried_during_its_lease_and_once_after() {
    let now = Instant::now();
    let mut held = held(1, 1, now);
    held.finish(0, [Decision::Done], now);
    for (began, given_up) in [(now, 0), (now + LEASE, 0), (now + LEASE * 2, 1)] {
        let settling = held.settle();
        assert_eq!(held.settled(settling.len(), settling, began), given_up);
    }
    assert!(held.is_empty());
}

#[test]
fn abandoned_messages_are_named_once() {
    let now = Instant::now();
    let mut held = held(5, 2, now);
    assert_eq!(ids(&held.give_up_waiting()), [1026, 1027, 1028]);
    assert!(!held.is_empty());
    assert!(held.tell_all());
    assert_eq!(ids(&held.give_up_running().leases), [1024, 1025]);
    assert!(held.is_empty());
}

#[test]
fn policy_counts_attempts_without_releases() {
    let now = Instant::now();
    let mut held = Held::new(LEASE, None, now);
    held.leased(vec![Message { attempt: 7, released: 5, ..message(1024, false) }], Vec::new(), now);
    let nr = held.hand();
    held.next(nr, 1, false, now).expect("it waits");
    assert_eq!(held.leases(nr).collect::<Vec<_>>(), [(Lease { id: 1024, attempt: 7 }, 2)]);
}

/// The rate is not exceeded even if buckets have long been full without a check.
#[test]
fn key_never_exceeds_its_rate_however_late_the_worker_is() {
    const EACH: Duration = Duration::from_millis(100);
    let began = Instant::now();
    let rate = Arc::new(Rate { each: EACH, whole: EACH, full_in: Duration::ZERO });
    let mut held = Held::new(LEASE, Some(1), began);
    let of_key = |id| Message { key: Some("a key".into()), rate: Some(rate.clone()), ..message(id, false) };
    held.leased((1024..1054).map(of_key).collect(), Vec::new(), began);
    let (nr, mut times) = (held.hand(), Vec::new());
    for step in 0..60_u32 {
        // The worker pauses from time to time, and the order of its two actions alternates.
        let now = began + Duration::from_millis(u64::from(step * 40 + step / 7 * 350));
        if step % 2 == 0 {
            held.leased(Vec::new(), Vec::new(), now);
        }
        if step % 3 != 0 {
            held.open(now);
        }
        while held.next(nr, 1, false, now).is_some() {
            times.push(now);
            held.finish(nr, [Decision::Done], now);
        }
    }
    assert!(times.len() > 20, "{}", times.len());
    for pair in times.windows(2) {
        assert!(pair[1].duration_since(pair[0]) >= EACH, "{:?}", pair[1].duration_since(pair[0]));
    }
}
