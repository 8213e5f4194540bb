//! Tests the parts of queues, which are the folders of `sql/queue`. A file is SQL with holes for
//! names and literals. A queue has the functions of its parts and no others.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Client;
use trunkline::{Db, Settings};

use crate::fixture::{connect, database};
use crate::house::{files, root};

/// Literals for the holes that are not names.
const LITERALS: [(&str, &str); 20] = [
    ("literal", "'dummy'"),
    ("channel", "'trunkline.dummy'"),
    ("type", "jsonb"),
    ("max_attempts", "10"),
    ("max_batch", "1024"),
    ("lease", "interval '00:00:30'"),
    ("paused", "false"),
    ("limited", "true"),
    ("max_leased", "null"),
    ("per_second", "0.5"),
    ("burst", "1e6"),
    ("unique", "true"),
    ("own_columns", "'{lane}'"),
    ("lanes", "4"),
    ("head_start", "interval '00:01:00'"),
    ("keyed", "true"),
    ("key_lanes", "4"),
    ("first_lane", "0"),
    ("key_per_second", "null"),
    ("key_burst", "null"),
];

/// A file of `sql/queue`.
struct Template {
    part: String,
    name: String,
    text: String,
}

fn templates() -> Vec<Template> {
    let all = files("sql/queue", "sql").into_iter().map(|path| {
        let inside = path.strip_prefix(root().join("sql/queue")).expect("in the folder").with_extension("");
        let (part, name) = inside.to_str().and_then(|path| path.split_once('/')).expect("a part and a name");
        let text = std::fs::read_to_string(&path).expect("readable");
        Template { part: part.to_owned(), name: name.to_owned(), text }
    });
    all.collect()
}

