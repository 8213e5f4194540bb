//! Advice that is appended to server errors in the library's own statements.

use tokio_postgres::error::{ErrorPosition, SqlState};

use crate::error::server::ServerError;

/// Returns advice to append to the server's text. That text already names the object and its kind.
pub(super) fn advice(what: &str, queue: Option<&str>, error: &ServerError) -> String {
    let queue = queue.unwrap_or("QUEUE");
    if error.code == SqlState::INSUFFICIENT_PRIVILEGE {
        if error.hint.is_some() {
            return String::new(); // one of the schema's functions raised the error, with advice of its own
        }
        let (needs, role) = right(what);
        return match role {
            Some(role) => format!(". {needs}; run `trunkline grant {queue} {role} ROLE`"),
            None => format!(". {needs}"),
        };
    }
    if let Some(name) = unqualified(error) {
        return format!(
            ". A trigger, a check or a domain of queue {queue} names {name} without its schema, and Trunkline runs with \
             search_path = pg_catalog, pg_temp: write the schema before the name, or give the function a search_path of its own \
             (alter function … set search_path = …)"
        );
    }
    if is_collision(error.table.as_deref(), error.constraint.as_deref()) {
        let repair = format!("select trunkline.repair_sequence('{queue}')");
        return format!(
            ". The queue's sequence is behind its table, as after a restore without sequences: run `{repair}`, or \
             `select * from trunkline.rebuild('{queue}')`, which repairs other derived data, too"
        );
    }
    if is_other_type(error) {
        return format!(
            ". Queue {queue} was dropped, and created again with payloads of another type: open it again with that type"
        );
    }
    if is_drained(error) {
        return format!(
            ". The queue was drained on this server and takes no messages any more: enqueue on another shard, or undo the drain \
             with `trunkline shard resume`. Queue {queue} is empty here"
        );
    }
    if error.code == SqlState::READ_ONLY_SQL_TRANSACTION {
        return ". This server takes no writes, as a standby does (or default_transaction_read_only is on): connect to the primary, or name \
                all hosts with target_session_attrs=read-write"
            .to_owned();
    }
    pooler_advice(error).to_owned()
}

/// Returns advice for an error of a session that a pooler has swapped for another one.
pub(super) fn pooler_advice(error: &ServerError) -> &'static str {
    if [SqlState::DUPLICATE_PSTATEMENT, SqlState::INVALID_SQL_STATEMENT_NAME].contains(&error.code) {
        return ". A pooler in transaction mode may share the server's sessions: set its max_prepared_statements (PgBouncer from 1.21 on), or \
                prepared_statements=off in the connection string";
    }
    ""
}

/// Returns the right that a statement needs, and the options of `trunkline grant` that grant the
/// right.
fn right(what: &str) -> (&'static str, Option<&'static str>) {
    match what {
        "send_direct" => (
            "To send a direct message, a role needs the rights of a producer, and those of a consumer, because it also reads the \
             list of waiting consumers",
            Some("--producer ROLE --consumer"),
        ),
        "enqueue" | "enqueue_with" | "enqueue_in" => (
            "To enqueue, a role needs USAGE on the schema and on the queue's sequence, and to insert into its table",
            Some("--producer"),
        ),
        "enqueue_unique" | "enqueue_unique_waiting" | "enqueue_in_unique" => (
            "To enqueue, a role needs the rights of a producer; to replace waiting messages, also those of a consumer",
            Some("--producer ROLE --consumer"),
        ),
        "take" | "cut" | "lease" | "lease_together" | "look" | "carve" | "put_back" | "release" | "ack" | "archive"
        | "retry" | "bury" | "extend" | "charge" | "wait_for" | "wait_no_more" => (
            "To consume, a role needs USAGE on the schema, and to select, update and delete in the queue's tables",
            Some("--consumer"),
        ),
        "migrate_first" => (
            "This database has no Trunkline schema yet, and the role may not create one: ask the database's owner to migrate, or to run \
             `grant create on database DATABASE to ROLE`",
            None,
        ),
        "set_schedule" | "schedules" | "pause_schedule" | "resume_schedule" | "drop_schedule" | "fire_schedule"
        | "tick" | "place_schedules" | "schedules_due_in" | "claim_schedules" => (
            "Only the schema's owner and operators of all queues may use schedules: \
             `trunkline grant --all --operator ROLE` makes a role such an operator",
            None,
        ),
        "create_queue" | "alter_queue" | "limit_queue" | "pause_queue" | "resume_queue" | "drop_queue" | "grant"
        | "revoke" | "seal" | "unseal" | "set_drains" | "migrate" | "migrate_record" | "teardown" | "teardown_few"
        | "teardown_many" => ("Only the role that owns the schema may do this", None),
        "purge" | "stats" | "peek" | "find" | "dead" | "archived" | "cancel" | "cancel_in" | "reschedule"
        | "reschedule_in" => {
            ("To read, change or purge a queue's messages, a role needs the rights of a consumer", Some("--consumer"))
        }
        "prune" | "replay" | "discard" => {
            ("To replay, discard or prune messages, a role needs the rights of an operator", Some("--operator"))
        }
        _ => (
            "To use a queue, a role needs the rights of a producer, a consumer or an operator",
            Some("{--producer|--consumer|--operator}"),
        ),
    }
}

