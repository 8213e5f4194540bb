//! Lists all measurements: every suite, its cases, and its contenders.

mod throughput;
mod steps;
mod fsync;
mod lanes;
mod stripes;
mod processes;

use self::{
    fsync::fsync,
    lanes::lanes,
    steps::{ack, layer_comparison, read, send},
    stripes::stripes,
    throughput::{headline, throughput},
};
use crate::{
    Choice, DRAINED,
    contenders::{CONTENDERS, Contender, named},
    results::Told,
};

/// A row that has not run yet.
#[derive(Debug, Clone)]
pub struct Plan {
    pub suite: &'static str,
    pub case: String,
    pub contender: Contender,
    pub told: Told,
    pub rounds: u32,
    /// Set if a sample is taken every second, because the suite measures changes over time.
    pub sampled: bool,
    /// Set if the server counts statements, which has a small cost.
    pub statements: bool,
    /// Set if the program that counts allocations also runs a turn.
    pub allocations: bool,
    /// The major version of PostgreSQL, if it is not the run's own.
    pub major: Option<u32>,
}

const PAYLOAD: usize = 100;
/// The fastest peers that are queues, like Trunkline. Longer measurements, and measurements with an
/// additional dimension, compare Trunkline with these peers.
pub const NEAREST: [&str; 3] = ["hasql-queue", "pgmq", "pgq"];
/// The contenders that have a call for every step.
const LAYERS: [&str; 4] = ["statements", "sql", "queue", "pgmq"];

/// Returns the contenders of whole races. The single layers are compared step by step, and
/// contenders that take messages are compared only with each other.
fn racers() -> impl Iterator<Item = Contender> {
    const OTHERS: [&str; 17] = [
        "statements",
        "priorities",
        "unique",
        "keys",
        "keys-4-workers",
        "striped",
        "striped-round-robin",
        "striped-jobs",
        "sql",
        "queue",
        "coalesced",
        "trunkline-at-most-once",
        "trunkline-poll",
        "trunkline-notify",
        "hand-over",
        "exactly-once",
        "exactly-once-sql",
    ];
    let others = |name| OTHERS.contains(&name) || WORKERS.contains(&name);
    CONTENDERS.iter().copied().filter(move |contender| !contender.is_one_caller() && !others(contender.name))
}

/// The contenders that call a function for each message. They take part if the rate or the delay of
/// such calls is measured.
const WORKERS: [&str; 2] = ["worker", "worker-bytea"];

fn plan(suite: &'static str, case: impl Into<String>, contender: Contender, kind: &str, choice: &Choice) -> Plan {
    let told = Told {
        case: kind.to_owned(),
        payload: PAYLOAD,
        batch: 1,
        producers: 1,
        consumers: 0,
        rate: None,
        backlog: 0,
        messages: 0,
        seconds: if choice.quick { 3.0 } else { 10.0 },
        wait: "best".to_owned(),
        delay_ms: 0.0,
        held_snapshot: false,
        sleeper: false,
        fsync: String::new(),
        standby: false,
        dead: 0,
        windows: 0,
        dequeue_batch: 0,
        threads: choice.threads,
        settle: 0.0,
        fsync_ms: None,
        stripes: 0,
        keys: 0,
        timed: String::new(),
    };
    let rounds = if choice.quick { 3 } else { 5 };
    Plan {
        suite,
        case: case.into(),
        contender,
        told,
        rounds,
        sampled: false,
        statements: false,
        allocations: false,
        major: None,
    }
}

impl Plan {
    /// Returns true if the wait states of the row's sessions are sampled. This is done for the
    /// suites that report the bottleneck of a row.
    pub fn is_watched(&self) -> bool {
        ["grid", "exactly-once"].contains(&self.suite)
    }

    /// Returns true if the step needs other steps before it, outside the measured time.
    pub fn is_prepared(&self) -> bool {
        ["read", "delete", "archive", "pop"].iter().any(|verb| self.told.case.starts_with(verb))
    }
}

/// Plans a row with one kind of call, whose callers wait for their answers.
fn step(suite: &'static str, case: impl Into<String>, contender: &str, choice: &Choice) -> Plan {
    let case = case.into();
    let mut plan = plan(suite, case.clone(), named(contender), &case, choice);
    plan.told.seconds = if choice.quick { 1.0 } else { 5.0 };
    plan.told.batch = case.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(1);
    plan
}

