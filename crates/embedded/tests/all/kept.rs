use crate::again::{self, Folder, eventually, here, is_alive, words};
use crate::speak::{ask, exchange};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use trunkline_embedded::{Cluster, Stop};

#[test]
fn cluster_that_stays_is_found_until_it_is_stopped() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    assert_eq!(Cluster::status(&path), None);
    let cluster = Cluster::at(&path).stay(true).start().unwrap();
    let (pid, url) = (cluster.pid().unwrap(), cluster.url("postgres"));
    ask(cluster.socket_dir(), cluster.port(), "CREATE TABLE kept AS SELECT 7 AS number");
    assert_eq!(ask(cluster.socket_dir(), cluster.port(), "SHOW fsync").as_deref(), Some("on"));
    drop(cluster);

    let running = Cluster::status(&path).unwrap();
    assert_eq!((running.pid(), running.url("postgres"), running.is_ready()), (pid, url, true));
    drop(Cluster::at(&path).start().unwrap());
    assert!(is_alive(pid), "one who attaches does not stop the server");

    Cluster::attach(&path).unwrap().unwrap().stop(Stop::Fast).unwrap();
    assert_eq!(Cluster::status(&path), None);
    assert!(Cluster::attach(&path).unwrap().is_none());

    let cluster = Cluster::at(&path).start().unwrap();
    let number = ask(cluster.socket_dir(), cluster.port(), "SELECT number FROM kept");
    assert_eq!(number.as_deref(), Some("7"));
    drop(cluster);
    assert_eq!(Cluster::status(&path), None, "who starts it without `stay` stops it");
    assert!(path.join("data/PG_VERSION").exists());
}

#[test]
fn cluster_that_does_not_start_says_why_and_can_be_started_later() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    for _ in 0..2 {
        let error = Cluster::at(&path).setting("shared_buffers", "1000TB").start().unwrap_err().to_string();
        assert!(error.contains("shared_buffers"), "{error}");
        assert_eq!(Cluster::status(&path), None);
    }
    drop(Cluster::at(&path).start().unwrap());
}

#[test]
fn process_named_by_a_stale_file_is_left_alone() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    let (owner, other) = (Cluster::at(&path).start().unwrap(), Cluster::temporary().start().unwrap());
    owner.stop(Stop::Immediate).unwrap();
    drop(owner);
    let left = format!("{}\n/elsewhere\n1700000000\n", other.pid().unwrap());
    fs::write(path.join("data/postmaster.pid"), left).unwrap();
    Cluster::at(&path).setting("shared_buffers", "1000TB").start().unwrap_err();
    assert!(is_alive(other.pid().unwrap()));
}

#[test]
#[ignore = "a part in other tests"]
fn starter() {
    if let Some(path) = again::argument() {
        let cluster = Cluster::at(path).stay(true).start().unwrap();
        println!("process {}.", cluster.pid().unwrap());
    }
}

#[test]
fn two_processes_that_start_the_same_cluster_share_one_server() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    let parts = [(), (), ()].map(|()| again::part("kept::starter", &path).spawn().unwrap());
    let said = parts.map(words);
    let cluster = Cluster::attach(&path).unwrap().expect("a server");
    let expected = format!("process {}.", cluster.pid().unwrap());
    cluster.stop(Stop::Immediate).unwrap();
    for words in said {
        assert!(words.contains(&expected), "{expected} {words}");
    }
}

