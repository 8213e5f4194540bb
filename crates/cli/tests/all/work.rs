//! `trunkline work`: the input of a command, and the outcome of its message.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process_group},
};
use serde_json::Value;

use crate::fixture::{Folder, Trunkline, eventually, retry_late, sql};

/// Handles all due messages successfully. Returns the output.
fn drain(trunkline: &Trunkline, exec: &str, more: &[&str]) -> (Vec<String>, String) {
    let output = trunkline.run(&[&["work", "q", "--drain", "--exec", exec], more].concat());
    printed(&output)
}

fn printed(output: &Output) -> (Vec<String>, String) {
    let error = String::from_utf8(output.stderr.clone()).expect("text");
    assert!(output.status.success(), "{error}");
    let out = String::from_utf8(output.stdout.clone()).expect("text");
    (out.lines().map(str::to_owned).collect(), error)
}

fn stats(trunkline: &Trunkline, what: &str) -> Value {
    trunkline.json(&["stats", "--json"])[0][what].clone()
}

/// Returns the reasons of the dead letters, by their payloads.
fn dead(trunkline: &Trunkline) -> Vec<(String, String)> {
    let text = |letter: &Value, key: &str| letter[key].as_str().expect("text").to_owned();
    let letters = trunkline.json(&["dead", "list", "q", "--json"]);
    let mut dead: Vec<_> = letters.iter().map(|letter| (text(letter, "payload"), text(letter, "error"))).collect();
    dead.sort();
    dead
}

const ENDS: &str = "read -r end; echo \"about $end\" >&2; [ $end = kill ] && kill -KILL $$; exit $end";

#[test]
fn the_exit_code_says_what_becomes_of_a_message() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    retry_late(&trunkline.url); // delays retries, so that a drain tries each message only once
    trunkline.ok(&["enqueue", "q", "0", "100", "3", "kill"]);
    let (_, error) = drain(&trunkline, ENDS, &[]);
    assert!(error.ends_with("q: 1 done, 2 failed, 1 dead\n"), "{error}");
    assert!(error.contains("attempt 1 failed: exit code 3\n"), "{error}");
    assert_eq!([stats(&trunkline, "messages"), stats(&trunkline, "to_retry")], [2, 2]);
    let died = |payload: &str, reason: &str| (payload.to_owned(), format!("{reason}: about {payload}"));
    assert_eq!(dead(&trunkline), [died("100", "exit code 100")]);

    trunkline.ok(&["purge", "q", "--yes"]);
    trunkline.ok(&["enqueue", "q", "3", "kill"]);
    drain(&trunkline, ENDS, &["--retries", "0"]);
    let all = [died("100", "exit code 100"), died("3", "exit code 3"), died("kill", "ended by signal 9")];
    assert_eq!(dead(&trunkline), all);
}

#[test]
fn reason_is_last_lines_of_standard_error_and_bounded() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "x"]);
    drain(&trunkline, "seq 100000 >&2; exit 100", &[]);
    let (_, reason) = dead(&trunkline).remove(0);
    assert!(reason.len() < 5000 && reason.ends_with("\n99999\n100000"), "{reason}");
    assert!(reason.starts_with("exit code 100: 9"), "{reason}");
}

#[test]
fn command_gets_payload_and_facts_about_its_message() {
    let trunkline = Trunkline::with_queue(&["--type", "jsonb"]);
    let id = trunkline.ok(&["enqueue", "q", "{\"to\": \"ada\"}"]).trim().to_owned();
    let (lines, _) = drain(&trunkline, "cat; env | grep -E '^TRUNKLINE_(QUEUE|ID|ATTEMPT|ENQUEUED_AT)=' | sort", &[]);
    let enqueued_at = lines.iter().find_map(|line| line.split_once("ENQUEUED_AT=")).expect("it is told").1;
    assert!(enqueued_at.len() == 24 && enqueued_at.ends_with('Z'), "{enqueued_at}");
    let wanted = [
        "{\"to\": \"ada\"}".to_owned(),
        "TRUNKLINE_ATTEMPT=1".to_owned(),
        format!("TRUNKLINE_ENQUEUED_AT={enqueued_at}"),
        format!("TRUNKLINE_ID={id}"),
        "TRUNKLINE_QUEUE=q".to_owned(),
    ];
    assert_eq!(lines, wanted.map(|line| format!("q {id} | {line}")));
}

