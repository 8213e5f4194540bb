//! `SQL.md` is the reference of the functions for every language. It is written from the comments of `schema/functions`, and this test
//! says so.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use trunkline::{Db, Settings};

use crate::fixture::{connect, database};

/// The functions for users, in the order in which a newcomer needs them.
const SECTIONS: [(&str, &[&str]); 7] = [
    ("Queues", &["create_queue", "alter_queue", "drop_queue", "payload_type"]),
    ("Enqueue", &["enqueue", "enqueue_many", "hand_over"]),
    ("Dequeue", &["take", "lease"]),
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
    ("Look", &["messages", "find", "stats", "dead_letters"]),
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
            "repair_sequence",
        ],
    ),
    ("Rights", &["grant_rights", "revoke_rights"]),
];
/// These stand below the others, and may change with every version.
const INTERNAL: [&str; 29] = [
    "change",
    "check_role",
    "kept_floor",
    "lock_queue",
    "wait_no_more",
    "apply_rights",
    "apply_shared_rights",
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
    "fill",
    "floor",
    "install_queue",
    "is_array",
    "keep_floor",
    "missing",
    "own",
    "payload_bytes",
    "refuse_row",
    "settle",
    "time_of",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of `schema/functions`: the comment above the function, and its signature.
struct Function {
    name: String,
    comment: String,
    signature: String,
}

impl Function {
    fn of(text: &str) -> Self {
        let (comment, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("--"));
        let comment: Vec<&str> = comment.iter().map(|line| line.trim_start_matches('-').trim_start()).collect();
        let rest = rest.join("\n");
        let create = rest.trim_start().strip_prefix("create or replace function ").expect("a function is created");
        let signature = create.split("\n    language ").next().expect("a language follows");
        let name = signature.strip_prefix("trunkline.").and_then(|rest| rest.split('(').next()).expect("a name");
        Self {
            name: name.to_owned(),
            comment: paragraphs(&comment),
            signature: signature.replace("\n    returns", " returns"),
        }
    }
}

/// Lines of a comment as paragraphs of a line each; an empty line stands between two.
fn paragraphs(lines: &[&str]) -> String {
    let paragraphs: Vec<String> = lines.split(|line| line.is_empty()).map(|lines| lines.join(" ")).collect();
    paragraphs.join("\n\n")
}

/// The overloads of a function follow each other: the file `enqueue.sql` is before `enqueue_text.sql`.
fn functions() -> Vec<Function> {
    let folder = fs::read_dir(root().join("schema/functions")).expect("the folder is there");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    files.iter().map(|file| Function::of(&fs::read_to_string(file).expect("readable"))).collect()
}

fn reference(functions: &[Function]) -> String {
    let mut page = include_str!("reference/head.md").to_owned();
    for (section, names) in SECTIONS {
        write!(page, "\n## {section}\n").expect("written");
        for name in names {
            let overloads: Vec<&Function> = functions.iter().filter(|function| function.name == *name).collect();
            assert!(!overloads.is_empty(), "there is no function trunkline.{name}");
            let signatures: Vec<&str> = overloads.iter().map(|function| function.signature.as_str()).collect();
            let comments: Vec<&str> = overloads.iter().map(|function| function.comment.as_str()).collect();
            write!(page, "\n### {name}\n\n```sql\n{}\n```\n\n{}\n", signatures.join("\n"), comments.join("\n\n"))
                .expect("written");
        }
    }
    page
}

#[test]
fn the_reference_is_what_the_comments_of_the_functions_say() {
    let found = reference(&functions());
    let path = root().join("SQL.md");
    if std::env::var_os("TRUNKLINE_BLESS").is_some() {
        fs::write(&path, &found).expect("written");
    }
    let golden = fs::read_to_string(&path).expect("SQL.md is there");
    let other = found.lines().zip(golden.lines()).find(|(found, golden)| found != golden);
    assert!(found == golden, "the comments are others now (bless SQL.md with TRUNKLINE_BLESS=1): {other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_of_the_schema_is_in_the_reference_or_internal() {
    let sql = connect(&database().await).await;
    let rows = sql
        .query("select distinct p.proname::text from pg_proc p where p.pronamespace = 'trunkline'::regnamespace", &[])
        .await
        .expect("the catalog is read");
    let there: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let told = SECTIONS.iter().flat_map(|(_, names)| names.iter()).chain(&INTERNAL);
    let told: BTreeSet<String> = told.map(|name| (*name).to_owned()).collect();
    assert_eq!(there, told, "give a new function a section, or call it internal");
}

/// The statements of a document's blocks of SQL. A statement ends where a line does, before a remark.
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

#[tokio::test(flavor = "multi_thread")]
async fn the_sql_of_the_documents_runs_beside_the_readmes_rust() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("mails", &Settings::new("text")).await.expect("created, as README's Rust does");
    let sql = connect(&url).await;
    for statement in statements("README.md").iter().chain(&statements("OBSERVABILITY.md")) {
        sql.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let left =
        sql.query("select payload, metadata is not null from trunkline.messages('emails')", &[]).await.expect("read");
    assert_eq!(left.len(), 1, "README's message is acknowledged, the other waits");
    assert!(left[0].get::<_, bool>(1), "with its trace");
}
