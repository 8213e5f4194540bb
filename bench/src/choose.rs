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

/// `suite/case/contender`
pub fn name(plan: &Plan) -> String {
    format!("{}/{}/{}", plan.suite, plan.case, plan.contender.name)
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