#[test]
fn command_gets_key_and_metadata_if_its_message_has_them() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--partitions", "4"]);
    trunkline.ok(&["enqueue", "q", "--key", "ada's", "--with", "tenant=the \"first\"", "one"]);
    trunkline.ok(&["enqueue", "q", "--key", "bob's", "two"]);
    let mut command = trunkline.command(&[
        "work",
        "q",
        "--drain",
        "--exec",
        "cat; echo ${TRUNKLINE_KEY-none}; echo ${TRUNKLINE_METADATA-none}",
        "--concurrency",
        "1",
    ]);
    let (lines, _) = printed(&command.env("TRUNKLINE_METADATA", "of another").output().expect("it runs"));
    let of = |payload: &str| {
        let at = lines.iter().position(|line| line.ends_with(payload)).expect("it ran");
        [&lines[at + 1], &lines[at + 2]].map(|line| line.split_once(" | ").expect("it has a prefix").1)
    };
    assert_eq!(of("| one"), ["ada's", "{\"tenant\":\"the \\\"first\\\"\"}"]);
    assert_eq!(of("| two"), ["bob's", "none"]);
}

#[test]
fn a_command_continues_the_trace_of_its_message() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    sql(&trunkline.url, &format!("select trunkline.enqueue('q', 'x', '0', '{{\"traceparent\": \"{trace}\"}}')"));
    let (lines, _) = drain(&trunkline, "echo $TRACEPARENT; echo ${TRACESTATE:-none}", &[]);
    assert!(lines[0].ends_with(&format!("| {trace}")) && lines[1].ends_with("| none"), "{lines:?}");
}

#[test]
fn bytes_reach_a_command_as_they_are() {
    let (trunkline, folder) = (Trunkline::with_queue(&[]), Folder::new());
    let bytes: Vec<u8> = (0..=u8::MAX).filter(|byte| *byte != b'\n').cycle().take(300_000).collect();
    let file = folder.join("payload");
    fs::write(&file, &bytes).expect("it can be written");
    trunkline.ok(&["enqueue", "q", "--lines", file.to_str().expect("text")]);
    let mut command = trunkline.command(&["work", "q", "--drain", "--exec", "cat > $DIR/got"]);
    printed(&command.env("DIR", &folder.0).output().expect("it runs"));
    assert!(fs::read(folder.join("got")).expect("it was written") == bytes);
}

#[test]
fn a_command_need_not_read_its_input() {
    let trunkline = Trunkline::with_queue(&[]);
    // Sends messages that are much larger than a pipe's buffer.
    for exec in ["true", "exec <&-; sleep 0.1", "head -c 5 > /dev/null"] {
        let mut enqueue = trunkline.command(&["enqueue", "q", "--lines", "-"]);
        let mut child = enqueue.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it runs");
        let mut input = child.stdin.take().expect("it is piped");
        for _ in 0..3 {
            input.write_all(&[vec![b'x'; 1 << 20], vec![b'\n']].concat()).expect("it reads");
        }
        drop(input);
        assert!(child.wait().expect("it ends").success());
        let (_, error) = drain(&trunkline, exec, &["--concurrency", "1"]);
        assert!(error.ends_with("q: 3 done, 0 failed\n"), "{exec}: {error}");
        assert_eq!(stats(&trunkline, "messages"), 0);
    }
}

#[test]
fn command_inherits_credentials_only_on_request() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let exec = "echo ${DATABASE_URL:-no url} ${PGPASSWORD:-no password} ${PGHOST:-no host} ${PGDATABASE:-no string}";
    for (more, seen) in [
        (&[][..], "no url no password here no string".to_owned()),
        (&["--pass-credentials"], format!("{} secret here host=h password=secret", trunkline.url)),
    ] {
        trunkline.ok(&["enqueue", "q", "x"]);
        let mut command = trunkline.command(&[&["work", "q", "--drain", "--exec", exec], more].concat());
        command.env("PGPASSWORD", "secret").env("PGHOST", "here").env("PGDATABASE", "host=h password=secret");
        let output = command.output().expect("it runs");
        let (lines, _) = printed(&output);
        assert!(lines.len() == 1 && lines[0].ends_with(&format!(" | {seen}")), "{lines:?}");
    }
}

#[test]
fn lines_are_passed_on_whole_however_many_commands_print() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let ids = trunkline.lines(&[&["enqueue", "q"][..], &["x"; 24]].concat());
    let half = "abcdefghij".repeat(300);
    let exec = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10; do printf {half}; printf '{half}\\n'; echo error >&2; done; printf end"
    );
    let output = trunkline.run(&["work", "q", "--drain", "--concurrency", "8", "--exec", &exec]);
    let (lines, error) = printed(&output);
    assert_eq!(lines.len(), 24 * 11);
    for id in &ids {
        let of_id: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(&format!("q {id} | "))).collect();
        let (last, others) = of_id.split_last().expect("it printed");
        assert_eq!((*last, others.len()), ("end", 10));
        assert!(others.iter().all(|line| *line == half.repeat(2)));
        assert_eq!(error.matches(&format!("q {id} | error\n")).count(), 10);
    }
}