/// Returns every row of every suite.
pub fn all(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    if choice.throughput {
        plans.extend(throughput(choice));
    }
    plans.extend(headline(choice));
    plans.extend(processes::processes(choice));
    plans.extend(latency(choice));
    plans.extend(processes::latency(choice));
    plans.extend(old_snapshot(choice));
    plans.extend(layer_comparison(choice));
    plans.extend(send(choice));
    plans.extend(read(choice));
    plans.extend(ack(choice));
    plans.extend(grid(choice));
    plans.extend(idle(choice));
    plans.extend(exactly_once(choice));
    plans.extend(distance(choice));
    plans.extend(lanes(choice));
    plans.extend(burst(choice));
    plans.extend(soak(choice));
    // These suites come last, because they need other servers.
    plans.extend(fsync(choice));
    plans.extend(stripes(choice));
    for plan in &mut plans {
        plan.allocations = counts_allocations(plan);
    }
    plans
}

/// Returns true if this plan counts allocations: only our own contenders, in suites whose rows make
/// one kind of call. `read-with-poll` is excluded, because it mostly waits.
fn counts_allocations(plan: &Plan) -> bool {
    let is_one_caller = plan.told.producers <= 1 || plan.suite == "throughput";
    ["throughput", "layer-comparison", "send", "read", "ack"].contains(&plan.suite)
        && is_one_caller
        && plan.contender.is_own()
        && !plan.contender.is_one_caller()
        && !plan.case.starts_with("read-with-poll")
}

impl Choice {
    /// Returns the number of messages from the command line, or the suite's own number.
    fn messages_or(&self, own: usize) -> usize {
        self.messages.unwrap_or(own)
    }
}

/// Returns the numbers from the command line, or the suite's own choice if the command line has
/// none.
fn or(asked: &[usize], own: &[usize]) -> Vec<usize> {
    if asked.is_empty() { own.to_vec() } else { asked.to_vec() }
}

fn latency(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for rate in [100.0, 1000.0] {
        for contender in racers().chain(WORKERS.map(named)) {
            let mut plan = plan("latency", format!("{rate:.0}-a-second"), contender, "cycle", choice);
            (plan.told.rate, plan.told.producers) = (Some(rate), 16);
            plan.told.seconds = if choice.quick { 5.0 } else { 30.0 };
            plans.push(plan);
        }
    }
    plans
}

fn old_snapshot(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for contender in racers() {
        let mut plan = plan("old-snapshot", "1000-a-second", contender, "cycle", choice);
        (plan.told.rate, plan.told.producers, plan.told.held_snapshot) = (Some(1000.0), 16, true);
        plans.push(plan);
    }
    // The dead rows simulate a snapshot that has been held since yesterday. The other two rows have
    // no dead rows.
    let many = if choice.quick { 100_000 } else { 10_000_000 };
    for (case, rate, dead) in [
        ("1000-a-second, many dead", 1000.0, many),
        ("10000-a-second, many dead", 10_000.0, many),
        ("5000-a-second", 5000.0, 0),
        ("10000-a-second", 10_000.0, 0),
    ] {
        let mut plan = plan("old-snapshot", case, named("trunkline"), "cycle", choice);
        (plan.told.rate, plan.told.producers, plan.told.held_snapshot) = (Some(rate), 16, true);
        plan.told.dead = dead;
        plans.push(plan);
    }
    for plan in &mut plans {
        plan.told.seconds = if choice.quick { 60.0 } else { 1800.0 };
        (plan.sampled, plan.rounds, plan.told.windows) = (true, 1, 3);
    }
    plans
}

