use std::time::Instant;

use super::*;

/// A script that reports that it is ready, and waits for `go`.
const READY: &str = r#"echo '{"ready":{"version":"Fake 1"}}'; read go;"#;
/// A limit that none of these contenders reaches, even on a busy machine.
const PATIENT: Duration = Duration::from_secs(60);

fn told() -> Told {
    Told {
        case: "cycle".into(),
        payload: 100,
        batch: 7,
        producers: 3,
        consumers: 2,
        rate: Some(1000.0),
        backlog: 500,
        seconds: 0.1,
        wait: "notify".into(),
        delay_ms: 0.0,
        held_snapshot: false,
        sleeper: false,
        messages: 0,
        fsync: String::new(),
        standby: false,
        dead: 0,
        windows: 0,
        dequeue_batch: 9,
        threads: 2,
        settle: 0.0,
        fsync_ms: None,
        stripes: 0,
        keys: 0,
        timed: String::new(),
    }
}

fn start(script: &str, silence: Duration) -> Contending {
    let program =
        Program { path: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()], folder: std::env::temp_dir() };
    let address = Address { host: "127.0.0.1".into(), port: 5433, user: "me".into(), password: "secret".into() };
    Contending::start(&program, &address, &Place { name: "here", stripes: &[] }, &told(), silence)
        .expect("there is a shell")
}

/// Runs a whole conversation with a contender, as a round does.
async fn talk(script: &str, silence: Duration) -> Result<(Ready, Done, Option<Latency>), Ended> {
    let mut contending = start(script, silence);
    let ready = contending.ready().await?;
    contending.go().await?;
    let done = loop {
        if let Some(done) = contending.listen().await? {
            break done;
        }
    };
    Ok((ready, done, contending.end().await?.0))
}

async fn failure(script: &str) -> String {
    match talk(script, PATIENT).await {
        Err(Ended::Failed(why)) => why,
        other => panic!("{script} gave {other:?}"),
    }
}

async fn stall(script: &str, silence: Duration) -> String {
    let began = Instant::now();
    let outcome = talk(script, silence).await;
    assert!(began.elapsed() < PATIENT, "it was waited for");
    match outcome {
        Err(Ended::Stalled(why)) => why,
        other => panic!("{script} gave {other:?}"),
    }
}

