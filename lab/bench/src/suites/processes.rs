//! Plans rows that resemble real programs: many processes, each with one caller that sends one
//! message per call. In some rows there is a sleeping consumer, a standby or a network delay.

use super::{NEAREST, Plan, Told, named, plan};
use crate::Choice;

/// The callers of our functions, one per language.
const CALLERS: [&str; 5] = ["library-process", "psycopg", "pgx", "node-postgres", "jdbc"];
const PLAIN: &str = "plain-insert";
const NOTIFIED: &str = "plain-insert-and-notify";
/// Our contenders whose callers share a process. They are compared with the nearest peers.
const SHARED: [&str; 2] = ["trunkline", "trunkline-bytea"];
/// The number of processes in rows with a condition.
const SOME: usize = 8;

/// A condition: its name within a case's name, and a function that changes the settings.
type Condition = (&'static str, fn(&mut Told));
const CONDITIONS: [Condition; 4] = [
    ("1 kB", |told| told.payload = 1_000),
    ("10 kB", |told| told.payload = 10_000),
    ("a synchronous standby", |told| told.standby = true),
    ("1 ms each way", |told| told.delay_ms = 1.0),
];

pub(super) fn processes(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for processes in [1, SOME, 64] {
        let case = if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") };
        for contender in CALLERS.into_iter().chain([PLAIN]) {
            plans.push(sending(case.clone(), contender, processes, choice));
        }
        for contender in CALLERS.into_iter().chain([NOTIFIED]) {
            let mut plan = sending(format!("{case}, a sleeping consumer"), contender, processes, choice);
            plan.told.sleeper = true;
            plans.push(plan);
        }
    }
    for (name, apply) in CONDITIONS {
        let apart = CALLERS.into_iter().chain([PLAIN]);
        let mut of: Vec<Plan> =
            apart.map(|contender| sending(format!("{SOME} processes, {name}"), contender, SOME, choice)).collect();
        // Omits network delays for contenders whose callers share a process: the suite `distance`
        // covers them.
        let shared = SHARED.into_iter().chain(NEAREST).filter(|_| !name.ends_with("each way"));
        of.extend(
            shared
                .map(|contender| sending(format!("one process, {name}"), contender, named(contender).callers, choice)),
        );
        for plan in &mut of {
            apply(&mut plan.told);
        }
        plans.extend(of);
    }
    plans
}

fn sending(case: String, contender: &str, callers: usize, choice: &Choice) -> Plan {
    let mut plan = plan("processes", case, named(contender), "send", choice);
    plan.told.producers = callers;
    plan
}

/// Plans rows in which processes send messages at a rate, and one consumer of the library receives
/// the messages.
pub(super) fn latency(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for rate in [100.0, 1000.0] {
        for contender in CALLERS {
            let case = format!("{rate:.0}-a-second, {SOME} processes");
            let mut plan = plan("latency", case, named(contender), "cycle", choice);
            (plan.told.rate, plan.told.producers) = (Some(rate), SOME);
            plan.told.seconds = if choice.quick { 5.0 } else { 10.0 };
            plans.push(plan);
        }
    }
    plans
}
