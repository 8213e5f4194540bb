//! Selects the rows that a command line names.

use crate::{
    BACKLOG, BATCH_SIZES, Choice, SETTLE,
    suites::{Plan, all},
};

/// Returns the rows whose name matches one of the patterns, or all rows if there are no patterns.
pub fn chosen(choice: &Choice) -> Vec<Plan> {
    let mut plans = all(choice);
    plans.retain(|plan| {
        choice.patterns.is_empty() || choice.patterns.iter().any(|pattern| matches(pattern, &name(plan)))
    });
    plans
}

/// Returns `suite/case/contender`, followed by `@` and the version if the row runs on another major
/// version of PostgreSQL.
pub fn name(plan: &Plan) -> String {
    let name = format!("{}/{}/{}", plan.suite, plan.case, plan.contender.name);
    plan.major.map_or(name.clone(), |major| format!("{name}@{major}"))
}

impl Choice {
    /// Lists what this selection omits or changes in comparison with a whole run.
    pub fn left_out(&self) -> Vec<String> {
        let mut left_out = Vec::new();
        if !self.patterns.is_empty() {
            left_out.push(format!("rows whose names have none of {}", self.patterns.join(", ")));
        }
        for (is_out, what) in [
            (!self.throughput, "the suite throughput"),
            (!self.poll, "reads that wait"),
            (self.batch_sizes != BATCH_SIZES, "the messages a call of `send`, `read` and `ack`"),
            (self.messages.is_some(), "the suites' own numbers of messages"),
            (self.threads != 0, "the contenders' own number of threads"),
            (!same(self.settle, SETTLE), "the time in which consumers fall asleep"),
            (!self.callers.is_empty(), "the suites' own numbers of callers"),
            (
                !(self.producers.is_empty()
                    && self.consumers.is_empty()
                    && self.enqueue_batch.is_empty()
                    && self.dequeue_batch.is_empty()
                    && self.backlog == BACKLOG),
                "the grid's own producers, consumers, backlog and batches",
            ),
        ] {
            left_out.extend(is_out.then(|| what.to_owned()));
        }
        left_out
    }
}

fn same(one: f64, other: f64) -> bool {
    one.total_cmp(&other).is_eq()
}

/// Returns true if the name contains the parts of the pattern in order. `*` separates the parts.
/// `^` and `$` stand for the start and the end of the name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let name = format!("^{name}$");
    let mut rest = name.as_str();
    pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        choice: Choice,
    }

    #[test]
    fn options_that_change_rows_leave_out_published_rows() {
        let left_out = |words: &[&str]| Words::parse_from([&["list"], words].concat()).choice.left_out().len();
        assert_eq!(left_out(&[]), 0);
        for words in [
            ["--callers", "3"],
            ["--producers", "3"],
            ["--consumers", "3"],
            ["--backlog", "3"],
            ["--enqueue-batch", "3"],
            ["--dequeue-batch", "3"],
            ["--batch-sizes", "3"],
            ["--messages", "3"],
            ["--settle", "3"],
            ["--threads", "3"],
            ["--poll", "false"],
            ["--throughput", "false"],
            ["-p", "burst"],
        ] {
            assert_eq!(left_out(&words), 1, "{words:?}");
        }
    }

    #[test]
    fn pattern_matches_anywhere_unless_anchored() {
        for (pattern, found) in [
            ("", true),
            ("drain", true),
            ("throughput/*/river", true),
            ("river$", true),
            ("^throughput/drain/", true),
            ("/river/", false),
            ("^drain", false),
            ("river*drain", false),
        ] {
            assert_eq!(matches(pattern, "throughput/drain/river"), found, "{pattern}");
        }
    }
}
