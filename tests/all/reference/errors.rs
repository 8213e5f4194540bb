//! The errors that a function raises, directly or through a function that it calls. They are read
//! from the source, so there is no list to maintain.

use std::collections::{BTreeMap, BTreeSet};

use super::function::texts;

/// The names of the codes in the source.
const CODES: [(&str, &str); 22] = [
    ("TL001", "TL001"),
    ("TL002", "TL002"),
    ("array_subscript_error", "2202E"),
    ("check_violation", "23514"),
    ("dependent_objects_still_exist", "2BP01"),
    ("triggered_action_exception", "09000"),
    ("duplicate_object", "42710"),
    ("feature_not_supported", "0A000"),
    ("insufficient_privilege", "42501"),
    ("invalid_name", "42602"),
    ("invalid_parameter_value", "22023"),
    ("invalid_text_representation", "22P02"),
    ("undefined_column", "42703"),
    ("invalid_transaction_state", "25000"),
    ("lock_not_available", "55P03"),
    ("null_value_not_allowed", "22004"),
    ("object_not_in_prerequisite_state", "55000"),
    ("program_limit_exceeded", "54000"),
    ("serialization_failure", "40001"),
    ("string_data_right_truncation", "22001"),
    ("undefined_object", "42704"),
    ("undefined_table", "42P01"),
];

/// The codes that a function raises directly, and the functions that it calls. The functions of a
/// queue have names like `do_take`.
#[derive(Default)]
struct Direct {
    raised: BTreeSet<&'static str>,
    called: BTreeSet<String>,
}

/// All functions, with overloads merged.
pub struct Errors(BTreeMap<String, Direct>);

impl Errors {
    pub fn read() -> Self {
        let mut of = BTreeMap::<String, Direct>::new();
        for (_, text) in texts("sql/functions").into_iter().chain(texts("sql/queue")) {
            let code = code_of(&text);
            let Some((_, function)) = code.split_once("create or replace function trunkline.") else { continue };
            let name = word(function.trim_start_matches('{')).trim_end_matches('_');
            let Direct { raised, called } = of.entry(name.to_owned()).or_default();
            raised.extend(code.split("errcode = '").skip(1).map(code_named));
            // This function writes calls into the text of another function, and makes none of them.
            if name != "build_dispatch" {
                called.extend(calls(&code));
            }
        }
        Self(of)
    }

    /// Returns the codes of a function's errors, including those of the functions that it calls.
    pub fn of(&self, name: &str) -> BTreeSet<&'static str> {
        let (mut raised, mut seen, mut left) = (BTreeSet::new(), BTreeSet::new(), vec![name.to_owned()]);
        while let Some(name) = left.pop() {
            if let Some(direct) = self.0.get(&name)
                && seen.insert(name)
            {
                raised.extend(&direct.raised);
                left.extend(direct.called.iter().cloned());
            }
        }
        raised
    }

    /// Returns the codes of all functions' errors.
    pub fn all(&self) -> BTreeSet<&'static str> {
        self.0.values().flat_map(|direct| &direct.raised).copied().collect()
    }
}

/// Returns the source without comments and hints, which name functions that are not called.
fn code_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let code = lines.join("\n");
    let mut parts = code.split("hint = ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |code, part| code + part.split_once(";\n").map_or("", |(_, behind)| behind))
}

/// Returns the identifier at the start of a text.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default()
}

fn code_named(condition: &str) -> &'static str {
    let name = condition.split('\'').next().unwrap_or_default();
    let known = CODES.iter().find(|(known, _)| *known == name);
    known.unwrap_or_else(|| panic!("{name} has no code in the list")).1
}

fn calls(code: &str) -> Vec<String> {
    let mut called = Vec::new();
    for behind in code.split("trunkline.").skip(1) {
        let name = word(behind);
        // Other placeholders are tables: `{archive_}` does not call `archive`.
        if let Some(of_queue) = behind.strip_prefix("{do_") {
            called.push(format!("do_{}", word(of_queue).trim_end_matches('_')));
        } else if let Some(arguments) = behind[name.len()..].strip_prefix('(') {
            called.push(name.to_owned());
            // These two functions call the queue's function that their first argument names.
            if let ("settle" | "change", Some(verb)) = (name, arguments.strip_prefix('\'')) {
                called.push(format!("do_{}", word(verb)));
            }
        }
    }
    let by_name = code.split("'do_").skip(1).map(word).filter(|verb| !verb.is_empty());
    called.extend(by_name.map(|verb| format!("do_{}", verb.trim_end_matches('_'))));
    called
}
