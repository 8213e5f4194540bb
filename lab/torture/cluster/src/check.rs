//! Compares the answers to clients' calls with the received messages and with the tables.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use tokio_postgres::Client;

use crate::{
    Failure,
    history::{History, QUEUES, Told, Trail},
};

/// The number of examples of a violation that a report shows.
const SHOWN: usize = 5;
/// The maximum number of messages that one failover may lose in a queue with at-most-once delivery.
/// If the answer to a take is lost with its connection, the messages of that take are lost.
const ON_THEIR_WAY: usize = 40;

/// The rows of the clients' tables at the end.
pub struct Tables {
    ledger: Vec<(i64, i64)>,
    promises: Vec<i64>,
}

impl Tables {
    pub async fn read(client: &Client) -> Result<Self, Failure> {
        let ledger = client.query("select payload, id from ledger", &[]).await?;
        let promises = client.query("select payload from promise", &[]).await?;
        Ok(Self {
            ledger: ledger.iter().map(|row| (row.get(0), row.get(1))).collect(),
            promises: promises.iter().map(|row| row.get(0)).collect(),
        })
    }
}

/// The counts of one queue.
#[derive(Debug, Default)]
pub struct Count {
    pub ok: usize,
    pub unknown: usize,
    pub failed: usize,
    /// The number of enqueues with an unknown outcome whose message arrived.
    pub unknown_and_there: usize,
    /// The number of messages that arrived more than once, which only leases allow.
    pub again: usize,
    /// The number of messages that never arrived after their enqueue, which only at-most-once
    /// delivery allows.
    pub lost: usize,
    /// The longest time from the answer to an enqueue to its first delivery.
    pub slowest: Duration,
}

#[derive(Debug, Default)]
pub struct Verdict {
    pub violations: Vec<String>,
    pub counts: BTreeMap<&'static str, Count>,
    /// The actual and the expected sum of the ledger's payloads.
    pub sums: (i128, i128),
}

impl Verdict {
    fn violated<T: std::fmt::Debug>(&mut self, what: &str, examples: impl IntoIterator<Item = T>) {
        let all: Vec<T> = examples.into_iter().collect();
        if !all.is_empty() {
            let shown = &all[..all.len().min(SHOWN)];
            self.violations.push(format!("{what}: {} in all, as {shown:?}", all.len()));
        }
    }
}

/// Checks a whole run. All queues have been drained, and all clients have ended.
pub fn check(history: &History, tables: &Tables, failovers: usize) -> Verdict {
    let mut verdict = Verdict::default();
    for queue in QUEUES {
        let trail = history.of(queue);
        let got: Vec<(i64, i64)> = match queue {
            // Reads the ledger from the table, which also contains the rows of a commit whose
            // answer was lost.
            "ledger" => tables.ledger.clone(),
            _ => trail.delivered.iter().map(|delivery| (delivery.payload, delivery.lease.id)).collect(),
        };
        of_queue(queue, &trail, &got, failovers, &mut verdict);
    }
    leases("work", &history.of("work"), &mut verdict);
    leases("acked", &history.of("acked"), &mut verdict);
    ledger(&history.of("ledger"), tables, &mut verdict);
    verdict
}

/// Compares the answer to each enqueue with the messages that arrived.
fn of_queue(queue: &'static str, trail: &Trail, got: &[(i64, i64)], failovers: usize, verdict: &mut Verdict) {
    let told: HashMap<i64, Told> = trail.sent.iter().map(|sent| (sent.payload, sent.told)).collect();
    let mut times: HashMap<i64, usize> = HashMap::new();
    for (payload, _) in got {
        *times.entry(*payload).or_default() += 1;
    }
    let is_ok = |told: &Told| matches!(told, Told::Ok(_));
    let with = |wanted: Told| told.iter().filter(move |(_, told)| **told == wanted).map(|(payload, _)| *payload);
    let lost: Vec<i64> = told
        .iter()
        .filter(|(payload, told)| is_ok(told) && !times.contains_key(payload))
        .map(|(payload, _)| *payload)
        .collect();
    let again: Vec<i64> = times.iter().filter(|(_, times)| **times > 1).map(|(payload, _)| *payload).collect();
    verdict.counts.insert(
        queue,
        Count {
            ok: told.values().filter(|told| is_ok(told)).count(),
            unknown: with(Told::Unknown).count(),
            failed: with(Told::Failed).count(),
            unknown_and_there: with(Told::Unknown).filter(|payload| times.contains_key(payload)).count(),
            again: again.len(),
            lost: lost.len(),
            slowest: slowest(trail),
        },
    );
    let ghosts = times.keys().filter(|payload| matches!(told.get(payload), None | Some(Told::Failed)));
    verdict.violated(&format!("{queue}: came, though its enqueue was told to have failed, or there was none"), ghosts);
    let others = got.iter().filter(|(payload, id)| matches!(told.get(payload), Some(Told::Ok(told)) if told != id));
    verdict.violated(&format!("{queue}: came with an id that its enqueue did not return (payload, id)"), others);
    let mut ids = HashSet::new();
    let twice = told.values().filter_map(|told| if let Told::Ok(id) = told { Some(*id) } else { None });
    let twice: Vec<i64> = twice.filter(|id| !ids.insert(*id)).collect();
    verdict.violated(&format!("{queue}: ids that two enqueues were told"), twice);
    let at_most_once = ["taken", "bell", "hand"].contains(&queue);
    if !at_most_once {
        verdict.violated(&format!("{queue}: acknowledged to its producer, and lost"), lost);
    } else if lost.len() > failovers * ON_THEIR_WAY {
        verdict.violated(&format!("{queue}: lost, and more than can have been on their way"), lost);
    }
    if at_most_once || queue == "ledger" {
        verdict.violated(&format!("{queue}: came more than once"), again);
    }
}