/// Returns the holes of a text.
fn holes(text: &str) -> BTreeSet<&str> {
    let inside = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let is_hole = |hole: &&str| {
        hole.starts_with(|c: char| c.is_ascii_lowercase()) && hole.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    inside.map(|(hole, _)| hole).filter(is_hole).collect()
}

/// Fills the holes with dummies.
fn filled(text: &str) -> String {
    holes(text).into_iter().fold(text.to_owned(), |text, hole| {
        let known = LITERALS.iter().find(|(name, _)| *name == hole).map(|(_, literal)| (*literal).to_owned());
        let dummy = match known {
            Some(literal) => literal,
            None if hole.ends_with('_') => format!("\"{hole}dummy\""),
            None => panic!("the hole {hole} is neither a name nor a known literal"),
        };
        text.replace(&format!("{{{hole}}}"), &dummy)
    })
}

/// Returns queues that together have every part.
fn kinds() -> [(&'static str, Settings, &'static [&'static str]); 6] {
    let of = || Settings::new("jsonb");
    [
        ("plain", of(), &["common", "plain", "unpartitioned"]),
        ("priority", of().priorities(4), &["common", "priority", "unpartitioned"]),
        ("partitioned", of().partitions(4), &["common", "partitioned"]),
        ("unique", of().uniqueness(true), &["common", "plain", "unpartitioned", "unique", "unique_plain"]),
        (
            "unique-priority",
            of().uniqueness(true).priorities(4),
            &["common", "priority", "unpartitioned", "unique", "unique_priority"],
        ),
        ("limited", of(), &["common", "plain", "unpartitioned", "limited"]),
    ]
}

/// PostgreSQL parses the statements of a function when the function is created.
#[tokio::test]
async fn postgres_parses_every_file_with_dummy_names() {
    let url = database().await;
    Db::connect(&url).await.expect("connected").migrate().await.expect("migrated");
    let mut sql = connect(&url).await;
    for (_, _, parts) in kinds() {
        let transaction = sql.transaction().await.expect("begun");
        let settings = "set local check_function_bodies = on; set local client_min_messages = warning;
                        set local search_path = pg_catalog, pg_temp";
        transaction.batch_execute(settings).await.expect("set");
        let order = |name: &str| match name {
            "tables" => 0,
            "triggers" => 2,
            _ => 1,
        };
        let mut templates = templates();
        templates.retain(|template| parts.contains(&&*template.part) || template.part == "older");
        templates.sort_by_key(|template| (order(&template.name), parts.iter().position(|part| *part == template.part)));
        for Template { part, name, text } in templates {
            let done = transaction.batch_execute(&filled(&text)).await;
            done.unwrap_or_else(|error| panic!("{part}/{name}: {error:?}"));
        }
        transaction.rollback().await.expect("rolled back");
    }
}

/// The function `fill` lists the names with their literals, and each of them is in use.
#[tokio::test]
async fn every_hole_is_a_name_or_a_literal() {
    let all = templates();
    let found: BTreeSet<&str> = all.iter().flat_map(|template| holes(&template.text)).collect();
    let literals: BTreeSet<&str> = found.into_iter().filter(|hole| !hole.ends_with('_')).collect();
    assert_eq!(literals, LITERALS.iter().map(|(name, _)| *name).collect());

    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    for (name, settings, _) in kinds() {
        db.create_queue(name, &settings).await.expect("created");
        for hole in &literals {
            let fill = "select trunkline.fill('{' || $1::text || '}', $2)";
            let literal: String = sql.query_one(fill, &[hole, &name]).await.expect("filled").get(0);
            let quoted = literal.strip_prefix("interval ").unwrap_or(&literal);
            let is_literal = ["null", "true", "false", "pg_catalog.jsonb"].contains(&&*literal)
                || literal.parse::<f64>().is_ok()
                || quoted.starts_with('\'') && quoted.matches('\'').count() == 2;
            assert!(is_literal, "{{{hole}}} becomes {literal}");
        }
    }
}

/// Returns the names of a queue's functions.
async fn functions(sql: &Client, queue: &str) -> BTreeSet<String> {
    let list = "select p.proname::text from pg_proc p
                where p.pronamespace = 'trunkline'::regnamespace and p.proname ~ ('^do_[a-z]+_' || $1 || '$')";
    sql.query(list, &[&queue]).await.expect("listed").iter().map(|row| row.get(0)).collect()
}

/// Returns the names of the functions of these parts.
fn functions_of(queue: &str, parts: &[&str]) -> BTreeSet<String> {
    let ours = templates().into_iter().filter(|template| parts.contains(&&*template.part));
    let functions = ours.filter(|template| template.text.contains("create or replace function"));
    let mut names = BTreeSet::new();
    for Template { part, name, .. } in functions {
        assert!(names.insert(format!("do_{name}_{queue}")), "{part}/{name} is in two parts of one queue");
    }
    names
}

#[tokio::test]
async fn queue_has_exactly_the_functions_of_its_parts() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    let mut counts = BTreeMap::new();
    for (name, settings, parts) in kinds() {
        db.create_queue(name, &settings).await.expect("created");
        if name == "limited" {
            sql.batch_execute("select trunkline.limit_queue('limited', max_leased => 5)").await.expect("limited");
        }
        let query = "select trunkline.parts_of($1)";
        assert_eq!(sql.query_one(query, &[&name]).await.expect("listed").get::<_, Vec<String>>(0), parts, "{name}");
        let found = functions(&sql, name).await;
        assert_eq!(found, functions_of(name, parts), "{name}");
        counts.insert(name, found.len());
    }
    assert!(counts["plain"] <= 30, "{counts:?}");
    let of_kinds = kinds().into_iter().flat_map(|(_, _, parts)| parts).map(|part| (*part).to_owned());
    let named: BTreeSet<_> = of_kinds.chain(["older".to_owned()]).collect();
    assert_eq!(templates().into_iter().map(|template| template.part).collect::<BTreeSet<_>>(), named);

    sql.batch_execute("select trunkline.limit_queue('limited')").await.expect("unlimited");
    assert_eq!(functions(&sql, "limited").await, functions_of("limited", kinds()[0].2), "no limits are left");
}

/// Programs of 0.1.0 call functions that the queues of a new schema do not have.
#[tokio::test]
async fn queue_of_a_schema_that_the_first_release_created_has_the_functions_of_that_release() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    let first_release = "alter table trunkline.migration disable trigger refuse_older;
                         update trunkline.migration set name = '0015_tables' where version = 15;
                         alter table trunkline.migration enable trigger refuse_older";
    sql.batch_execute(first_release).await.expect("named as by the first release");
    for (name, settings, parts) in kinds().into_iter().filter(|(name, ..)| *name != "limited") {
        db.create_queue(name, &settings).await.expect("created");
        assert_eq!(functions(&sql, name).await, functions_of(name, &[parts, &["older"]].concat()), "{name}");
        sql.execute("select trunkline.drop_queue($1)", &[&name]).await.expect("dropped");
        assert_eq!(functions(&sql, name).await, BTreeSet::new(), "{name}");
    }
}
