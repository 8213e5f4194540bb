//! Plans rows that send messages to a queue on several servers, whose disks are equally slow.

use super::{Plan, named, plan};
use crate::Choice;

const SERVERS: [usize; 4] = [1, 2, 3, 4];
/// The minimum duration of an fsync in milliseconds. It makes the disk the bottleneck, rather than
/// the processors, which all servers share here.
const FSYNC: f64 = 5.0;
/// The number of callers that keeps the commits of one server full. Each row contains one job, and
/// eight rows are in flight at a time.
const MANY: usize = 1024;
/// The number of callers per server.
const EACH: usize = 64;
/// The number of callers in total.
const IN_ALL: usize = 256;

pub(super) fn stripes(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for servers in SERVERS {
        let stripes = if servers == 1 { "1 stripe".to_owned() } else { format!("{servers} stripes") };
        for (case, contender, callers) in [
            (format!("jobs, {MANY} callers, {stripes}"), "striped-jobs", MANY),
            (format!("send, {EACH} callers a stripe, {stripes}"), "striped", EACH * servers),
            (format!("send, {EACH} callers a stripe, {stripes}"), "striped-round-robin", EACH * servers),
            (format!("send, {IN_ALL} callers, {stripes}"), "striped", IN_ALL),
        ] {
            let mut plan = plan("stripes", case, named(contender), "send", choice);
            (plan.told.producers, plan.told.fsync_ms, plan.told.stripes) = (callers, Some(FSYNC), servers);
            (plan.rounds, plan.told.seconds) = if choice.quick { (1, 2.0) } else { (plan.rounds, 5.0) };
            plans.push(plan);
        }
    }
    // Rows of the same kind are next to each other.
    plans.sort_by_key(|plan| plan.case.split(", ").take(2).map(str::to_owned).collect::<Vec<_>>());
    plans
}