/// Returns true if the error is in a statement inside a function. Returns false for errors that a
/// function raises, and for errors in the library's own statements.
fn is_within_function(error: &ServerError) -> bool {
    matches!(error.position, Some(ErrorPosition::Internal { .. }))
}

/// Returns true if the missing object is one of the queue's tables, row types or functions. Returns
/// false if a user's trigger or function misses another object, or raises such an error itself.
pub(super) fn misses_queue(error: &ServerError, queue: &str) -> bool {
    is_missing(queue, &error.code, &error.message, error.position.as_ref(), error.context.as_deref())
}

/// Returns the same as [`misses_queue`] for an error of the caller's own connection.
pub(super) fn misses_queue_in(error: &tokio_postgres::Error, queue: &str) -> bool {
    error.as_db_error().is_some_and(|db| is_missing(queue, db.code(), db.message(), db.position(), db.where_()))
}

fn is_missing(
    queue: &str,
    code: &SqlState,
    message: &str,
    position: Option<&ErrorPosition>,
    context: Option<&str>,
) -> bool {
    let is_own = match position {
        Some(ErrorPosition::Original(_)) => true, // the library's own statement
        Some(ErrorPosition::Internal { .. }) => false,
        None => context.is_none_or(|context| context.contains("check_queue(")),
    };
    is_own && *code != SqlState::UNDEFINED_OBJECT || is_of_queue(message, queue)
}

/// Returns true if the message names an object of the queue, with its schema. A user's object can
/// have a similar name.
fn is_of_queue(message: &str, queue: &str) -> bool {
    let tables = ["queue", "dead", "archive", "unique", "lane", "line", "limit", "id", "messages", "payload"];
    tables.iter().any(|kind| message.contains(&format!(".{kind}_{queue}\"")))
        || message.split_once(".do_").is_some_and(|(_, function)| function.contains(&format!("_{queue}(")))
}

/// Returns the name of a missing object that a user's code uses without its schema. The server's
/// message quotes the name and never translates it. The name of a function is not quoted, but
/// followed by parentheses.
fn unqualified(error: &ServerError) -> Option<&str> {
    let code = &error.code;
    let missing = [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_FUNCTION, SqlState::UNDEFINED_OBJECT];
    if !missing.contains(code) || !is_within_function(error) {
        return None;
    }
    let message = &error.message;
    let quoted = message.split('"').nth(1);
    let called =
        message.split_whitespace().find(|word| word.contains('(')).map(|word| word.split('(').next().unwrap_or(word));
    let name = if *code == SqlState::UNDEFINED_FUNCTION { called } else { quoted };
    name.filter(|name| !name.is_empty() && !name.contains('.'))
}

/// Returns true if the type of a parameter differs from the type of the queue's column. Returns
/// false for a type mismatch inside a user's function.
pub(super) fn is_other_type(error: &ServerError) -> bool {
    error.code == SqlState::DATATYPE_MISMATCH
        && error.position.is_none()
        && error.context.as_ref().is_none_or(|context| !context.contains("PL/"))
}

/// Returns true if the queue refuses messages because it was drained on this server. See
/// `sql/statements/seal.sql`.
pub(super) fn is_drained(error: &ServerError) -> bool {
    error.code == SqlState::CHECK_VIOLATION && error.constraint.as_deref() == Some("drained")
}

/// Returns true if the error is a unique violation on ids from the queue's sequence.
pub(super) fn is_collision(table: Option<&str>, constraint: Option<&str>) -> bool {
    let (table, constraint) = (table.unwrap_or_default(), constraint.unwrap_or_default());
    [("queue_", "key_"), ("dead_", "deadkey_"), ("archive_", "archivekey_")].iter().any(|(of_table, of_key)| {
        table.strip_prefix(of_table).is_some_and(|queue| constraint.strip_prefix(of_key) == Some(queue))
    })
}