/// Under root, another account runs the server: it must be able to enter the new parents.
#[test]
fn cluster_starts_below_new_folders_under_any_umask() {
    let folder = Folder::new();
    let path = folder.0.join("new/below/queue");
    let said = words(again::closed_part("kept::starter", &path).spawn().unwrap());
    let cluster = Cluster::attach(&path).unwrap().unwrap_or_else(|| panic!("no server runs: {said}"));
    cluster.stop(Stop::Immediate).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn wait_for_another_process_is_reported() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    drop(Cluster::at(&path).start().unwrap());
    let lock = fs::File::options().write(true).open(path.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut part = again::part("kept::starter", &path).spawn().unwrap();
    let (found, line) = mpsc::channel();
    let mut lines = BufReader::new(part.stderr.take().unwrap()).lines().map_while(Result::ok);
    std::thread::spawn(move || found.send(lines.find(|line| line.starts_with("waiting for another process"))));
    let line = line.recv_timeout(Duration::from_secs(60));
    drop(lock);
    let wanted = format!("waiting for another process, which holds the lock {}/lock", path.display());
    assert_eq!(line, Ok(Some(wanted)));
    assert!(words(part).contains("process "));
    Cluster::attach(&path).unwrap().unwrap().stop(Stop::Immediate).unwrap();
}

#[test]
#[ignore = "a part in other tests"]
fn stopper() {
    if let Some(path) = again::argument() {
        Cluster::attach(path).unwrap().unwrap().stop(Stop::Fast).unwrap();
    }
}

#[test]
fn server_is_stopped_although_no_programs_are_found() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    drop(Cluster::at(&path).stay(true).start().unwrap());
    assert_eq!(Cluster::attach(&path).unwrap().unwrap().binaries().version(), here().version());
    let said = words(again::part("kept::stopper", &path).env("TRUNKLINE_PG_BIN", &folder.0).spawn().unwrap());
    assert_eq!(Cluster::status(&path), None, "{said}");
}

#[test]
fn a_long_path_has_its_socket_elsewhere() {
    let folder = Folder::new();
    let path = folder.0.join("a long, long name ".repeat(6));
    let cluster = Cluster::at(&path).start().unwrap();
    let socket_dir = cluster.socket_dir().to_owned();
    assert!(!socket_dir.starts_with(&folder.0));
    assert_eq!(Cluster::status(&path).unwrap().socket_dir(), socket_dir);
    assert_eq!(ask(&socket_dir, cluster.port(), "SELECT 1").as_deref(), Some("1"));
    drop(cluster);
    fs::remove_dir(socket_dir).unwrap();
}

#[test]
fn pid_file_left_by_a_crash_is_no_obstacle() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    let cluster = Cluster::at(&path).start().unwrap();
    let (file, data) = (cluster.data_dir().join("postmaster.pid"), cluster.data_dir());
    let lines = fs::read_to_string(&file).unwrap();
    let old = format!("{}\n", cluster.pid().unwrap());
    drop(cluster);
    fs::write(&file, lines.replacen(&old, &format!("{}\n", std::process::id()), 1)).unwrap();
    assert_eq!(Cluster::status(&path), None);
    let cluster = Cluster::at(&path).start().unwrap();
    assert_eq!(cluster.data_dir(), data);
}

#[test]
fn folder_with_other_files_is_refused_and_left_untouched() {
    let folder = Folder::new();
    fs::write(folder.0.join("letter"), "dear").unwrap();
    let error = Cluster::at(&folder.0).start().unwrap_err().to_string();
    assert!(error.contains("name an empty folder"), "{error}");
    assert_eq!(folder.0.read_dir().unwrap().count(), 1);
}

#[test]
fn a_cluster_of_another_version_is_refused_with_both_numbers() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    fs::create_dir_all(path.join("data")).unwrap();
    fs::write(path.join("lock"), "").unwrap();
    fs::write(path.join("data/PG_VERSION"), "9\n").unwrap();
    let error = Cluster::at(&path).start().unwrap_err().to_string();
    assert!(error.contains("created by PostgreSQL 9") && error.contains(here().version()), "{error}");
}

#[test]
fn lock_that_is_a_link_is_refused_and_not_followed() {
    let folder = Folder::new();
    let (path, elsewhere) = (folder.0.join("queue"), folder.0.join("elsewhere"));
    fs::create_dir(&path).unwrap();
    symlink(&elsewhere, path.join("lock")).unwrap();
    let error = Cluster::at(&path).start().unwrap_err().to_string();
    assert!(error.contains("lock is not a file") && !elsewhere.exists(), "{error}");
    fs::write(&elsewhere, "").unwrap();
    Cluster::at(&path).start().unwrap_err();
}

