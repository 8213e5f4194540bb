//! `trunkline console`: the options that it requires, and the pages that it serves.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
};

use crate::fixture::{Folder, Trunkline, eventually, program, rows, signal};

#[test]
fn password_is_hashed_and_bad_line_of_users_is_named() {
    let (trunkline, folder) = (Trunkline::new(), Folder::new());
    let mut child = program()
        .args(["console", "--hash-password"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("an input").write_all(b"correct horse battery\n").expect("sent");
    let output = child.wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("$argon2id$"), "{output:?}");
    let users = folder.join("users");
    fs::write(&users, "ada:king:x\n").expect("written");
    let (_, error) = trunkline.fails(&["console", "--users", users.to_str().expect("a name")]);
    assert!(error.contains("line 1: the role is neither viewer nor operator"), "{error}");
}

#[test]
fn others_are_not_let_in_unasked() {
    let (_, error) = Trunkline::new().fails(&["console", "--listen", "0.0.0.0:0"]);
    assert!(error.contains("can be reached from other machines") && error.contains("--users FILE"), "{error}");
}

#[test]
fn it_serves_until_it_is_asked_to_end() {
    let trunkline = Trunkline::new();
    let mut child =
        trunkline.command(&["console", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("its errors")).lines();
    let address = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("console: http://").map(str::to_owned));
    let address = address.expect("it says where it listens");
    let mut stream = TcpStream::connect(&address).expect("connected");
    write!(stream, "GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
    signal(&child, "TERM");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn quiet_console_prints_nothing() {
    let trunkline = Trunkline::new();
    let child = trunkline.start(&["console", "--quiet", "--listen", "127.0.0.1:0"]);
    let samples = "select pid from pg_stat_activity where datname = current_database()
        and application_name = 'trunkline' and query like '%trunkline.queue q%'";
    eventually("it takes samples", || !rows(&trunkline.url, samples).is_empty());
    signal(&child, "TERM");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
