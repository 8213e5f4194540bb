use crate::again::{self, eventually, is_alive};
use crate::speak::exchange;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use trunkline_embedded::{Cluster, test_cluster, test_database};

fn word<'a>(url: &'a str, name: &str) -> &'a str {
    url.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).expect("it is in the address")
}

/// Runs a statement on the shared server, in the database `postgres`.
fn ask(statement: &str) -> Option<String> {
    let socket = test_cluster().unwrap().socket_dir().join(".s.PGSQL.5432");
    exchange(UnixStream::connect(socket).unwrap(), statement)
}

#[test]
fn each_test_has_its_own_database_on_one_server() {
    let threads = [(); 8].map(|()| std::thread::spawn(|| test_database().unwrap()));
    let urls: BTreeSet<String> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(urls.len(), 8, "{urls:?}");
    let servers: BTreeSet<&str> = urls.iter().map(|url| word(url, "host")).collect();
    assert_eq!(servers.len(), 1, "{servers:?}");
    for url in &urls {
        let there = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", word(url, "dbname"));
        assert_eq!(ask(&there).as_deref(), Some("1"), "{url}");
    }
    assert_eq!(ask("SHOW fsync").as_deref(), Some("off"));
}

/// Prints the shared server, and ends without dropping it, as a test process does.
#[test]
#[ignore = "a part in other tests"]
fn tests() {
    if again::argument().is_none() {
        return;
    }
    test_database().unwrap();
    let cluster = test_cluster().unwrap();
    println!("\nserver {} {}", cluster.pid().unwrap(), cluster.data_dir().parent().unwrap().display());
}

#[test]
fn server_ends_with_its_process_and_disturbs_no_other() {
    let bystander = Cluster::temporary().start().unwrap();
    test_database().unwrap();
    let mut others = again::part("shared::tests", Path::new("-")).spawn().unwrap();
    let mut lines = BufReader::new(others.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find_map(|line| line.strip_prefix("server ").map(str::to_owned)).expect("a server");
    let (pid, folder) = line.split_once(' ').unwrap();
    assert!(!test_cluster().unwrap().data_dir().starts_with(folder), "a server a process");
    others.wait().unwrap();
    let pid = pid.parse().unwrap();
    eventually("the server ends", || !is_alive(pid));
    eventually("the folder is removed", || !Path::new(folder).exists());
    assert!(is_alive(bystander.pid().unwrap()));
    assert_eq!(ask("SELECT 1").as_deref(), Some("1"));
}
