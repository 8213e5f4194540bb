//! Checks leases: each lease belongs to one consumer, excludes other consumers while it lasts, and
//! has one end.

use super::{
    Rule,
    index::{Delivery, Index, Life, Queue, effect_on},
};
use crate::{
    history::{Micros, Op, Outcome, Verb},
    plan::{BURIED, MAX_ATTEMPTS},
};

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut twice = Rule::new("one lease was given twice");
    let mut early = Rule::new("a message was leased again while its lease ran");
    let mut again = Rule::new("a message came again that was acknowledged");
    let mut ends = Rule::new("two ends of one lease were Ok");
    let mut refused = Rule::new("the end of a lease was refused while it ran");
    let mut attempts = Rule::new("a message had more attempts than are allowed");
    for (name, queue) in &index.queues {
        for (id, life) in &queue.lives {
            let case = |what: &str| format!("{name}: message {id}, {what}");
            check_twice(life, |what| twice.broken(|| case(&what)));
            check_again(life, *id, |what| again.broken(|| case(&what)));
            check_early(life, *id, queue, index, |what| early.broken(|| case(&what)));
            check_refused(life, *id, queue, index, |what| refused.broken(|| case(&what)));
            check_ends(life, *id, |what| ends.broken(|| case(&what)));
            check_attempts(life, |what| attempts.broken(|| case(&what)));
        }
    }
    let tables = &index.evidence.tables;
    for kept in tables.dead.iter().chain(&tables.archive) {
        if kept.attempt > MAX_ATTEMPTS.cast_signed() {
            attempts.broken(|| format!("{}: message {}, kept with {} attempts", kept.queue, kept.id, kept.attempt));
        }
    }
    let mut died = Rule::new("a message died before its attempts were used up");
    for letter in tables.dead.iter().filter(|letter| letter.attempt < MAX_ATTEMPTS.cast_signed()) {
        if letter.error != BURIED {
            died.broken(|| {
                format!("{}: message {}, after {}: {}", letter.queue, letter.id, letter.attempt, letter.error)
            });
        }
    }
    rules.extend([twice, early, again, ends, refused, attempts, died]);
}

/// Returns the leases, sorted by attempt and time.
fn leases<'a, 'b>(life: &'b Life<'a>) -> Vec<&'b Delivery<'a>> {
    let mut leases: Vec<_> = life.deliveries.iter().filter(|delivery| delivery.is_lease()).collect();
    leases.sort_by_key(|delivery| (delivery.attempt, delivery.by()));
    leases
}

fn check_twice(life: &Life, mut broken: impl FnMut(String)) {
    for pair in leases(life).windows(2).filter(|pair| pair[0].attempt == pair[1].attempt) {
        broken(format!("attempt {}: to {} and to {}", pair[0].attempt, pair[0].op.name(), pair[1].op.name()));
    }
}

fn check_early(life: &Life, id: i64, queue: &Queue, index: &Index, mut broken: impl FnMut(String)) {
    for pair in leases(life).windows(2) {
        let [first, second] = pair else { continue };
        let Some(until) = runs_until(life, id, first) else { continue };
        let is_early = first.attempt < second.attempt && second.by() < until;
        if is_early
            && !index.is_clock_off(first.op.began, second.by())
            && !queue.may_be_purged(first.op.began, second.by())
            && !may_have_ended(life, id, first.attempt, second.by(), None)
        {
            let (one, two, left) = (first.op.name(), second.op.name(), until - second.by());
            broken(format!(
                "attempt {} to {one} with {left} µs left, then attempt {} to {two}",
                first.attempt, second.attempt
            ));
        }
    }
}

fn check_again(life: &Life, id: i64, mut broken: impl FnMut(String)) {
    for (op, attempt) in &life.named {
        let removes = op.call.verb.removes() && effect_on(op, id) == Some(true);
        let may_replay = op.call.verb == Verb::Bury && replays(life) > 0;
        let later = leases(life).into_iter().find(|delivery| delivery.attempt > *attempt);
        if let Some(later) = later.filter(|_| removes && !may_replay) {
            let (verb, end, next) = (op.call.verb, op.name(), later.op.name());
            broken(format!(
                "{verb:?} of attempt {attempt} by {end} was Ok, and attempt {} went to {next}",
                later.attempt
            ));
        }
    }
}

