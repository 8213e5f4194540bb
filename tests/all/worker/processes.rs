//! Tests workers in separate processes that abort, are killed, or are stopped for a while.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio_postgres::Client;
use trunkline::{Db, Message, Queue, Settings, Worker};

use crate::fixture::{Place, connect, drained, eventually, place, run_out, within};

/// The variable that selects the child's handler. It is unset in the parent.
const ROLE: &str = "TRUNKLINE_TEST_WORKER";
const DATABASE: &str = "TRUNKLINE_TEST_DATABASE";
const POISON: i64 = 13;

/// The log of all handlers. The table `beside` logs the messages that ran at the same time as a
/// poison message that had already killed a process, and for how long they had run.
const TABLES: &str = "create unlogged table public.handled (pid int, payload int8, attempt int);
    create unlogged table public.beside (payload int8, ms int8)";

/// The minimum time in milliseconds for which other messages must have run when a message starts
/// that may have killed its worker. It is one second minus the delay with which a handler reads its
/// clock; on a busy machine that delay is long. Without isolation, the time would be close to zero.
const ALONE: i64 = 500;

/// A process that works until it is killed.
struct Process(Child);

impl Process {
    fn start(role: &str, url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--ignored", "--exact", "worker::processes::a_process_works_until_it_is_killed"]);
        command.env(ROLE, role).env(DATABASE, url).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("a process starts"))
    }

    /// Sends a signal with the shell's own `kill`, because a system may lack the program.
    fn signal(&self, name: &str) {
        let mut shell = Command::new("sh");
        let sent = shell.args(["-c", r#"kill -s "$0" "$1""#, name, &self.0.id().to_string()]).status();
        assert!(sent.expect("a shell runs").success());
    }

    fn is_over(&mut self) -> bool {
        self.0.try_wait().expect("asked").is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill(); // the process may have ended already
        let _ = self.0.wait();
    }
}

/// Returns the application name of the connection with which a process logs its messages.
fn notes_of(process: u32) -> String {
    format!("notes_{process}")
}

/// Runs the child's part of the tests below.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part in other tests"]
async fn a_process_works_until_it_is_killed() {
    let (Ok(role), Ok(url)) = (std::env::var(ROLE), std::env::var(DATABASE)) else { return };
    let sql = Arc::new(connect(&format!("{url} application_name={}", notes_of(std::process::id()))).await);
    let queue = Db::connect(&url).await.expect("connected").queue::<i64>("q").await.expect("opened");
    let slow = role == "slow";
    let running = Arc::new(Mutex::new(BTreeMap::new()));
    let worker = Worker::new(queue, move |message: Message<i64>| {
        let (sql, running) = (sql.clone(), running.clone());
        async move {
            if message.payload == POISON {
                if message.attempts() > 1 {
                    note_beside(&sql, &running).await;
                }
                std::process::abort();
            }
            running.lock().expect("no panic").insert(message.payload, Instant::now());
            let pid = std::process::id() as i32;
            let noted = "insert into public.handled values ($1, $2, $3)";
            // Records the counted attempts, which do not include leases that were given back early.
            sql.execute(noted, &[&pid, &message.payload, &message.attempts().cast_signed()]).await.expect("noted");
            if slow {
                std::future::pending::<()>().await;
            }
            running.lock().expect("no panic").remove(&message.payload);
            Ok::<(), Infallible>(())
        }
    });
    worker.run(std::future::pending()).await.expect("killed before");
}

/// The messages that are running in this process, with their start times.
type RunningHere = Mutex<BTreeMap<i64, Instant>>;

async fn note_beside(sql: &Client, running: &RunningHere) {
    let beside: Vec<(i64, i64)> = {
        let running = running.lock().expect("no panic");
        running.iter().map(|(payload, since)| (*payload, since.elapsed().as_millis() as i64)).collect()
    };
    for (payload, ms) in beside {
        sql.execute("insert into public.beside values ($1, $2)", &[&payload, &ms]).await.expect("noted");
    }
}

async fn handled(sql: &Client, what: &str) -> i64 {
    sql.query_one(&format!("select {what} from public.handled"), &[]).await.expect("counted").get(0)
}

async fn stage(settings: Settings) -> (String, Queue<i64>, Client) {
    let Place { url, queue, sql, .. } = place::<i64>(settings).await;
    sql.batch_execute(TABLES).await.expect("created");
    (url, queue, sql)
}

/// One of two thousand messages aborts any process that handles it. The first crash counts as an
/// attempt of its neighbours, but later crashes do not.
#[tokio::test(flavor = "multi_thread")]
async fn poison_dies_after_its_attempts_and_its_neighbours_are_done() {
    let attempts = 4;
    let (url, queue, sql) = stage(Settings::new("int8").max_attempts(attempts)).await;
    queue.enqueue_many(&(0..2000).collect::<Vec<_>>()).await.expect("enqueued");
    let mut crashes = 0;
    let mut process = Process::start("quick", &url);
    let began = Instant::now();
    while queue.stats().await.expect("counted").messages > 0 {
        if process.is_over() {
            crashes += 1;
            run_out(&sql).await;
            process = Process::start("quick", &url);
        }
        assert!(began.elapsed() < Duration::from_secs(300), "in vain");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(crashes, attempts, "one for each attempt");
    let letters = queue.dead_letters(0, 10).await.expect("read");
    let told: Vec<_> = letters.iter().map(|dead| (dead.payload, dead.attempt.unsigned_abs())).collect();
    assert_eq!(told, [(POISON, attempts)]);
    assert_eq!(handled(&sql, "count(distinct payload)").await, 1999, "all others were handled");
    let beside = sql.query("select payload, ms from public.beside order by ms", &[]).await.expect("read");
    let beside: Vec<(i64, i64)> = beside.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert!(beside.iter().all(|(_, ms)| *ms >= ALONE), "it ran beside others: {beside:?} (payload, ms so far)");
    let more = "select payload, attempt from public.handled where attempt > 2
                and payload not in (select payload from public.beside) order by payload";
    let more = sql.query(more, &[]).await.expect("read");
    let more: Vec<(i64, i32)> = more.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(more, [], "charged for one crash besides their own attempt; beside a later one ran {beside:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_killed_worker_return_when_their_lease_ends() {
    let (url, queue, sql) = stage(Settings::new("int8").lease(Duration::from_secs(2))).await;
    queue.enqueue_many(&(100..150).collect::<Vec<_>>()).await.expect("enqueued");
    let process = Process::start("slow", &url);
    eventually("all run", || async { handled(&sql, "count(distinct payload)").await == 50 }).await;
    process.signal("KILL");
    let _second = Process::start("quick", &url);
    drained(&queue).await;
    assert_eq!(handled(&sql, "count(*) filter (where attempt = 2)").await, 50);
}

/// A worker that was stopped for longer than its leases changes nothing when it resumes, because
/// other workers hold its messages.
#[tokio::test(flavor = "multi_thread")]
async fn worker_stopped_past_its_lease_settles_only_its_own_messages() {
    let (url, queue, sql) = stage(Settings::new("int8").lease(Duration::from_secs(1)).max_attempts(1000)).await;
    let first = Process::start("quick", &url);
    queue.enqueue_many(&vec![100; 300]).await.expect("enqueued");
    eventually("it works", || async { handled(&sql, "count(*)").await > 0 }).await;
    let gate = connect(&url).await;
    let mut sent = 1000; // gives each payload from here on a different number
    for _ in 0..3 {
        // Blocks the handlers at the gate, so that the worker is certainly stopped during its work.
        gate.batch_execute("begin; lock table public.handled in share row exclusive mode").await.expect("locked");
        queue.enqueue_many(&(sent..sent + 1_500).collect::<Vec<_>>()).await.expect("enqueued");
        eventually("it is in its handlers", || async {
            let waits =
                "select exists (select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock')";
            sql.query_one(waits, &[&notes_of(first.0.id())]).await.expect("visible").get(0)
        })
        .await;
        first.signal("STOP");
        run_out(&sql).await;
        gate.batch_execute("commit").await.expect("let go");
        let second = Process::start("quick", &url);
        let its = format!("count(*) filter (where pid = {})", second.0.id());
        eventually("another works", || async { handled(&sql, &its).await > 20 }).await;
        first.signal("CONT");
        // Waits as long as the number of messages decreases. A message with an expired lease may
        // have killed its worker, so such messages run one after another, which may take long.
        let left = async || queue.stats().await.expect("counted").messages;
        let mut least = left().await;
        while least >= 1_000 {
            eventually("both work", async || left().await < least).await;
            least = left().await;
        }
        drop(second);
        sent += 1_500;
    }
    drained(&queue).await;
    assert_eq!(handled(&sql, "count(distinct payload)").await, 4_501);
    assert_eq!(queue.stats().await.expect("counted").dead, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_workers_each_get_half_of_their_share_or_more() {
    let (url, queue, sql) = stage(Settings::new("int8").max_batch(1)).await;
    let processes: Vec<Process> = (0..16).map(|_| Process::start("quick", &url)).collect();
    // Waits until all processes are listening, before the work arrives.
    let listening = "select count(*) from pg_stat_activity
                     where datname = current_database() and application_name = 'trunkline' and query like 'listen %'";
    within(Duration::from_secs(180), "all wait", || async {
        sql.query_one(listening, &[]).await.expect("asked").get::<_, i64>(0) >= 16
    })
    .await;
    // Repeats up to ten times, because on a small machine a process may get no processor time until
    // the other processes are done.
    for round in 1.. {
        queue.enqueue_many(&(1000..33_000).collect::<Vec<_>>()).await.expect("enqueued");
        drained(&queue).await;
        let rows = sql.query("select pid, count(*) from public.handled group by pid", &[]).await.expect("counted");
        let shares: BTreeMap<i32, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        println!("{shares:?}");
        if shares.len() == 16 && shares.values().all(|share| *share >= 32_000 / 16 / 2) {
            break;
        }
        assert!(round < 10, "{shares:?}");
        sql.batch_execute("delete from public.handled").await.expect("forgotten");
    }
    drop(processes);
}