/// Without root, the account may read whatever the caller may read.
#[test]
fn log_is_read_with_the_rights_of_the_account() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    drop(Cluster::at(&path).start().unwrap());
    let secret = folder.0.join("secret");
    let mut file = fs::File::create(&secret).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(path.join("server.log")).unwrap();
    symlink(&secret, path.join("server.log")).unwrap();
    let is_readable = secret.metadata().unwrap().uid() == path.join("data").metadata().unwrap().uid();
    let ended = AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                file.write_all(b"a secret\n").unwrap();
            }
        });
        let error = Cluster::at(&path).setting("shared_buffers", "1000TB").start().unwrap_err().to_string();
        ended.store(true, Ordering::Relaxed);
        error
    });
    assert!(is_readable || !error.contains("a secret"), "{error}");
}

#[test]
fn long_log_is_shortened_while_the_server_runs() {
    let folder = Folder::new();
    let cluster = Cluster::at(folder.0.join("queue")).start().unwrap();
    let log = cluster.log_file();
    fs::File::options().write(true).open(&log).unwrap().set_len(17 << 20).unwrap();
    drop(Cluster::at(folder.0.join("queue")).start().unwrap());
    assert!(log.metadata().unwrap().len() < 1 << 20);
    assert_eq!(log.with_extension("log.1").metadata().unwrap().len(), 17 << 20);
    ask(cluster.socket_dir(), cluster.port(), "DO $$ BEGIN RAISE LOG 'it goes on'; END $$");
    let lines = fs::read_to_string(&log).unwrap();
    assert!(lines.contains("it goes on") && !lines.contains('\0'), "{lines}");
}

/// Returns true if a process waits for the lock on the file.
#[cfg(target_os = "linux")]
fn is_waited_for(file: &Path) -> bool {
    let inode = format!(":{} ", file.metadata().unwrap().ino());
    fs::read_to_string("/proc/locks").unwrap().lines().any(|line| line.contains("->") && line.contains(&inode))
}

#[cfg(target_os = "linux")]
#[test]
fn attach_starts_no_server_that_stops_before_it_gets_the_lock() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    let pid = Cluster::at(&path).stay(true).start().unwrap().pid().unwrap();
    let lock = fs::File::options().write(true).open(path.join("lock")).unwrap();
    lock.lock().unwrap();
    let attaches = std::thread::spawn({
        let path = path.clone();
        move || Cluster::attach(path).unwrap().is_some()
    });
    eventually("it waits for the lock", || is_waited_for(&path.join("lock")));
    again::signal(pid, "INT");
    eventually("the server ends", || Cluster::status(&path).is_none());
    drop(lock);
    assert!(!attaches.join().unwrap());
    assert_eq!(Cluster::status(&path), None);
}

/// Starts a server that stays, opens a session, and asks the server to stop when the session has
/// ended. Returns the session.
fn shutting_down(path: &Path) -> UnixStream {
    let cluster = Cluster::at(path).stay(true).start().unwrap();
    let socket = cluster.socket_dir().join(format!(".s.PGSQL.{}", cluster.port()));
    let session = UnixStream::connect(socket).unwrap();
    assert_eq!(exchange(&session, "SELECT 1").as_deref(), Some("1"));
    again::signal(cluster.pid().unwrap(), "TERM");
    eventually("it shuts down", || Cluster::status(path).is_some_and(|running| !running.is_ready()));
    session
}

#[test]
fn server_that_waits_for_its_clients_is_stopped() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    let session = shutting_down(&path);
    let began = Instant::now();
    Cluster::attach(&path).unwrap().unwrap().stop(Stop::Fast).unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(Cluster::status(&path), None);
    drop(session);
}

#[test]
fn server_that_ends_during_a_start_is_started() {
    let folder = Folder::new();
    let path = folder.0.join("queue");
    let session = shutting_down(&path);
    let (before, binaries) = (Cluster::status(&path).unwrap().pid(), here());
    let starts = std::thread::spawn({
        let path = path.clone();
        move || Cluster::at(path).binaries(binaries).start().unwrap()
    });
    let lock = fs::File::options().write(true).open(path.join("lock")).unwrap();
    eventually("the start holds the lock", || {
        let is_held = lock.try_lock().is_err();
        if !is_held {
            lock.unlock().unwrap();
        }
        is_held
    });
    drop(session);
    let cluster = starts.join().unwrap();
    assert_ne!(cluster.pid().unwrap(), before);
    drop(cluster);
    assert_eq!(Cluster::status(&path), None, "who starts it without `stay` stops it");
}