/// Returns the earliest time at which the lease can have expired by itself. The time is unknown if
/// the lease began before its call, as for a handler or a stream.
pub(super) fn runs_until(life: &Life, id: i64, lease: &Delivery) -> Option<Micros> {
    if lease.op.call.verb != Verb::Lease || lease.op.outcome != Outcome::Ok || lease.op.call.ms == 0 {
        return None;
    }
    let mut until = lease.op.began + lease.op.call.ms * 1000;
    let extended = |(op, attempt): &&(&Op, i32)| op.call.verb == Verb::Extend && *attempt == lease.attempt;
    for (extend, _) in life.named.iter().filter(extended) {
        let then = extend.began + extend.call.ms * 1000;
        until = match effect_on(extend, id) {
            Some(true) => then,
            Some(false) => until,
            None => until.min(then),
        };
    }
    Some(until)
}

/// Returns true if a call other than `asking` may have ended the lease by this time.
fn may_have_ended(life: &Life, id: i64, attempt: i32, by: Micros, asking: Option<&Op>) -> bool {
    let other = |op: &Op| asking.is_none_or(|asking| !std::ptr::eq(asking, op));
    life.named.iter().any(|(op, named)| {
        let ends = (op.call.verb.ends() || op.call.verb == Verb::Handle) && *named == attempt;
        let may = op.call.verb == Verb::Handle || effect_on(op, id) != Some(false);
        (ends || op.call.verb == Verb::Cancel) && may && op.began < by && other(op)
    })
}

fn check_refused(life: &Life, id: i64, queue: &Queue, index: &Index, mut broken: impl FnMut(String)) {
    for (op, attempt) in &life.named {
        let asks = op.call.verb.ends() || op.call.verb == Verb::Extend;
        if !asks || op.outcome != Outcome::Ok || !op.lost.contains(&id) {
            continue;
        }
        let lease = life.deliveries.iter().find(|delivery| delivery.attempt == *attempt && delivery.is_lease());
        let Some((lease, until)) = lease.and_then(|lease| Some((lease, runs_until(life, id, lease)?))) else {
            continue;
        };
        let is_early = op.ended < until && !index.is_clock_off(lease.op.began, op.ended);
        let is_purged = queue.may_be_purged(lease.op.began, op.ended);
        if is_early && !is_purged && !may_have_ended(life, id, *attempt, op.ended, Some(op)) {
            broken(format!(
                "{:?} of attempt {attempt} by {} with {} µs left",
                op.call.verb,
                op.name(),
                until - op.ended
            ));
        }
    }
}

fn check_ends(life: &Life, id: i64, mut broken: impl FnMut(String)) {
    let mut ended: Vec<(i32, &Op)> = life
        .named
        .iter()
        .filter(|(op, _)| op.call.verb.ends() && effect_on(op, id) == Some(true))
        .map(|(op, attempt)| (*attempt, *op))
        .collect();
    ended.sort_by_key(|(attempt, op)| (*attempt, op.began));
    for pair in ended.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let [(attempt, first), (_, second)] = pair else { continue };
        let (one, two) = (first.call.verb, second.call.verb);
        broken(format!("attempt {attempt}: {one:?} by {} and {two:?} by {}", first.name(), second.name()));
    }
}

/// Returns the number of replays that may have happened. Each replay resets the attempts.
fn replays(life: &Life) -> usize {
    life.named.iter().filter(|(op, _)| op.call.verb == Verb::Replay && op.may_have_happened()).count()
}

/// Checks the number of attempts. A delivery counts only if no call can have given it back.
fn check_attempts(life: &Life, mut broken: impl FnMut(String)) {
    let released = |attempt: i32| {
        life.named
            .iter()
            .any(|(op, named)| op.call.verb == Verb::Release && *named == attempt && op.may_have_happened())
    };
    let charged = |delivery: &&Delivery| match delivery.op.call.verb {
        Verb::Lease => delivery.op.outcome == Outcome::Ok && !released(delivery.attempt),
        // Omits handlers that did not end: the worker may have abandoned them and given their
        // messages back.
        Verb::Handle => delivery.op.ended < Micros::MAX && !released(delivery.attempt),
        _ => false,
    };
    let count = life.deliveries.iter().filter(charged).count();
    let allowed = MAX_ATTEMPTS as usize * (1 + replays(life));
    if count > allowed {
        broken(format!("{count} deliveries that were charged, {allowed} allowed"));
    }
}
