//! Functions that format parts of error texts.

use std::time::Duration;

/// Lists each host with its reason. Omits the host if the reason begins with its name.
pub(super) fn reasons<E: std::fmt::Display>(refusals: &[(String, E)]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for (host, error) in refusals {
        let text = error.to_string();
        let text = text.strip_prefix("cannot connect to the database: ").unwrap_or(&text);
        let reason = if text.starts_with(host) { text.to_owned() } else { format!("{host}: {text}") };
        if !reasons.contains(&reason) {
            reasons.push(reason); // lists a reason once, because the addresses of one host name often fail alike
        }
    }
    reasons.join("; ")
}

pub(super) fn of_shards<E: std::fmt::Display>(parts: &[(String, E)]) -> String {
    let one = |(shard, error): &(String, E)| format!("shard {shard}: {error}");
    if parts.is_empty() {
        "no shard was reached".to_owned()
    } else {
        parts.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// Describes a server that sent nothing for the time of `answer_timeout`.
pub(crate) fn of_silence(limit: Duration) -> String {
    format!("no answer in {} s (answer_timeout)", limit.as_secs_f64())
}

/// Describes a statement whose outcome is unknown. `silence` is the time for which the server was
/// silent, if that ended the connection.
pub(super) fn unanswered(what: &str, silence: Option<Duration>) -> String {
    let why = match silence {
        Some(limit) => format!("the connection was closed before {what} was answered: {}", of_silence(limit)),
        None => format!("the connection broke before {what} was answered"),
    };
    format!("{why}; it may or may not have happened")
}

pub(super) fn placed(place: usize, text: Option<&str>) -> String {
    match text {
        Some(text) => format!(" (statement {} in the pipeline: {})", place + 1, shortened(text)),
        None => " (at the commit)".to_owned(),
    }
}

/// Returns the first characters of a statement, on one line and without leading comments.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    let lines = text.lines().skip_while(|line| line.trim().is_empty() || line.trim_start().starts_with("--"));
    let line = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

pub(super) fn listed(ids: &[i64]) -> String {
    match ids {
        [id] => format!("message {id}"),
        [first, ..] => format!("{} messages, the first with id {first},", ids.len()),
        [] => "no message".to_owned(),
    }
}

/// Describes a queue that does not exist. If no queue can have this name, explains which names are
/// valid.
pub(super) fn no_queue(name: &str) -> String {
    let may_be = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
    if name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(may_be) && name.len() <= 48 {
        return format!(
            "there is no queue {name:?}; create it with Db::create_queue or `trunkline queue create {name}`"
        );
    }
    format!(
        "there is no queue {name:?}, and a queue cannot have this name: a name has 1 to 48 characters, a lower-case letter, then a-z, \
         0-9, \"_\", \".\" or \"-\""
    )
}

/// Describes a schema whose version differs from the version that this library needs. Version 0
/// means that the schema does not exist.
pub(super) fn of_schema(schema: &str, found: i32, wanted: i32) -> String {
    let migrate = match schema {
        "trunkline" => "run `trunkline migrate` or Db::migrate first".to_owned(),
        other => format!("run `trunkline migrate --schema {other}` or Db::migrate first"),
    };
    if found == 0 {
        return format!("there is no schema `{schema}` in this database yet: {migrate}");
    }
    let todo = if found > wanted { "use a newer trunkline" } else { &migrate };
    format!("the schema `{schema}` in the database is at version {found}, this library needs {wanted}; {todo}")
}
