//! Tests `docs/sql.md`, the reference of the SQL functions. It is generated from the comments of
//! `sql/functions` and the errors in their bodies. Its examples are executed.

mod errors;
mod function;

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use self::{
    errors::Errors,
    function::{Function, functions},
};
use crate::fixture::{connect, database};
use tokio_postgres::SimpleQueryMessage;

const PAGE: &str = "docs/sql.md";
const HEAD: &str = include_str!("reference/head.md");

/// The functions for users, in the order in which a newcomer needs them.
const SECTIONS: [(&str, &[&str]); 10] = [
    (
        "Queues",
        &["create_queue", "alter_queue", "limit_queue", "pause_queue", "resume_queue", "drop_queue", "payload_type"],
    ),
    (
        "Enqueue",
        &[
            "enqueue",
            "enqueue_many",
            "enqueue_unique",
            "enqueue_unique_many",
            "enqueue_with_columns",
            "enqueue_many_with_columns",
            "send_direct",
        ],
    ),
    ("Dequeue", &["take", "lease", "listen", "unlisten"]),
    (
        "End leases",
        &[
            "ack",
            "ack_many",
            "archive",
            "archive_many",
            "retry",
            "retry_many",
            "release",
            "release_many",
            "extend",
            "extend_many",
            "bury",
            "bury_many",
            "charge",
            "charge_many",
        ],
    ),
    ("Look", &["messages", "find", "own_columns", "stats", "dead_letters"]),
    (
        "Look after",
        &[
            "cancel",
            "reschedule",
            "replay",
            "replay_all",
            "discard",
            "discard_all",
            "purge",
            "prune",
            "prune_keys",
            "compact",
            "rebuild",
            "repair_sequence",
            "repair_times",
        ],
    ),
    ("Keys", &["lease_partition", "more", "release_partition"]),
    ("Schedules", &["set_schedule", "fire_schedule", "pause_schedule", "resume_schedule", "drop_schedule"]),
    ("Rights", &["grant_rights", "revoke_rights"]),
    ("Test", &["shift"]),
];
/// Internal functions, which come last. They may change with every version.
const INTERNAL: &[&str] = &[
    "announced",
    "enqueue_one",
    "enqueue_row",
    "enqueue_rows",
    "check_columns",
    "send_direct_one",
    "send_element",
    "fail_schedule",
    "parts_of",
    "converted",
    "payload_as",
    "shortens",
    "payloads_as",
    "payloads_of",
    "refuse_cut",
    "tokens",
    "right_schedules",
    "due_from",
    "forget_relays",
    "forget_workers",
    "keep_letter",
    "read_as",
    "sort_lanes",
    "written",
    "check_snapshot",
    "check_unique",
    "check_unique_key",
    "due_of",
    "along_lanes",
    "check_keyed",
    "check_keys",
    "keep_place",
    "more_lanes",
    "lane_of",
    "refuse_keys",
    "refuse_older",
    "check_priority",
    "in_lanes",
    "check_schedule",
    "claim_schedules",
    "found_schedule",
    "place_schedules",
    "schedules_due_in",
    "set_paused",
    "hold_retries",
    "lock_partitions",
    "raise_in_use",
    "set_vacuum",
    "tick",
    "build_dispatch",
    "change",
    "check_owner",
    "check_rights",
    "check_role",
    "kept_floor",
    "lock_queue",
    "floors",
    "look_floor",
    "wait_no_more",
    "apply_rights",
    "apply_shared_rights",
    "wait_for_rewrite",
    "base_type",
    "check_delay",
    "check_ids",
    "check_lease",
    "check_metadata",
    "check_n",
    "check_queue",
    "check_settings",
    "check_wait",
    "clock",
    "epoch_of",
    "describe_functions",
    "fill",
    "header_of",
    "floor",
    "install_functions",
    "install_queue",
    "is_array",
    "is_held",
    "is_large",
    "keep_floor",
    "missing",
    "not_stored",
    "own",
    "payload_bytes",
    "refuse_row",
    "rewrite",
    "page",
    "page_by_due",
    "gone",
    "discard_some",
    "letters_after",
    "replay_some",
    "messages_within",
    "settle",
    "time_of",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn reference(functions: &[Function]) -> String {
    let (mut page, errors) = (HEAD.to_owned(), Errors::read());
    for (section, names) in SECTIONS {
        write!(page, "\n## {section}\n").expect("written");
        for name in names {
            let overloads: Vec<&Function> = functions.iter().filter(|function| function.name == *name).collect();
            assert!(!overloads.is_empty(), "there is no function trunkline.{name}");
            let told = |of: fn(&Function) -> &str, between: &str| {
                overloads.iter().map(|function| of(function)).collect::<Vec<_>>().join(between)
            };
            // Signatures are not marked as SQL, because only the examples can be executed.
            let signatures = told(|function| &function.signature, "\n");
            let comments = told(|function| &function.comment, "\n\n");
            let examples = told(|function| &function.example, "\n");
            write!(page, "\n### {name}\n\n```text\n{signatures}\n```\n\n{comments}\n").expect("written");
            write!(page, "\n```sql\n{examples}\n```\n").expect("written");
            let codes: Vec<String> = errors.of(name).iter().map(|code| format!("`{code}`")).collect();
            if !codes.is_empty() {
                write!(page, "\nErrors: {}.\n", codes.join(", ")).expect("written");
            }
        }
    }
    page
}

#[test]
fn the_reference_is_what_the_comments_of_the_functions_say() {
    let found = reference(&functions());
    let path = root().join(PAGE);
    if std::env::var_os("TRUNKLINE_BLESS").is_some() {
        fs::write(&path, &found).expect("written");
    }
    let golden = fs::read_to_string(&path).expect(PAGE);
    let other = found.lines().zip(golden.lines()).find(|(found, golden)| found != golden);
    assert!(found == golden, "the comments are others now (bless {PAGE} with TRUNKLINE_BLESS=1): {other:?}");
}

#[test]
fn every_function_for_users_has_an_example() {
    let users: BTreeSet<&str> = SECTIONS.iter().flat_map(|(_, names)| *names).copied().collect();
    for function in functions() {
        assert_eq!(users.contains(&*function.name), !function.example.is_empty(), "{}", function.signature);
    }
}

#[test]
fn every_error_that_a_function_raises_is_explained() {
    for code in Errors::read().all() {
        assert!(HEAD.contains(&format!("`{code}`")), "{code} is not in the table of errors");
    }
    let of_retry: Vec<_> = Errors::read().of("retry_many").into_iter().collect();
    assert_eq!(of_retry, ["09000", "22023", "2202E", "42P01", "TL001"], "through settle, and its own checks");
    assert!(Errors::read().of("reschedule").contains("22023"), "by the function of the queue");
    let of_find: Vec<_> = Errors::read().of("find").into_iter().collect();
    assert_eq!(of_find, ["42P01"], "it reads the table of the archive, and calls no function archive");
    let of_drop: Vec<_> = Errors::read().of("drop_queue").into_iter().collect();
    assert_eq!(of_drop, ["2BP01", "42501", "42P01", "55P03"], "build_dispatch enqueues nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_run_in_their_order() {
    let sql = connect(&database().await).await;
    for statement in statements(PAGE) {
        let answer = sql.simple_query(&statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        let rows = answer.iter().filter(|part| matches!(part, SimpleQueryMessage::Row(_))).count();
        assert!(rows > 0 || !statement.starts_with("select"), "it shows nothing: {statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_schema_function_is_in_the_reference_or_internal() {
    let sql = connect(&database().await).await;
    let rows = sql
        .query("select distinct p.proname::text from pg_proc p where p.pronamespace = 'trunkline'::regnamespace", &[])
        .await
        .expect("the catalog is read");
    let there: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let told = SECTIONS.iter().flat_map(|(_, names)| names.iter()).chain(INTERNAL);
    let told: BTreeSet<String> = told.map(|name| (*name).to_owned()).collect();
    assert_eq!(there, told, "give a new function a section, or call it internal");
}

/// Returns the statements in a document's SQL blocks. A statement ends with its line, ignoring a
/// trailing remark.
fn statements(document: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(document)).expect(document);
    let blocks = text.split("```sql\n").skip(1).filter_map(|after| after.split("\n```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split("--").next().unwrap_or(line).trim_end().to_owned());
    let code = lines.collect::<Vec<_>>().join("\n");
    let statements: Vec<String> =
        code.split(";\n").map(|statement| statement.trim_end_matches(';').to_owned()).collect();
    assert!(statements.len() > 2, "{document}: {statements:?}");
    statements
}
