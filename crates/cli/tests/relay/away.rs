//! A broker that is unavailable while the queue grows.

use serde_json::Value;

use crate::{
    brokers::Kind,
    ends::Sent,
    fixture::rows,
    place::{Place, Program, within},
};

/// The maximum number of messages that the relay holds.
const HANDS: u64 = 2048;
/// The number of messages per round, so high that few transactions make a large backlog.
const ROUND: usize = 5000;

/// Waits until the program has made `more` more attempts. By then its buffers are full, because
/// they hold fewer messages. Returns the program's memory in KiB.
fn tried(place: &Place, program: &Program, more: u64) -> u64 {
    let number = |name: &str| place.progress(program).as_ref().and_then(|told| told[name].as_u64()).unwrap_or(0);
    let before = number("again");
    within("it tries again with full hands", || number("again") >= before + more);
    program.process.resident().expect("it runs")
}

fn away(kind: Kind) {
    let mut place = Place::of(kind, &["--max-attempts", "1"]);
    let mut sent = Sent::default();
    if kind == Kind::Kafka {
        // Creates the topic by a first write. A missing topic would not exist while the broker
        // restarts, and its messages would be refused for good.
        let sink = place.runtime.block_on(place.far.sink());
        place.runtime.block_on(place.far.write(&*sink, &mut sent, 1));
    }
    let program = place.out(&["--in-hand", &HANDS.to_string()]);
    // The relay has sent nothing yet, because a stream on a single node of RabbitMQ does not always
    // keep confirmed messages.
    within("it has begun", || !rows(&place.trunkline.url, "select name from trunkline.relay").is_empty());
    match kind {
        // Shuts the broker down instead of killing it, because a stream on a single node does not
        // always survive a crash: see docs/relay.md.
        Kind::Rabbitmq => place.broker.end(),
        _ => place.broker.kill(),
    }
    (0..4).for_each(|_| place.enqueue(&mut sent, ROUND));
    let with_few = tried(&place, &program, HANDS * 3 / 2);
    (0..20).for_each(|_| place.enqueue(&mut sent, ROUND));
    let with_all = tried(&place, &program, 2 * HANDS);
    let stats = place.stats();
    assert_eq!((stats.messages, stats.dead), (24 * ROUND as u64, 0), "the queue has them all");
    println!("{kind:?}: {with_few} KiB with 20,000 messages behind it, {with_all} KiB with 120,000");
    assert!(with_all < with_few + 16 * 1024, "{with_few} KiB, then {with_all} KiB");
    let why = place.progress(&program).map(|told| told["last_error"].clone());
    assert!(why.as_ref().is_some_and(Value::is_string), "it says why: {why:?}");
    place.broker.start_again();
    within("it catches up", || place.messages() == 0);
    place.end(program);
    let words = rows(&place.trunkline.url, "select error from trunkline.dead_q group by 1 limit 3");
    assert_eq!(place.stats().dead, 0, "an outage charges no message: {words:?}");
    let verdict = sent.against(&place.runtime.block_on(place.far.read(sent.sure())));
    println!("{kind:?}: {} sent, {} repeats", sent.sure(), verdict.repeats.len());
    assert!(
        verdict.lost.is_empty() && verdict.foreign.is_empty() && verdict.mistaken.is_empty(),
        "{} of {}",
        verdict.lost.len(),
        sent.sure()
    );
}

with_each_broker!(memory_stays_flat_and_nothing_is_lost: away to);
