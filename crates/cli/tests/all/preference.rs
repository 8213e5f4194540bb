//! The choice of the database if several are named.

use std::process::{Command, Stdio};

use crate::{fixture::Trunkline, home::Home};

/// Returns the value of a parameter such as `host` or `port` in a connection string.
fn word<'a>(url: &'a str, name: &str) -> &'a str {
    url.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).expect("it is named")
}

/// Returns the queues that the program lists, and the database that it reports.
fn shown(mut command: Command) -> (String, String) {
    let output = command.args(["queue", "list"]).stdin(Stdio::null()).output().expect("the program runs");
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{error}");
    (out, error)
}

#[test]
fn argument_precedes_url_then_variables_then_private_postgres() {
    let [by_argument, by_url, by_variables] = ["by_argument", "by_url", "by_variables"].map(|name| {
        let trunkline = Trunkline::new();
        trunkline.ok(&["queue", "create", name]);
        trunkline
    });
    let home = Home::new();
    let [host, port, user, database] = ["host", "port", "user", "dbname"].map(|name| word(&by_variables.url, name));
    let start = || {
        let mut command = home.command();
        command.env("PGPASSWORD", "secret");
        command
    };
    let with_variables = || {
        let mut command = start();
        command.env("PGHOST", host).env("PGPORT", port).env("PGUSER", user).env("PGDATABASE", database);
        command
    };

    let mut all = with_variables();
    all.env("DATABASE_URL", &by_url.url).args(["--verbose", "--database-url", &by_argument.url]);
    let (out, said) = shown(all);
    assert!(out.contains("by_argument") && said == format!("database: {}\n", by_argument.url), "{out} {said}");

    let mut url = with_variables();
    url.env("DATABASE_URL", &by_url.url).arg("-v");
    let (out, said) = shown(url);
    assert!(out.contains("by_url") && said == format!("database: {}\n", by_url.url), "{out} {said}");

    let mut variables = with_variables();
    variables.env("DATABASE_URL", "");
    let (out, said) = shown(variables);
    let wanted = format!("database: PGHOST={host} PGPORT={port} PGUSER={user} PGDATABASE={database}\n");
    assert!(out.contains("by_variables") && said == wanted, "{out} {said}");

    // Tests an empty option, as from an unset shell variable. It must not select another database.
    for variable in [Some("postgres://nowhere.invalid"), Some(""), Some("\npostgres://nowhere.invalid"), None] {
        for args in [["queue", "list", "--database-url="], ["--database-url= ", "queue", "list"]] {
            let mut empty = with_variables();
            empty.args(args).env_remove("DATABASE_URL").envs(variable.map(|variable| ("DATABASE_URL", variable)));
            let output = empty.output().expect("the program runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2), "{said}");
            assert!(said.contains("the connection string is empty"), "{variable:?}: {said}");
        }
    }

    let mut service = start();
    std::fs::write(home.folder.join(".pg_service.conf"), format!("[s]\n{}\n", by_url.url.replace(' ', "\n")))
        .expect("written");
    service.env("PGSERVICE", "s").env("PGHOST", "nowhere.invalid");
    let (out, said) = shown(service);
    assert!(out.contains("by_url") && said == "database: PGSERVICE=s PGHOST=nowhere.invalid\n", "{out} {said}");

    // Tests the private PostgreSQL: the user's name selects no other database, and no account is
    // needed.
    let mut private = start();
    private.env("PGUSER", "nobody").env("PGPORT", "1").env("PGOPTIONS", "-c nonsense=");
    let (out, said) = shown(private);
    let stopped = start().args(["postgres", "stop"]).output().expect("the program runs");
    assert!(!out.contains("by_") && said.starts_with("database: the private PostgreSQL in "), "{out} {said}");
    assert!(stopped.status.success());
}
