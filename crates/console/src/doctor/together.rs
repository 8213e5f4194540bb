//! Merges findings that are the same in many queues.

use super::Finding;

/// Findings about at least this many queues are merged.
const MANY: usize = 4;
/// The maximum number of queue names in the text of a merged finding.
const NAMED: usize = 3;

/// Merges findings of the same check, severity and reason, if they are about at least [`MANY`]
/// queues. The merged finding takes the position of the first one, and has the remedies of all,
/// each on a line of its own.
pub fn together(findings: Vec<Finding>) -> Vec<Finding> {
    let mut kinds: Vec<Vec<Finding>> = Vec::new();
    for finding in findings {
        let is_same = |kind: &&mut Vec<Finding>| {
            kind.first().is_some_and(|first| {
                let of = |one: &Finding| (one.check, one.severity, one.queue.is_some());
                of(first) == of(&finding) && first.why == finding.why
            })
        };
        match kinds.iter_mut().find(is_same) {
            Some(kind) => kind.push(finding),
            None => kinds.push(vec![finding]),
        }
    }
    kinds.into_iter().flat_map(one_of_many).collect()
}

fn one_of_many(kind: Vec<Finding>) -> Vec<Finding> {
    let mut queues: Vec<String> = kind.iter().flat_map(|finding| finding.queues.clone()).collect();
    queues.sort();
    queues.dedup();
    if queues.len() < MANY {
        return kind;
    }
    let since = kind.iter().filter_map(|finding| finding.since).min();
    let mut mends: Vec<String> = Vec::new();
    for finding in &kind {
        if !mends.contains(&finding.mend) {
            mends.push(finding.mend.clone());
        }
    }
    let mend = mends.join("\n");
    let named = queues[..NAMED].join(", ");
    let more = queues.len() - NAMED;
    kind.into_iter()
        .take(1)
        .map(|first| {
            let of = first.queue.unwrap_or_default();
            let what = format!("{} queues ({named} and {more} more); in {of}, {}", queues.len(), first.what);
            Finding { queue: None, queues: queues.clone(), what, since, mend: mend.clone(), ..first }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{super::Severity, *};

    fn finding(check: &'static str, queue: &str, why: &str, ago: u64) -> Finding {
        Finding {
            check,
            severity: Severity::Wrong,
            queue: Some(queue.to_owned()),
            queues: vec![queue.to_owned()],
            what: format!("{check} of {queue}"),
            since: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - ago)),
            why: why.to_owned(),
            mend: format!("mend {queue}"),
        }
    }

    #[test]
    fn many_queues_of_one_kind_are_one_finding() {
        let mut findings = vec![finding("floor", "z", "floors", 0)];
        findings.extend(
            ["d", "a", "c", "b", "e"].map(|queue| finding("consumers", queue, "none", u64::from(queue == "c"))),
        );
        findings.extend(["a", "b", "c"].map(|queue| finding("consumers", queue, "paused", 0)));
        let shown = together(findings);
        assert_eq!(shown.len(), 5, "three of a kind stay apart: {shown:#?}");
        let many = &shown[1];
        assert_eq!(many.what, "5 queues (a, b, c and 2 more); in d, consumers of d");
        assert_eq!((many.queue.as_deref(), many.queues.len()), (None, 5));
        assert_eq!(many.since, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(99)), "since the first of them");
        assert_eq!(many.mend, "mend d\nmend a\nmend c\nmend b\nmend e");
    }
}