/// Plans hasql-queue's own benchmark: producers and consumers, with one message and with a hundred
/// at a time, notified and polling. Options replace the numbers of that benchmark.
fn grid(choice: &Choice) -> Vec<Plan> {
    const PLACES: [(usize, usize); 6] = [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (2, 4)];
    let pairs = |first: Vec<usize>, second: Vec<usize>| -> Vec<(usize, usize)> {
        first.iter().flat_map(|first| second.iter().map(|second| (*first, *second))).collect()
    };
    let places = match choice.producers.is_empty() && choice.consumers.is_empty() {
        true => PLACES.to_vec(),
        false => pairs(or(&choice.producers, &[1]), or(&choice.consumers, &[1])),
    };
    let batches = match choice.dequeue_batch.is_empty() {
        true => or(&choice.enqueue_batch, &[1, 100]).into_iter().map(|batch| (batch, 0)).collect(),
        false => pairs(or(&choice.enqueue_batch, &[1, 100]), choice.dequeue_batch.clone()),
    };
    let mut plans = Vec::new();
    for (batch, dequeue_batch) in batches {
        for wait in ["poll", "notify"] {
            for (producers, consumers) in places.iter().copied() {
                for contender in ["trunkline", "trunkline-at-most-once", "hasql-queue"] {
                    let fetched =
                        if dequeue_batch == 0 { String::new() } else { format!(" fetched by {dequeue_batch}") };
                    let case = format!("{producers}/{consumers}, {wait}, batches of {batch}{fetched}");
                    let mut plan = plan("grid", case, named(contender), "cycle", choice);
                    (plan.told.producers, plan.told.consumers) = (producers, consumers);
                    (plan.told.batch, plan.told.dequeue_batch) = (batch, dequeue_batch);
                    (plan.told.backlog, plan.told.wait) = (choice.backlog, wait.to_owned());
                    plan.rounds = if choice.quick { 1 } else { plan.rounds };
                    plans.push(plan);
                }
            }
        }
    }
    plans
}

/// Plans rows for the cost of waiting, with every way to wait.
fn idle(choice: &Choice) -> Vec<Plan> {
    let ways = ["trunkline-poll", "trunkline-notify", "hand-over"].map(named);
    let mut plans = Vec::new();
    for rate in [0.0, 1.0, 10.0] {
        for contender in racers().chain(ways) {
            let mut plan = plan("idle", format!("{rate:.0}-a-second"), contender, "cycle", choice);
            (plan.told.rate, plan.statements, plan.rounds) = (Some(rate), true, 1);
            plan.told.seconds = if choice.quick { 8.0 } else { 60.0 };
            plan.told.settle = choice.settle;
            let wait = match contender.name {
                "trunkline-poll" => "poll",
                // hasql-queue's other mode polls again immediately after an empty poll, so it is
                // never idle.
                "trunkline-notify" | "hasql-queue" => "notify",
                _ => "best",
            };
            wait.clone_into(&mut plan.told.wait);
            plans.push(plan);
        }
    }
    plans
}

/// Plans rows that move a backlog into a final table, each message exactly once.
fn exactly_once(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for batch in [1, 100] {
        for contender in ["exactly-once", "exactly-once-sql", "hasql-queue"] {
            let case = format!("a ledger, batches of {batch}");
            let mut plan = plan("exactly-once", case, named(contender), "ledger", choice);
            (plan.told.batch, plan.told.consumers) = (batch, 2);
            plan.told.backlog = choice.messages_or(if batch == 1 { DRAINED } else { 3 * DRAINED });
            plans.push(plan);
        }
    }
    plans
}

fn distance(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for case in ["send-single", "send-batch-100", "read-batch-10", "delete-batch-10", "full-cycle"] {
        for delay in [0.0, 1.0, 5.0] {
            for contender in ["sql", "queue", "pgmq"] {
                let mut plan = step("distance", case, contender, choice);
                plan.case = format!("{case}, {delay} ms each way");
                plan.told.delay_ms = delay;
                plan.rounds = if choice.quick { 1 } else { plan.rounds };
                plans.push(plan);
            }
        }
    }
    for delay in [0.0, 1.0, 5.0] {
        for contender in racers() {
            let mut plan = plan("distance", format!("cycle, {delay} ms each way"), contender, "cycle", choice);
            (plan.told.producers, plan.told.delay_ms) = (contender.callers, delay);
            plan.rounds = if choice.quick { 1 } else { plan.rounds };
            plans.push(plan);
        }
    }
    plans
}

fn burst(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for contender in racers() {
        let mut plan = plan("burst", "a million", contender, "drain", choice);
        (plan.told.backlog, plan.told.batch, plan.rounds) = (1_000_000, 100, 1);
        plan.told.seconds = if choice.quick { 15.0 } else { 300.0 };
        plans.push(plan);
    }
    plans
}

fn soak(choice: &Choice) -> Vec<Plan> {
    let mut plan = plan("soak", "5000-a-second", named("trunkline"), "cycle", choice);
    (plan.told.rate, plan.told.producers, plan.sampled, plan.rounds) = (Some(5000.0), 64, true, 1);
    plan.told.seconds = if choice.quick { 60.0 } else { 3600.0 };
    vec![plan]
}

#[cfg(test)]
mod tests;
