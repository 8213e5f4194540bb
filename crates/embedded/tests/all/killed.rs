use crate::again::{self, Folder, eventually, is_alive};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use trunkline_embedded::{Cluster, Stop};

/// Prints the server's process id and the cluster's folder, and waits to be killed.
#[test]
#[ignore = "a part in other tests"]
fn owner() {
    let Some(path) = again::argument() else { return };
    let cluster = if path == Path::new("temporary") {
        Cluster::temporary().start().unwrap()
    } else {
        Cluster::at(&path).start().unwrap()
    };
    cluster.restart(Stop::Immediate).unwrap();
    println!("\nserver {} {}", cluster.pid().unwrap(), cluster.data_dir().parent().unwrap().display());
    loop {
        std::thread::park();
    }
}

/// Reads the server's process id and the cluster's folder from the owner's output.
fn told(owner: &mut Child) -> (u32, String) {
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find_map(|line| line.strip_prefix("server ").map(str::to_owned)).expect("a server");
    let (pid, folder) = line.split_once(' ').unwrap();
    (pid.parse().unwrap(), folder.to_owned())
}

fn kill(mut owner: Child) {
    owner.kill().unwrap();
    owner.wait().unwrap();
}

#[test]
fn a_killed_owner_leaves_no_server_and_no_folder() {
    // Starts the owner in a separate test process, so that a process that another test is starting
    // does not inherit the pipe that signals the owner's end.
    let mut owner = again::part("killed::owner", Path::new("temporary")).spawn().unwrap();
    let (pid, folder) = told(&mut owner);
    assert!(is_alive(pid));
    kill(owner);
    eventually("the server ends", || !is_alive(pid));
    eventually("the folder is removed", || !Path::new(&folder).exists());
}

#[test]
fn a_killed_owner_of_kept_data_leaves_the_data_only() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    let mut owner = again::part("killed::owner", &path).spawn().unwrap();
    let (pid, _) = told(&mut owner);
    assert_eq!(Cluster::status(&path).unwrap().pid(), pid);
    kill(owner);
    eventually("the server ends", || !is_alive(pid));
    assert!(path.join("data/PG_VERSION").exists());
}

#[test]
fn an_owner_killed_while_the_server_starts_leaves_nothing() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    let owner = again::part("killed::owner", &path).spawn().unwrap();
    eventually("a server begins", || path.join("data/postmaster.pid").exists());
    kill(owner);
    eventually("the server ends", || Cluster::status(&path).is_none() && !path.join("data/postmaster.pid").exists());
}

#[test]
fn a_process_begun_meanwhile_does_not_keep_the_server() {
    let cluster = Cluster::temporary().start().unwrap();
    let mut bystander = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let pid = cluster.pid().unwrap();
    drop(cluster);
    assert!(!is_alive(pid));
    assert!(bystander.try_wait().unwrap().is_none());
    drop(bystander.stdin.take());
    bystander.wait().unwrap();
}
