//! Which rows are meant.

use crate::{
    Choice,
    suites::{Plan, all},
};

/// The rows whose name matches one of the patterns; all where there are none.
pub fn chosen(choice: &Choice) -> Vec<Plan> {
    let mut plans = all(choice);
    plans.retain(|plan| {
        choice.patterns.is_empty() || choice.patterns.iter().any(|pattern| matches(pattern, &name(plan)))
    });
    plans
}

/// `suite/case/contender`, and on which other PostgreSQL.
pub fn name(plan: &Plan) -> String {
    let name = format!("{}/{}/{}", plan.suite, plan.case, plan.contender.name);
    plan.major.map_or(name.clone(), |major| format!("{name}@{major}"))
}

impl Choice {
    /// What these words leave out, or change, of what a whole run has.
    pub fn left_out(&self) -> Vec<String> {
        let mut left_out = Vec::new();
        if !self.patterns.is_empty() {
            left_out.push(format!("rows whose names have none of {}", self.patterns.join(", ")));
        }
        for (is_out, what) in [
            (!self.throughput, "the suite throughput"),
            (!self.poll, "reads that wait"),
            (
                !(self.producers.is_empty()
                    && self.consumers.is_empty()
                    && self.enqueue_batch.is_empty()
                    && self.dequeue_batch.is_empty()),
                "the grid's own producers, consumers and batches",
            ),
        ] {
            left_out.extend(is_out.then(|| what.to_owned()));
        }
        left_out
    }
}

/// Whether the name has the pattern's parts in it, in their order; a `^` or `$` holds it to an end.
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
    use super::*;

    #[test]
    fn a_pattern_is_found_anywhere_unless_it_is_held_to_an_end() {
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
