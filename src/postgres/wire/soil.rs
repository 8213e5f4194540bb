//! Functions that recognize statements by their text: statements that change session state, copies
//! from or to the client, and statements that begin or end transactions.

/// The statement that restricts the search path to `pg_catalog` for the next statement.
pub(crate) const IN_CATALOG: &str = include_str!("../../../sql/statements/in_catalog.sql");

/// Returns true if a statement may change session state beyond the end of its transaction. Settings
/// that a user's functions change are not recognized. A false positive only causes an unnecessary
/// clean-up.
pub(super) fn soils(text: &str) -> bool {
    if text == IN_CATALOG {
        return false; // this setting ends with the transaction
    }
    let text = text.to_ascii_lowercase();
    let (first, rest) = word(&text);
    match first {
        "set" => !matches!(word(rest).0, "local" | "transaction" | "constraints"),
        "reset" | "discard" | "listen" | "declare" | "do" => true,
        _ => text.contains("advisory_lock") || configures(&text) || makes_temporary(&text, first == "create"),
    }
}

/// Returns true if a statement may call `set_config` for more than its transaction. A call is safe
/// only if its last argument is the word `true`. The other arguments must contain nothing that
/// could hide the end of the call: no parenthesis, comment, or dollar-quoted text.
fn configures(text: &str) -> bool {
    let is_local = |call: &str| {
        let arguments = after_space(call).strip_prefix('(').and_then(|call| call.split_once(')'));
        arguments.is_some_and(|(arguments, _)| {
            let is_plain = !arguments.contains(['(', '"', '/', '-'])
                && arguments.matches('\'').count() % 2 == 0
                && arguments.split('$').skip(1).all(|rest| rest.starts_with(|sign: char| sign.is_ascii_digit()));
            let before = arguments.trim_end().strip_suffix("true").map(str::trim_end);
            is_plain && before.is_some_and(|before| before.ends_with(','))
        })
    };
    text.split("set_config").skip(1).any(|call| !is_local(call))
}

/// Returns true if a statement may create a temporary table, view or sequence.
fn makes_temporary(text: &str, creates: bool) -> bool {
    let mut before = "";
    text.split(|sign| !is_of_word(sign)).filter(|word| !word.is_empty()).any(|word| {
        let before = std::mem::replace(&mut before, word);
        let may_follow = creates || matches!(before, "create" | "replace" | "into" | "local" | "global");
        word == "pg_temp" || may_follow && matches!(word, "temp" | "temporary")
    })
}

/// Returns true if a statement copies data from or to the client. A false positive is an error for
/// the user, so the words are recognized only in the places where the grammar allows them.
pub(super) fn copies(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let (first, mut rest) = word(&text);
    let (mut before, mut depth) = ("", 0_usize);
    if first != "copy" {
        return false;
    }
    loop {
        rest = after_space(rest);
        let Some(sign) = rest.chars().next() else {
            // A bracket may be part of a dollar-quoted text, which this function does not parse.
            return depth > 0 && has_copy(&text);
        };
        if is_of_word(sign) {
            let (next, after) = word(rest);
            if depth == 0 && matches!((before, next), ("from", "stdin") | ("to", "stdout")) {
                return true;
            }
            (before, rest) = (next, after);
            continue;
        }
        (before, rest) = ("", &rest[sign.len_utf8()..]);
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '\'' | '"' => rest = rest.find(sign).map_or("", |end| &rest[end + 1..]),
            _ => {}
        }
    }
}

/// Returns true if the words of a copy from or to the client appear anywhere in the text.
fn has_copy(text: &str) -> bool {
    text.split_whitespace().collect::<Vec<_>>().windows(2).any(|pair| {
        matches!(pair, ["from", end] if end.starts_with("stdin"))
            || matches!(pair, ["to", end] if end.starts_with("stdout"))
    })
}

/// Returns true if a statement begins or ends a transaction. Only `Transaction` may do this.
pub(super) fn bounds_transaction(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let (first, rest) = word(&text);
    let (second, after) = word(rest);
    match first {
        "begin" | "start" | "end" | "abort" => true,
        "commit" => second != "prepared", // a prepared transaction is not the session's
        "prepare" => second == "transaction",
        "rollback" => {
            let next = if matches!(second, "work" | "transaction") { word(after).0 } else { second };
            // a rollback to a savepoint, or of a prepared transaction, ends no transaction of the
            // session
            next != "to" && second != "prepared"
        }
        _ => false,
    }
}

