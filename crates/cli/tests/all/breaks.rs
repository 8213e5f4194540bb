//! Connections break during a statement. A follower continues, and no message is missing.

use std::{
    io::{BufRead, BufReader},
    process::Child,
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    delay_proxy,
    fixture::{Session, Trunkline, eventually, rows, run_out, signal, sql, stop},
};

/// Selects the sessions that wait for an advisory lock.
const WAITS: &str = "select pid from pg_stat_activity where wait_event = 'advisory' and datname = current_database()";

const BREAK: &str = "select pg_terminate_backend(pid) from pg_stat_activity \
                     where application_name = 'trunkline' and datname = current_database()";

/// A follower, and the lines that it prints.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(trunkline: &Trunkline, more: &[&str]) -> Self {
        let mut child = trunkline.start(&[&["dequeue", "q", "--follow"], more].concat());
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        sql(&trunkline.url, r"select trunkline.enqueue('q', 'it runs'::bytea)");
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let follower = Self { child, lines };
        assert_eq!(follower.line(), "it runs");
        eventually("it is acknowledged", || trunkline.json(&["stats", "--json"])[0]["messages"] == 0);
        follower
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(120)).expect("a line comes")
    }

    /// Stops the follower gracefully. Returns its standard error, and the lines that it has printed
    /// since the last call.
    fn end(self) -> (String, Vec<String>) {
        signal(&self.child, "TERM");
        let output = self.child.wait_with_output().expect("it ends");
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{:?}: {error}", output.status);
        (error, self.lines.iter().collect())
    }
}

/// Makes every update or delete of a batch wait for the session that holds the advisory lock 7.
fn wait_at(trunkline: &Trunkline, change: &str) -> Session {
    let wait = "create function public.wait() returns trigger language plpgsql as $$ begin \
                perform pg_advisory_lock(7); perform pg_advisory_unlock(7); \
                return case when tg_op = 'DELETE' then old else new end; end $$";
    sql(&trunkline.url, wait);
    let trigger =
        format!("create trigger wait before {change} on trunkline.queue_q for each row execute function wait()");
    sql(&trunkline.url, &trigger);
    Session::begin(&trunkline.url, "select pg_advisory_lock(7)")
}

#[test]
fn follower_survives_break_during_lease_acknowledgement_or_take() {
    for (change, mode) in [("update", "at-least-once"), ("delete", "at-least-once"), ("delete", "at-most-once")] {
        let trunkline = Trunkline::with_queue(&["--max-attempts", "1"]);
        let follower = Follower::start(&trunkline, &["--mode", mode]);
        let held = wait_at(&trunkline, change);
        sql(&trunkline.url, r"select trunkline.enqueue('q', 'one'::bytea)");
        eventually("a statement is under way", || !rows(&trunkline.url, WAITS).is_empty());
        sql(&trunkline.url, BREAK);
        eventually("the statement is over", || rows(&trunkline.url, WAITS).len() <= 1);
        drop(held);
        assert_eq!(follower.line(), "one");
        let empty = || trunkline.json(&["stats", "--json"])[0]["messages"] == 0;
        eventually("it is acknowledged", empty);
        sql(&trunkline.url, r"select trunkline.enqueue('q', 'two'::bytea)");
        assert_eq!(follower.line(), "two", "it goes on");
        eventually("it is acknowledged", empty);
        let (error, more) = follower.end();
        assert!(more.is_empty(), "{change} {mode}: {more:?} came again");
        assert_eq!(error.matches("warning: ").count(), 1, "{change} {mode}: {error}");
        assert!(error.contains("the connection broke"), "{error}");
        assert_eq!(trunkline.json(&["stats", "--json"])[0]["dead"], 0);
    }
}

#[test]
fn breaks_while_traffic_flows_lose_nothing() {
    let trunkline = Trunkline::with_queue(&["--max-attempts", "1000", "--max-batch", "50"]);
    let follower = Follower::start(&trunkline, &[]);
    let mut session = Session::begin(&trunkline.url, "select 1");
    for round in 0..40 {
        for part in 0..5 {
            let first = round * 500 + part * 100;
            let enqueue = "select trunkline.enqueue('q', convert_to(n::text, 'UTF8')) from generate_series";
            session.run(&format!("{enqueue}({first}, {}) n", first + 99));
        }
        session.run(BREAK);
    }
    let mut seen = vec![0; 20_000];
    eventually("everything is there", || {
        run_out(&trunkline.url); // ends the leases that broken connections left behind
        follower.lines.try_iter().for_each(|line| seen[line.parse::<usize>().expect("a number")] += 1);
        seen.iter().all(|count| *count > 0)
    });
    let (error, _) = follower.end();
    assert!(error.contains("warning: the connection broke"), "{error}");
    let stats = trunkline.json(&["stats", "--json"]).remove(0);
    assert_eq!(stats["dead"], 0);
}