fn slowest(trail: &Trail) -> Duration {
    let mut first = HashMap::new();
    for delivery in &trail.delivered {
        first.entry(delivery.payload).or_insert(delivery.at);
    }
    let told = trail.sent.iter().filter(|sent| matches!(sent.told, Told::Ok(_)));
    told.filter_map(|sent| Some(first.get(&sent.payload)?.saturating_duration_since(sent.at))).max().unwrap_or_default()
}

/// Checks that each delivery has a unique id and attempt, and that no delivery follows an
/// acknowledgement.
fn leases(queue: &str, trail: &Trail, verdict: &mut Verdict) {
    let mut names = HashSet::new();
    let twice = trail.delivered.iter().map(|delivery| delivery.lease).filter(|lease| !names.insert(*lease));
    verdict.violated(&format!("{queue}: deliveries of the same attempt"), twice.collect::<Vec<_>>());
    let mut acked = HashMap::new();
    let acks = trail.acked.iter().filter(|acked| matches!(acked.told, Told::Ok(_)));
    let twice = acks.filter(|ack| acked.insert(ack.lease.id, ack.lease.attempt).is_some()).map(|ack| ack.lease);
    verdict.violated(&format!("{queue}: acknowledged twice"), twice.collect::<Vec<_>>());
    let after = trail.delivered.iter().map(|delivery| delivery.lease);
    let after = after.filter(|lease| acked.get(&lease.id).is_some_and(|attempt| lease.attempt > *attempt));
    verdict.violated(&format!("{queue}: came after it was acknowledged"), after.collect::<Vec<_>>());
}

/// Checks that the rows and the messages of one transaction either all exist or are all missing.
fn ledger(trail: &Trail, tables: &Tables, verdict: &mut Verdict) {
    let entered: BTreeSet<i64> = tables.ledger.iter().map(|(payload, _)| *payload).collect();
    let promised: BTreeSet<i64> = tables.promises.iter().copied().collect();
    let sent_with = entered.iter().copied().filter(|payload| *payload < 0).collect::<BTreeSet<i64>>();
    verdict.violated(
        "ledger: a row was committed, and not the message of its transaction",
        promised.difference(&sent_with),
    );
    verdict.violated("ledger: a message came, and not the row of its transaction", sent_with.difference(&promised));
    let worked = trail.delivered.iter().map(|delivery| delivery.payload);
    verdict.violated(
        "ledger: its commit was told, and it is not there",
        worked.filter(|payload| !entered.contains(payload)),
    );
    let due = trail.sent.iter().filter(|sent| matches!(sent.told, Told::Ok(_)) || entered.contains(&sent.payload));
    let sum = |all: &mut dyn Iterator<Item = i64>| all.map(i128::from).sum::<i128>();
    verdict.sums =
        (sum(&mut tables.ledger.iter().map(|(payload, _)| *payload)), sum(&mut due.map(|sent| sent.payload)));
    if verdict.sums.0 != verdict.sums.1 {
        verdict.violations.push(format!("ledger: the sum is {}, and should be {}", verdict.sums.0, verdict.sums.1));
    }
}

/// Checks a new primary: its sequences are ahead of every id, its floors are below every row, and
/// its unlogged tables exist.
pub async fn of_primary(client: &Client, history: &History) -> Result<Vec<String>, Failure> {
    let mut violations = Vec::new();
    for queue in QUEUES {
        let text = format!(
            "select (select last_value from trunkline.id_{queue}),
                    (select max(id + size) from trunkline.queue_{queue}),
                    (select extract(epoch from f.reached - (select min(q.due_at) from trunkline.queue_{queue} q))::float8
                     from trunkline.floor f where f.queue = '{queue}' and isfinite(f.reached))"
        );
        // The answers are read before the query, so that the server reads its sequence after the
        // last of these answers.
        let told = history
            .of(queue)
            .sent
            .iter()
            .filter_map(|sent| if let Told::Ok(id) = sent.told { Some(id) } else { None })
            .max();
        let row = client.query_one(&text, &[]).await?;
        let (last, stored, above): (i64, Option<i64>, Option<f64>) = (row.get(0), row.get(1), row.get(2));
        for (id, what) in [(told, "told"), (stored.map(|end| end - 1), "stored")] {
            if id.is_some_and(|id| id >= last + 1024) {
                violations.push(format!("{queue}: its sequence is at {last}, and the id {id:?} was {what}"));
            }
        }
        if let Some(above) = above.filter(|above| *above > 0.0) {
            violations.push(format!("{queue}: its kept floor is {above} s above a row"));
        }
    }
    client.query_one("select count(*) from trunkline.waiting", &[]).await?;
    Ok(violations)
}

#[cfg(test)]
mod tests;
