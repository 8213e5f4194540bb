use std::process::Stdio;

use crate::fixture::{Trunkline, failed, helps, program, sql};

#[test]
fn a_queue_that_is_not_there_is_named() {
    let trunkline = Trunkline::new();
    for verb in ["dequeue", "peek", "stats", "archive"] {
        let (code, error) = trunkline.fails(&[verb, "nope"]);
        assert!(code == 1 && error.contains("nope") && error.contains("hint: "), "{error}");
    }
    for args in
        [["queue", "describe", "nope"], ["dead", "list", "nope"], ["enqueue", "nope", "x"], ["purge", "nope", "--yes"]]
    {
        assert!(trunkline.fails(&args).1.contains("there is no queue \"nope\""));
    }
}

#[test]
fn without_the_schema_every_verb_says_to_migrate() {
    let trunkline = Trunkline::bare();
    for args in
        [&["queue", "list"][..], &["queue", "create", "q"], &["enqueue", "q", "x"], &["dequeue", "q"], &["stats"]]
    {
        let (code, error) = trunkline.fails(args);
        assert!(code == 1 && error.contains("trunkline migrate"), "{args:?}: {error}");
    }
    trunkline.ok(&["migrate"]);
    assert!(trunkline.ok(&["migrate"]).contains("already"));
    trunkline.ok(&["queue", "list"]);
}

#[test]
fn schema_that_was_restored_without_data_is_refused_with_advice() {
    let trunkline = Trunkline::new();
    sql(&trunkline.url, "truncate trunkline.version, trunkline.migration");
    let (code, error) = trunkline.fails(&["migrate"]);
    assert!(code == 1 && error.contains("as after a restore without data"), "{error}");
    assert!(error.contains("drop schema trunkline cascade"), "{error}");
}

#[test]
fn a_payload_that_is_none_of_the_type_stores_nothing() {
    let trunkline = Trunkline::with_queue(&["--type", "int4"]);
    let (code, error) = trunkline.fails(&["enqueue", "q", "1", "two"]);
    assert!(code == 1 && error.contains("the text cannot be written as int4") && error.contains("\"two\""), "{error}");
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["messages"], 0);
}

#[test]
fn queue_of_type_without_simple_text_leads_to_sql() {
    let trunkline = Trunkline::with_queue(&["--type", "point"]);
    for args in [&["enqueue", "q", "(1,2)"][..], &["dequeue", "q"], &["peek", "q"]] {
        let (code, error) = trunkline.fails(args);
        assert!(code == 1 && error.contains("point") && error.contains("trunkline.take('q'"), "{error}");
    }
    sql(&trunkline.url, "select trunkline.enqueue('q', '(1,2)'::text)");
    assert_eq!(trunkline.json(&["stats", "q", "--json"])[0]["due"], 1);
    assert_eq!(trunkline.lines(&["purge", "q", "--yes"]), ["1"]);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let trunkline = Trunkline::with_queue(&[]);
    for path in ["/no/such/file", "/"] {
        let (code, error) = trunkline.fails(&["enqueue", "q", "--lines", path]);
        assert!(code == 1 && error.contains(&format!("cannot read {path}")), "{error}");
    }
    assert_eq!(trunkline.fails(&["enqueue", "q"]).0, 2);
    assert_eq!(trunkline.fails(&["enqueue", "q", "x", "--lines", "-"]).0, 2);
}

#[test]
fn usage_after_an_error_lists_no_option_that_a_variable_sets() {
    let nowhere = Trunkline { url: "postgres://localhost:1/app".to_owned() };
    let (code, error) = nowhere.fails(&["cancel", "q"]);
    assert!(code == 2 && error.contains("Usage: trunkline cancel <QUEUE>"), "{error}");
    let (_, error) = nowhere.fails(&["cancel", "q", "--database-url", &nowhere.url]);
    assert!(error.contains("--database-url <URL>"), "{error}");
}