#[test]
fn a_break_in_front_of_at_most_once_repeats_nothing() {
    let trunkline = Trunkline::with_queue(&["--max-batch", "50"]);
    let follower = Follower::start(&trunkline, &["--mode", "at-most-once"]);
    let mut session = Session::begin(&trunkline.url, "select 1");
    for round in 0..20 {
        let enqueue = "select trunkline.enqueue('q', convert_to(n::text, 'UTF8')) from generate_series";
        session.run(&format!("{enqueue}({}, {}) n", round * 100, round * 100 + 99));
        session.run(BREAK);
    }
    let mut numbers = Vec::new();
    eventually("the last one comes", || {
        session.run("select trunkline.enqueue('q', 'last'::bytea)"); // the last break may have lost the first message
        numbers.extend(follower.lines.try_iter());
        numbers.iter().any(|line| line == "last")
    });
    numbers.retain(|line| line != "last");
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), all, "each at most once");
    assert!(follower.end().1.iter().all(|line| line == "last"));
}

#[test]
fn acknowledgement_with_lost_answer_repeats_nothing_and_warns() {
    let near = Trunkline::with_queue(&["--max-attempts", "1"]);
    let (mut proxy, _, far) = delay_proxy::far(&near, "0", "0");
    let port = far.url.split("port=").nth(1).and_then(|rest| rest.split(' ').next()).expect("a port").to_owned();
    let follower = Follower::start(&far, &[]);
    let held = wait_at(&near, "delete");
    sql(&near.url, r"select trunkline.enqueue('q', 'one'::bytea)");
    assert_eq!(follower.line(), "one");
    eventually("the acknowledgement is under way", || !rows(&near.url, WAITS).is_empty());
    // Stops the proxy, so that the answer reaches only the proxy.
    stop(&proxy);
    drop(held);
    eventually("it is acknowledged", || rows(&near.url, "select id from trunkline.queue_q").is_empty());
    proxy.kill().and_then(|()| proxy.wait()).expect("it can be killed");
    let (mut proxy, ..) = delay_proxy::far(&near, &port, "0");
    sql(&near.url, r"select trunkline.enqueue('q', 'two'::bytea)");
    assert_eq!(follower.line(), "two", "it goes on");
    let (error, more) = follower.end();
    assert!(more.is_empty(), "{more:?} came again");
    assert!(error.contains("warning: the connection broke before ack was answered"), "{error}");
    assert!(error.contains("warning: 1 messages were delivered, and the connection broke while"), "{error}");
    assert_eq!(near.json(&["stats", "--json"])[0]["messages"], 0);
    proxy.kill().and_then(|()| proxy.wait()).expect("it can be killed");
}

#[test]
fn a_signal_ends_a_follower_while_the_database_is_away() {
    for mode in ["at-least-once", "at-most-once"] {
        let near = Trunkline::with_queue(&[]);
        let (mut proxy, _, far) = delay_proxy::far(&near, "0", "0");
        let follower = Follower::start(&far, &["--mode", mode]);
        // Waits until the follower asks for more messages: by then, the server has answered its
        // acknowledgement. Without that answer, the follower would wait for a long time.
        let last = "select query from pg_stat_activity where datname = current_database() \
                    and query ~ 'do_(lease|take|ack|look)_q' order by query_start desc limit 1";
        let is_past = |query: &String| !query.contains("do_ack_q");
        eventually("it asks for more", || rows(&near.url, last).first().is_some_and(is_past));
        proxy.kill().and_then(|()| proxy.wait()).expect("it can be killed");
        let began = Instant::now();
        follower.end();
        assert!(began.elapsed() < Duration::from_secs(25), "{mode}: {:?}", began.elapsed());
    }
}

#[test]
fn without_following_a_break_is_an_error() {
    let trunkline = Trunkline::with_queue(&[]);
    trunkline.ok(&["enqueue", "q", "one"]);
    let held = wait_at(&trunkline, "update");
    let child = trunkline.start(&["dequeue", "q"]);
    eventually("a lease is under way", || !rows(&trunkline.url, WAITS).is_empty());
    sql(&trunkline.url, BREAK);
    drop(held);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: the connection broke before lease"));
}