/// Returns true if a statement rolls back to a savepoint.
pub fn returns_to_savepoint(text: &str) -> bool {
    let first = after_space(text);
    if !first.get(..8).is_some_and(|first| first.eq_ignore_ascii_case("rollback")) {
        return false; // as nearly every statement
    }
    let text = first.to_ascii_lowercase();
    word(&text).0 == "rollback" && !bounds_transaction(&text) && word(word(&text).1).0 != "prepared"
}

/// Splits the text after its first word. The word is empty if the text does not start with one.
fn word(text: &str) -> (&str, &str) {
    let text = after_space(text);
    text.split_at(text.find(|sign| !is_of_word(sign)).unwrap_or(text.len()))
}

fn is_of_word(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '_' | '$') || !sign.is_ascii()
}

/// Skips white space, comments and empty statements at the start of the text, as PostgreSQL does.
/// Comments between `/*` and `*/` can be nested. Other comments end at the end of the line.
fn after_space(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c', ';']);
        text = if text.starts_with("--") {
            text.find(['\n', '\r']).map_or("", |end| &text[end..])
        } else if text.starts_with("/*") {
            after_comment(text)
        } else {
            return text;
        }
    }
}

fn after_comment(mut text: &str) -> &str {
    let mut depth = 0;
    while let Some(at) = text.find(['/', '*']) {
        text = &text[at..];
        let mark = text.get(..2).filter(|mark| ["/*", "*/"].contains(mark));
        text = &text[mark.map_or(1, str::len)..];
        match mark {
            Some("/*") => depth += 1,
            Some(_) if depth == 1 => return text,
            Some(_) => depth -= 1,
            None => {}
        }
    }
    ""
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
            ";commit",
            "/* a /* b */ c */ commit",
            "-- a\rcommit",
            "/*/ commit */ commit /*",
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
            "commit prepared 'a'",
            "rollback prepared 'a'",
            "prepare transaction_of as select 1",
            "/* a /* b */ commit */ select 1",
            "/* a /* b */ commit",
            "-- commit",
        ] {
            assert!(!bounds_transaction(text), "{text}");
        }
    }

    #[test]
    fn copies_of_the_client_are_recognized() {
        for text in [
            "copy t from stdin",
            "COPY t (a) FROM\n STDIN;",
            "/* a */ copy (select 1) to stdout (format csv)",
            "copy t(a)from/**/stdin",
            "copy \"from\" to stdout",
            "copy (select $$($$) to stdout",
        ] {
            assert!(copies(text), "{text}");
        }
        for text in [
            "",
            "select 'copy t from stdin'",
            "copy t from '/tmp/stdin'",
            "copy t from program 'cat'",
            "copy (select * from stdin) to '/tmp/x'",
            "copy t from '/tmp/from' -- from stdin",
        ] {
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
            "CREATE TEMP TABLE t (n int)",
            "create local temporary table t as select 1",
            "create or replace temp view v as select 1",
            "select 1 as n into temp t",
            "with a as (select 1) select * into temporary t from a",
            "explain analyze create temp table t as select 1",
            "create table pg_temp.t (n int)",
            "select set_config('a', 'b', false)",
            "select set_config('a', f(true), false)",
            "select set_config('a', ' true)', false)",
            "select set_config('a', $$x, true)$$, false)",
            "select set_config('a', 'b', /* , true) */ false)",
            "select set_config('a', 'b', true), set_config('a', 'b', $1)",
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
            "create table temperature (attempt int)",
            "select temp from temporary",
            "insert into t select attempt from tempo",
            "select set_config('app.tenant', $1, true)",
            "select set_config ('a', 'b', TRUE ), pg_catalog.set_config('c', 'd', true)",
            IN_CATALOG,
        ] {
            assert!(!soils(text), "{text}");
        }
    }

    /// A clean-up after each call would delay the calls of others on the same connection.
    #[test]
    fn no_statement_of_a_queue_soils_its_connection() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/statements");
        let folders = ["", "plain", "priority", "partitioned"].map(|name| folder.join(name));
        let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder").flatten());
        let is_sql = |file: &std::fs::DirEntry| file.path().extension().is_some_and(|ending| ending == "sql");
        let texts = files.filter(is_sql).map(|file| {
            (file.file_name().into_string().expect("text"), std::fs::read_to_string(file.path()).expect("read"))
        });
        let mut soiling: Vec<String> = texts.filter(|(_, text)| soils(text)).map(|(name, _)| name).collect();
        soiling.sort_unstable();
        // Sessions of the listener and of migrations keep their state, and unseal has its own.
        assert_eq!(soiling, ["alive.sql", "announce.sql", "connect.sql", "migrate_in_use.sql", "unseal.sql"]);
    }
}
