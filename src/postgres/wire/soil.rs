//! Recognizes statements by their text: those that leave session state behind, and those that are
//! refused.

/// The statement that empties the search path, so that the next statement finds no objects through
/// it.
pub(crate) const IN_CATALOG: &str = include_str!("../../../sql/statements/in_catalog.sql");

/// Returns true if a statement may change session state that outlasts its transaction. Settings
/// that a user's functions change are not recognized. A false positive costs a needless clean-up.
pub(super) fn soils(text: &str) -> bool {
    if text == IN_CATALOG {
        return false; // this setting is local to its transaction
    }
    let text = text.to_ascii_lowercase();
    let (first, rest) = word(&text);
    match first {
        "set" => !matches!(word(rest).0, "local" | "transaction" | "constraints"),
        "reset" | "discard" | "listen" | "declare" | "do" => true,
        _ => ["set_config", "advisory_lock"].iter().any(|function| text.contains(function)),
    }
}

/// Returns true if a statement copies from or to the client, which is another exchange than that of
/// a statement. A false positive is an error for the user, so the words must be where the grammar
/// has them.
pub(super) fn copies(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let (first, rest) = word(&text);
    first == "copy"
        && rest.split_whitespace().collect::<Vec<_>>().windows(2).any(|pair| {
            matches!(pair, ["from", end] if end.starts_with("stdin"))
                || matches!(pair, ["to", end] if end.starts_with("stdout"))
        })
}

/// Returns true if a statement begins or ends a transaction, which only `Transaction` may do.
pub(super) fn bounds_transaction(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let (first, rest) = word(&text);
    let (second, after) = word(rest);
    match first {
        "begin" | "start" | "commit" | "end" | "abort" => true,
        "prepare" => second == "transaction",
        "rollback" => {
            let next = if matches!(second, "work" | "transaction") { word(after).0 } else { second };
            next != "to" // a savepoint
        }
        _ => false,
    }
}

/// Returns the first word after white space and comments, and the rest of the text.
fn word(text: &str) -> (&str, &str) {
    let mut text = text.trim_start();
    loop {
        let comment = match text.get(..2) {
            Some("--") => text.find('\n'),
            Some("/*") => text.find("*/").map(|end| end + 1),
            _ => break,
        };
        text = comment.map_or("", |end| text[end + 1..].trim_start());
    }
    text.split_at(text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::{IN_CATALOG, bounds_transaction, copies, soils};

    #[test]
    fn bounds_of_transactions_are_recognized() {
        for text in [
            "begin",
            "/* a */ BEGIN isolation level serializable",
            "start transaction",
            "Commit;",
            "commit and chain",
            "end",
            "abort",
            "rollback",
            "rollback work",
            "rollback transaction and chain",
            "prepare transaction 'a'",
        ] {
            assert!(bounds_transaction(text), "{text}");
        }
        for text in [
            "",
            "rollback to s",
            "ROLLBACK WORK TO savepoint s",
            "savepoint s",
            "prepare p as select 1",
            "select 'commit'",
        ] {
            assert!(!bounds_transaction(text), "{text}");
        }
    }

    #[test]
    fn copies_of_the_client_are_recognized() {
        for text in ["copy t from stdin", "COPY t (a) FROM\n STDIN;", "/* a */ copy (select 1) to stdout (format csv)"]
        {
            assert!(copies(text), "{text}");
        }
        for text in ["", "select 'copy t from stdin'", "copy t from '/tmp/stdin'", "copy t from program 'cat'"] {
            assert!(!copies(text), "{text}");
        }
    }

    #[test]
    fn session_state_is_recognized_by_its_words() {
        for text in [
            "set role x",
            "SET session_replication_role = replica",
            " /* why */ -- because\n\tset search_path to a",
            "set session characteristics as transaction isolation level serializable",
            "reset all",
            "Listen a",
            "do $$ begin perform f(); end $$",
            "with a as (select SET_CONFIG($1, $2, false)) select",
            "select pg_try_advisory_lock(1)",
        ] {
            assert!(soils(text), "{text}");
        }
        for text in [
            "",
            "--",
            "/* set role x",
            "-- set role x",
            "set local role x",
            "set transaction read only",
            "SET CONSTRAINTS all deferred",
            "update t set n = 1",
            "select setval('s', 1)",
            "select pg_advisory_xact_lock(1)",
            "settle",
            IN_CATALOG,
        ] {
            assert!(!soils(text), "{text}");
        }
    }
}