#[tokio::test]
async fn a_silent_contender_is_reported_with_what_it_said_last() {
    let script = format!(r#"echo '{{"progress":{{"sent":12,"received":5}}}}'; {READY} sleep 300"#);
    let why = stall(&script, Duration::from_millis(200)).await;
    assert_eq!(why, "silent for 0 s; before, 12 sent and 5 received");
}

#[tokio::test]
async fn endless_progress_is_reported() {
    let script = format!(r#"{READY} while echo '{{"progress":{{"sent":1,"received":0}}}}'; do sleep 0.1; done"#);
    let why = stall(&script, Duration::from_secs(1)).await;
    assert!(why.contains("1 sent and 0 received"), "{why}");
}

#[tokio::test]
async fn a_contender_that_never_stops_talking_is_reported() {
    let script = format!(r#"{READY} while echo '{{"progress":{{"sent":1,"received":0}}}}'; do :; done"#);
    let why = stall(&script, Duration::from_millis(500)).await;
    assert!(why.contains("1 sent and 0 received"), "{why}");
}

#[tokio::test]
async fn rubbish_is_quoted() {
    for script in ["echo Hello, world".to_owned(), format!("{READY} echo Hello, world; sleep 300")] {
        let why = failure(&script).await;
        assert!(why.contains("\"Hello, world\", which is not the protocol"), "{why}");
    }
}

#[tokio::test]
async fn a_word_at_the_wrong_time_is_quoted() {
    let why = failure(r#"echo '{"done":{"sent":1,"received":1,"seconds":1}}'; sleep 300"#).await;
    assert!(why.contains("should have said that it is ready"), "{why}");
    let why = failure(&format!("{READY} {READY} sleep 300")).await;
    assert!(why.contains("should have said how far it is"), "{why}");
}

#[tokio::test]
async fn contender_exit_is_reported_with_status_and_last_words() {
    for script in ["echo no such table >&2; exit 1".to_owned(), format!("{READY} echo no such table >&2; exit 1")] {
        assert_eq!(failure(&script).await, "exit status: 1; no such table");
    }
}

#[tokio::test]
async fn contender_that_exits_badly_after_done_has_failed() {
    let script =
        format!(r#"{READY} echo '{{"done":{{"sent":1,"received":1,"seconds":1}}}}'; cat; echo a leak >&2; exit 3"#);
    assert_eq!(failure(&script).await, "exit status: 3; a leak");
}

#[tokio::test]
async fn a_contender_that_is_missing_something_says_what() {
    match talk(r#"echo '{"missing":"the extension pgq is not installed"}'"#, PATIENT).await {
        Err(Ended::Missing(why)) => assert_eq!(why, "the extension pgq is not installed"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn error_is_reported_in_the_contenders_words() {
    for script in [String::new(), READY.to_owned()] {
        let script = script + r#"echo '{"error":"asked for 10 messages and had 9"}'; exit 1"#;
        assert_eq!(failure(&script).await, "asked for 10 messages and had 9");
    }
}

#[tokio::test]
async fn outcome_is_what_the_contender_reported() {
    let script = format!(
        r#"{READY} test "$go" = go || exit 1
        echo '{{"progress":{{"sent":40,"received":30}}}}'
        echo '{{"latency":{{"100":50,"200":40}}}}'
        echo '{{"latency":{{"300":9,"1000":1}}}}'
        echo '{{"done":{{"sent":100,"received":99,"seconds":1.5,"allocations":7,"allocated_bytes":8}}}}'
        cat"#
    );
    let (ready, done, latency) = talk(&script, PATIENT).await.expect("it ends well");
    assert_eq!((ready.version.as_str(), ready.runtime.as_str()), ("Fake 1", ""));
    assert_eq!((done.sent, done.received, done.allocations, done.allocated_bytes), (100, 99, Some(7), Some(8)));
    assert!((done.seconds - 1.5).abs() < f64::EPSILON);
    let told = latency.expect("latencies were told");
    assert_eq!((told.count, told.p50, told.p90, told.p99, told.p999, told.max), (100, 100, 200, 300, 1000, 1000));
    assert!((told.mean - 167.0).abs() < 0.001, "{}", told.mean);
}

#[tokio::test]
async fn contender_without_latencies_has_none() {
    let script = format!(r#"{READY} echo '{{"done":{{"sent":1,"received":0,"seconds":1}}}}'; cat"#);
    assert!(talk(&script, PATIENT).await.expect("it ends well").2.is_none());
}

#[tokio::test]
async fn contender_receives_the_protocols_settings() {
    let words = "$BENCH_CASE $BENCH_PAYLOAD $BENCH_BATCH $BENCH_PRODUCERS $BENCH_CONSUMERS $BENCH_RATE $BENCH_BACKLOG \
                 $BENCH_SECONDS $BENCH_WAIT $BENCH_DEQUEUE_BATCH $BENCH_THREADS $GOMAXPROCS $BENCH_URL $PGHOST $PGPORT $PGUSER $PGPASSWORD $PGDATABASE";
    let mut contending = start(&format!(r#"echo '{{"ready":{{"version":"'"{words}"'"}}}}'"#), PATIENT);
    assert_eq!(
        contending.ready().await.expect("it is ready").version,
        "cycle 100 7 3 2 1000 500 0.1 notify 9 2 2 postgresql://me:secret@127.0.0.1:5433/here 127.0.0.1 5433 me secret here"
    );
}

#[tokio::test]
async fn long_log_neither_blocks_contender_nor_fills_row() {
    let log = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo >&2;";
    let script = format!(r#"{log} {READY} {log} echo '{{"done":{{"sent":1,"received":1,"seconds":1}}}}'; cat"#);
    talk(&script, PATIENT).await.expect("it ends well");
    let why = failure(&format!("{log} echo no such table >&2; exit 1")).await;
    assert!(why.ends_with("no such table") && why.len() < 5000, "{} bytes", why.len());
}

/// Returns true if the process has not exited. Linux shows an exited process as a zombie until its
/// parent waits for it.
#[cfg(target_os = "linux")]
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn children_of_a_contender_end_with_it() {
    let ready = r#"sleep 300 & echo '{"ready":{"version":"'$!'"}}'; read go;"#;
    for (how, end) in [
        ("silent", "sleep 300"),
        ("rubbish", "echo Hello, world; sleep 300"),
        ("an error", r#"echo '{"error":"oh"}'; exit 1"#),
        ("gone", "exit 1"),
        ("done", r#"echo '{"done":{"sent":1,"received":1,"seconds":1}}'; cat"#),
    ] {
        let mut contending = start(&format!("{ready} {end}"), Duration::from_millis(500));
        let child = contending.ready().await.expect(how).version;
        assert!(lives(&child), "{how}: {child}");
        contending.go().await.expect(how);
        match contending.listen().await {
            Ok(Some(_)) => drop(contending.end().await.expect(how)),
            Ok(None) => panic!("{how}"),
            Err(_) => drop(contending),
        }
        let deadline = Instant::now() + PATIENT;
        while lives(&child) {
            assert!(Instant::now() < deadline, "{how}: its child {child} is still there");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test]
async fn logs_of_contenders_at_the_same_time_are_not_mixed() {
    let script = |word: &str| format!("echo {word} >&2; {READY} exit 1");
    let (mut one, mut other) = (start(&script("one"), PATIENT), start(&script("other"), PATIENT));
    for contending in [&mut one, &mut other] {
        contending.ready().await.expect("it is ready");
        contending.go().await.expect("it listens");
    }
    for (contending, word) in [(&mut one, "one"), (&mut other, "other")] {
        match contending.listen().await {
            Err(Ended::Failed(why)) => assert_eq!(why, format!("exit status: 1; {word}")),
            ended => panic!("{ended:?}"),
        }
    }
}
