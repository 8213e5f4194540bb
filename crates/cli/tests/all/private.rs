//! The private PostgreSQL: used when no database is named, and left running.

use std::process::{Output, Stdio};

use crate::{
    fixture::{failed, program},
    home::Home,
};

impl Home {
    fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).stdin(Stdio::null()).output().expect("the program runs")
    }

    fn ok(&self, args: &[&str]) -> (String, String) {
        let output = self.run(args);
        let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{args:?}: {error}");
        (out, error)
    }
}

#[test]
fn private_postgres_starts_when_needed_stays_and_keeps_its_data() {
    let home = Home::new();
    let folder = home.folder.join("trunkline/postgres");
    let (code, error) = failed(&home.run(&["postgres", "status"]), &["postgres", "status"]);
    assert!(code == 1 && error.contains("no private PostgreSQL is running"), "{error}");

    // The private PostgreSQL needs no `migrate`.
    let (_, error) = home.ok(&["queue", "create", "q", "--type", "text"]);
    assert_eq!(error, format!("database: the private PostgreSQL in {}\n", folder.display()));
    home.ok(&["enqueue", "q", "kept"]);
    let (status, _) = home.ok(&["postgres", "status"]);
    assert!(status.starts_with("running as process "), "{status}");

    let (url, error) = home.ok(&["postgres", "url"]);
    assert!(url.contains("dbname=postgres") && error.is_empty(), "{url} {error}");
    let output = program().args(["stats", "--json", "--database-url", url.trim()]).output();
    let output = output.expect("the program runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"due\":1"), "{output:?}");

    assert_eq!(home.ok(&["postgres", "stop"]).0, "stopped\n");
    assert_eq!(home.ok(&["postgres", "stop"]).0, "it was not running\n");
    assert!(!home.run(&["postgres", "status"]).status.success());
    assert_eq!(home.ok(&["dequeue", "q"]).0, "kept\n");
}