#[test]
fn unreachable_server_gives_hint_and_hides_password() {
    let nowhere = Trunkline { url: "postgres://me:secret@localhost:1/app".to_owned() };
    let (code, error) = nowhere.fails(&["stats", "--verbose"]);
    assert!(code == 1 && error.contains("error: cannot connect") && error.contains("hint: "), "{error}");
    assert!(error.contains("postgres://me@localhost:1/app") && !error.contains("secret"), "{error}");
}

#[test]
fn a_server_that_answers_is_not_asked_whether_it_runs() {
    let here = Trunkline::bare();
    let at = |from: &str, to: &str| Trunkline { url: here.url.replace(from, to) };
    let database = here.url.split("dbname=").nth(1).expect("a database");
    for (there, told, hint) in [
        (at(database, "no_such_database"), "does not exist", "hint: the server answers; is the name of the database"),
        (at("user=trunkline", "user=stranger"), "does not exist", "hint: the server answers; are the user"),
    ] {
        let (code, error) = there.fails(&["stats"]);
        assert!(code == 1 && error.contains(told) && error.contains(hint), "{error}");
        assert!(!error.contains("is the server running"), "{error}");
    }
    let (_, error) = at("host=/", "host=/no/such/place/").fails(&["stats"]);
    assert!(error.contains("hint: is the server running, and is the address right?"), "{error}");
}

#[test]
fn failed_output_says_that_the_command_took_effect() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--max-attempts", "1"]);
    trunkline.ok(&["enqueue", "q", "x"]);
    sql(&trunkline.url, "select trunkline.retry('q', id, attempt, '0', 'x') from trunkline.lease('q', 1)");
    for args in [
        &["migrate"][..],
        &["enqueue", "q", "x"],
        &["enqueue", "q", "--lines", "/dev/null"],
        &["purge", "q", "--yes"],
        &["prune", "q", "--older-than", "0", "--yes"],
        &["dead", "replay", "q", "--all"],
        &["dead", "discard", "q", "--all", "--yes"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let output = trunkline.command(args).stdout(full).output().expect("the program runs");
        let (code, error) = failed(&output, args);
        assert!(code == 1 && error.contains("cannot write to standard output"), "{error}");
        assert!(error.contains("hint: the change was made; do not repeat the command"), "{error}");
    }
}

#[test]
fn a_role_without_rights_is_told_where_they_come_from() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let role = format!("stranger_{}", std::process::id());
    sql(&trunkline.url, &format!("create role {role} login"));
    let theirs = Trunkline { url: trunkline.url.replace("user=trunkline", &format!("user={role}")) };
    for args in [&["stats"][..], &["enqueue", "q", "x"], &["dequeue", "q"]] {
        let (code, error) = theirs.fails(args);
        assert!(
            code == 1 && error.contains("permission denied") && error.matches("`trunkline grant ").count() == 1,
            "{error}"
        );
        assert!(!error.contains("hint: "), "the library has said it: {error}");
    }
}

#[test]
fn rights_are_of_roles_and_of_one_queue_or_all() {
    let trunkline = Trunkline::with_queue(&[]);
    for args in [
        &["grant", "q"][..],
        &["grant", "--producer", "postgres"],
        &["grant", "q", "--all", "--producer", "postgres"],
        &["grant", "q", "--producer"],
        &["revoke", "q"],
        &["revoke", "--from", "postgres"],
        &["revoke", "q", "--all", "--from", "postgres"],
    ] {
        assert_eq!(trunkline.fails(args).0, 2, "{args:?}");
    }
    for args in [["grant", "nope", "--consumer", "postgres"], ["revoke", "nope", "--from", "postgres"]] {
        let (code, error) = trunkline.fails(&args);
        assert!(code == 1 && error.contains("there is no queue \"nope\""), "{error}");
    }
    let (code, error) = Trunkline::bare().fails(&["grant", "--all", "--producer", "postgres"]);
    assert!(code == 1 && error.contains("trunkline migrate"), "{error}");
}