#[test]
fn command_that_takes_too_long_ends_with_all_its_children() {
    let (trunkline, folder) = (Trunkline::with_queue(&["--type", "text"]), Folder::new());
    trunkline.ok(&["enqueue", "q", "hears", "is deaf"]);
    let exec =
        "read -r how; echo $$ >> $DIR/groups; [ \"$how\" = hears ] || trap '' TERM; sleep 600 & sleep 600 & wait; wait";
    // Uses a timeout so long that even a busy machine starts both commands. One of them ignores
    // SIGTERM.
    let args = ["work", "q", "--drain", "--retries", "0", "--timeout", "10", "--concurrency", "2", "--exec", exec];
    let began = Instant::now();
    printed(&trunkline.command(&args).env("DIR", &folder.0).output().expect("it runs"));
    assert!(began.elapsed() >= Duration::from_secs(15), "the deaf one has five seconds more");
    assert!(dead(&trunkline).iter().all(|(_, reason)| reason.starts_with("took longer than 10 seconds")));
    assert_eq!(dead(&trunkline).len(), 2);
    let groups = fs::read_to_string(folder.join("groups")).expect("it was written");
    assert_eq!(groups.lines().count(), 2);
    groups.lines().for_each(no_group);
}

/// Waits until no process is left in a process group.
pub fn no_group(id: &str) {
    let group = id.parse().ok().and_then(Pid::from_raw).expect("the id of a group");
    eventually("nothing is left of the command", || test_kill_process_group(group) == Err(Errno::SRCH));
}

#[test]
fn processes_left_running_end_with_their_command() {
    let (trunkline, folder) = (Trunkline::with_queue(&["--type", "text"]), Folder::new());
    trunkline.ok(&["enqueue", "q", "x"]);
    let args = ["work", "q", "--drain", "--exec", "echo $$ > $DIR/group; sleep 600 & echo done"];
    let (lines, _) = printed(&trunkline.command(&args).env("DIR", &folder.0).output().expect("it runs"));
    assert!(lines.len() == 1 && lines[0].ends_with(" | done"), "{lines:?}");
    no_group(fs::read_to_string(folder.join("group")).expect("it was written").trim());
}

#[test]
fn wrong_usage_says_so() {
    let trunkline = Trunkline::with_queue(&[]);
    for args in [
        &["work", "q"][..],
        &["work", "q", "--exec", "true", "--concurrency", "0"],
        &["work", "q", "--exec", "true", "--timeout", "0"],
        &["work", "q", "--exec", "true", "--timeout", "0ms"],
        &["work", "q", "--exec", "true", "--lease", "0"],
    ] {
        assert_eq!(trunkline.fails(args).0, 2, "{args:?}");
    }
    trunkline.ok(&["enqueue", "q", "kept"]);
    for blank in ["", " ", "\t\n"] {
        let (code, error) = trunkline.fails(&["work", "q", "--drain", "--exec", blank]);
        assert!(code == 2 && error.contains("hint: a variable"), "{error}");
    }
    assert_eq!(stats(&trunkline, "due"), 1, "nothing is acknowledged by no command");
    assert!(trunkline.fails(&["work", "nope", "--exec", "true"]).1.contains("there is no queue \"nope\""));
    let (_, error) = trunkline.fails(&["work", "q", "--exec", "true", "--lease", "0.0s"]);
    assert!(error.contains("invalid value '0.0s' for '--lease <TIME>': it must be more than zero"), "{error}");
}

/// A message is not done before the output of its command has been passed on.
#[test]
fn slow_reader_gets_all_output_of_commands_that_have_ended() {
    let (trunkline, folder) = (Trunkline::with_queue(&["--type", "text"]), Folder::new());
    trunkline.ok(&["enqueue", "q", "many"]);
    // The first command fills every buffer up to the reader. The second writes little.
    let exec = "if grep -q many; then touch $DIR/begun; seq 2000000; else seq 1000; touch $DIR/ended; fi";
    let mut command = trunkline.command(&["work", "q", "--drain", "--concurrency", "2", "--exec", exec]);
    let command = command.env("DIR", &folder.0).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program runs");
    eventually("the first runs", || folder.join("begun").exists());
    trunkline.ok(&["enqueue", "q", "few"]);
    eventually("the second has ended", || folder.join("ended").exists());
    // The time after which the program used to give up.
    let acked = (0..30).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        stats(&trunkline, "messages") == 1
    });
    assert!(!acked, "its output is not passed on yet");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let lines: usize = lines.map(|line| usize::from(line.is_ok())).sum();
    assert_eq!((lines, child.wait().expect("it ends").success()), (2_001_000, true));
}
