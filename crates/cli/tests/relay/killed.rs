//! A relay is killed with SIGKILL at any point, repeatedly, while another relay runs.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use crate::{
    brokers::Kind,
    ends::Sent,
    fixture::sql,
    place::{POLL, Place, within},
};

/// The numbers of messages that are carried between two kills.
const KILLS: [usize; 12] = [1, 400, 37, 150, 3, 700, 90, 11, 260, 1, 520, 77];
const KEYS: usize = 40;
/// The maximum number of waiting messages, so high that a relay is killed while it carries them.
const WAITING: usize = 4000;

fn out(kind: Kind) {
    let place = Place::of(kind, &["--partitions", "16", "--max-attempts", "1000000"]);
    let (enqueued, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let start = || place.out(&["--lease", "2s"]);
    let sent = thread::scope(|scope| {
        let producer = scope.spawn(|| {
            let mut sent = Sent::default();
            while !over.load(Ordering::Relaxed) {
                if place.messages() < WAITING {
                    place.enqueue(&mut sent, KEYS);
                    enqueued.fetch_add(KEYS, Ordering::Relaxed);
                } else {
                    thread::sleep(POLL);
                }
            }
            sent
        });
        // An enqueue is counted only after it happens, so this number never exceeds the number of
        // carried messages.
        let carried = || enqueued.load(Ordering::Relaxed).saturating_sub(place.messages());
        let (mut one, mut other) = (start(), start());
        for more in KILLS {
            let until = carried() + more;
            within("it carries on", || carried() >= until);
            one.kill();
            one = other;
            other = start();
        }
        over.store(true, Ordering::Relaxed);
        let sent = producer.join().expect("no panic");
        within("the queue is empty", || place.messages() == 0);
        place.end(one);
        place.end(other);
        sent
    });
    let verdict = sent.against(&place.runtime.block_on(place.far.read(sent.sure())));
    println!("{kind:?}: {} sent, {} repeats", sent.sure(), verdict.repeats.len());
    verdict.at_least_once();
    assert_eq!(place.stats().dead, 0);
}

fn inward(kind: Kind) {
    let place = Place::of(kind, &[]);
    let (mut sent, sink) = (Sent::default(), place.runtime.block_on(place.far.sink()));
    // Creates Kafka's topic by this first write.
    place.runtime.block_on(place.far.write(&*sink, &mut sent, KEYS));
    let over = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let (place, over) = (&place, &over);
        let writer = scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if sent.sure() < place.messages() + WAITING {
                    place.runtime.block_on(place.far.write(&*sink, &mut sent, KEYS));
                } else {
                    thread::sleep(POLL);
                }
            }
            sent
        });
        let (mut one, mut other) = (place.inward(), place.inward());
        for more in KILLS {
            let until = place.messages() + more;
            within("it carries on", || place.messages() >= until);
            one.kill();
            // Ends the hold on the position immediately, instead of after fifteen seconds, even if
            // the other relay, which is running, holds it.
            sql(&place.trunkline.url, "update trunkline.relay set held_until = '-infinity'");
            one = other;
            other = place.inward();
        }
        over.store(true, Ordering::Relaxed);
        let sent = writer.join().expect("no panic");
        within("the queue has what was written", || place.messages() >= sent.sure());
        place.end(one);
        place.end(other);
        sent
    });
    println!("{kind:?}: {} written", sent.sure());
    sent.against(&place.take_all()).exactly_once();
}

with_each_broker!(out_nothing_is_lost_and_keys_keep_their_order: out to);

with_each_broker!(in_each_message_arrives_once: inward from);
