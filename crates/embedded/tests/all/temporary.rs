use crate::again::is_alive;
use crate::speak::ask;
use std::os::unix::fs::PermissionsExt;
use trunkline_embedded::{Cluster, Stop};

#[test]
fn a_temporary_cluster_answers_and_leaves_nothing() {
    let cluster = Cluster::temporary().setting("fsync", "off").setting("application_name", "it's").start().unwrap();
    let (pid, folder) = (cluster.pid().unwrap(), cluster.data_dir().parent().unwrap().to_owned());
    let say = |statement: &str| ask(cluster.socket_dir(), cluster.port(), statement).unwrap();
    assert_eq!(say("SHOW fsync"), "off");
    assert_eq!(say("SHOW application_name"), "it's");
    assert_eq!(say("SHOW max_connections"), "200");
    assert_eq!(say("SHOW listen_addresses"), "");
    assert_eq!(say("SHOW server_encoding"), "UTF8");
    assert_eq!(say("SELECT current_user"), cluster.user());
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let url = format!("host={} port=5432 user=trunkline dbname=mine", cluster.socket_dir().display());
    assert_eq!(cluster.url("mine"), url);
    drop(cluster);
    assert!(!is_alive(pid));
    assert!(!folder.exists());
}

#[test]
fn committed_rows_outlive_an_immediate_restart() {
    let cluster = Cluster::temporary().start().unwrap();
    let before = cluster.pid();
    let say = |statement: &str| ask(cluster.socket_dir(), cluster.port(), statement);
    say("CREATE TABLE kept AS SELECT 7 AS number");
    cluster.restart(Stop::Immediate).unwrap();
    assert_ne!(cluster.pid(), before);
    assert_eq!(say("SELECT number FROM kept").as_deref(), Some("7"));
}

#[test]
fn a_stopped_cluster_starts_again() {
    let cluster = Cluster::temporary().start().unwrap();
    for how in [Stop::Smart, Stop::Fast, Stop::Immediate] {
        cluster.stop(how).unwrap();
        assert_eq!(cluster.pid(), None);
        assert!(!cluster.socket_dir().join(".s.PGSQL.5432").exists());
        cluster.stop(how).unwrap();
        cluster.start_again().unwrap();
        cluster.start_again().unwrap();
        assert_eq!(ask(cluster.socket_dir(), cluster.port(), "SELECT 1").as_deref(), Some("1"));
    }
}

#[test]
fn server_keeps_its_given_environment_over_a_restart() {
    let given = "two words, 'quotes'";
    let cluster = Cluster::temporary().env("TRUNKLINE_GIVEN", "another").env("TRUNKLINE_GIVEN", given);
    let cluster = cluster.env("PGAPPNAME", "ours").setting("fsync", "off").start().unwrap();
    let say = |statement: &str| ask(cluster.socket_dir(), cluster.port(), statement);
    say("CREATE TABLE given (value text)");
    for start in ["first", "second"] {
        // Prints the server's environment, which a program that the server starts inherits.
        say("COPY given FROM PROGRAM 'echo \"$TRUNKLINE_GIVEN $PGAPPNAME\"'");
        assert_eq!(say("SELECT value FROM given").as_deref(), Some(&*format!("{given} ours")), "{start} start");
        say("TRUNCATE given");
        cluster.restart(Stop::Fast).unwrap();
    }
}

#[test]
fn a_variable_that_no_process_can_have_is_refused() {
    for (name, value) in [("", "1"), ("A=B", "1"), ("A\0", "1"), ("A", "\0")] {
        let error = Cluster::temporary().env(name, value).start().unwrap_err().to_string();
        assert!(error.contains("the environment variable `"), "{error}");
    }
}

#[test]
fn clusters_run_side_by_side() {
    let clusters = [(), ()].map(|()| std::thread::spawn(|| Cluster::temporary().start().unwrap()));
    let [one, other] = clusters.map(|thread| thread.join().unwrap());
    assert_ne!(one.socket_dir(), other.socket_dir());
    drop(one);
    assert_eq!(ask(other.socket_dir(), other.port(), "SELECT 1").as_deref(), Some("1"));
}

#[test]
fn a_server_that_does_not_start_tells_why() {
    let error = Cluster::temporary().setting("max_connections", "many").start().unwrap_err().to_string();
    assert!(error.contains("max_connections") && error.contains("server.log"), "{error}");
}

#[test]
fn a_temporary_cluster_cannot_stay() {
    assert!(Cluster::temporary().stay(true).start().is_err());
}