#[test]
fn bad_connection_string_is_refused_without_its_password() {
    for (url, told) in [
        ("mysql://me:secret@x/y", "mysql://… is not the address of a PostgreSQL"),
        ("nonsense", "this is not a connection string"),
        ("se cret://x", "this is not a connection string"),
        ("postgres://me:my@secret@localhost:1/app", "an `@` in the connection string is in the way"),
        ("postgres://localhost:1/app?password=my@secret", "an `@` in the connection string is in the way"),
    ] {
        let (code, error) = Trunkline { url: url.to_owned() }.fails(&["stats"]);
        assert!(code == 1 && error.starts_with(&format!("error: {told}\nhint: ")), "{error}");
        assert!(
            (error.contains("postgres://user@host/database or host=") || error.contains("as %40"))
                && !error.contains("cret"),
            "{error}"
        );
    }
}

#[test]
fn quietly_nothing_is_said_but_what_goes_wrong() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "x"]);
    for args in [&["stats", "--quiet"][..], &["-q", "peek", "q"], &["work", "q", "-q", "--drain", "--exec", "cat"]] {
        let output = trunkline.run(args);
        assert!(
            output.status.success() && output.stderr.is_empty() && !output.stdout.is_empty(),
            "{args:?}: {output:?}"
        );
    }
    assert!(trunkline.fails(&["-q", "stats", "nope"]).1.starts_with("error: there is no queue"));
}

#[test]
fn a_database_is_said_where_no_connection_string_names_it() {
    let trunkline = Trunkline::with_queue(&[]);
    let said = |command: &mut std::process::Command| {
        let output = command.args(["queue", "list"]).stdin(Stdio::null()).output().expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    assert_eq!(said(&mut trunkline.command(&[])), "");
    assert_eq!(said(&mut trunkline.command(&["--database-url", &trunkline.url])), "");
    assert!(said(&mut trunkline.command(&["--verbose"])).starts_with("database: host="));
    let mut named = program();
    for word in trunkline.url.split_whitespace() {
        let (name, value) = word.split_once('=').expect("NAME=VALUE");
        let variable = match name {
            "dbname" => "PGDATABASE".to_owned(),
            name => format!("PG{}", name.to_uppercase()),
        };
        named.env(variable, value.trim_matches('\''));
    }
    assert!(said(&mut named).starts_with("database: PGHOST="));
}

#[test]
fn a_standard_error_that_takes_nothing_is_no_failure() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "x"]);
    for args in [&["stats"][..], &["peek", "q"], &["work", "q", "--drain", "--exec", "cat; echo >&2"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let output = trunkline.command(args).stderr(full).output().expect("the program runs");
        assert!(output.status.success() && !output.stdout.is_empty(), "{args:?}: {output:?}");
    }
}

#[test]
fn a_closed_standard_output_is_no_panic() {
    let trunkline = Trunkline::with_queue(&[]);
    for args in [&["queue", "list"][..], &["stats"], &["--help"], &["enqueue", "q", "x"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let child = trunkline.command(args).stdout(writer).stderr(Stdio::piped()).spawn().expect("the program runs");
        let output = child.wait_with_output().expect("it ends");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some() && !error.contains("panicked"), "{args:?}: {error}");
    }
}

#[test]
fn help_is_there_for_every_verb() {
    let trunkline = Trunkline { url: String::new() };
    let help = trunkline.ok(&["--help"]);
    let verbs: Vec<String> = helps().into_iter().map(|(verb, _)| verb).filter(|verb| !verb.is_empty()).collect();
    assert!(
        verbs.len() > 25 && ["work", "queue alter"].iter().all(|name| verbs.iter().any(|verb| verb == name)),
        "{verbs:?}"
    );
    for verb in verbs {
        let path: Vec<&str> = verb.split(' ').collect();
        let help = trunkline.ok(&[&["help"], &path[..]].concat());
        assert!(help.contains(&format!("Usage: trunkline {verb}")), "{verb}: {help}");
        assert_eq!(help, trunkline.ok(&[&path[..], &["--help"]].concat()), "{verb}");
    }
    assert!(help.contains("Exit codes") && help.contains("Examples"), "{help}");
}
