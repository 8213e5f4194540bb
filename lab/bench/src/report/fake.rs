//! Makes fake results of a run of all suites, for tests.

use crate::results::{Header, Latency, Made, Outcome, Results, Round, Row, Sample, Server, Told};

/// The names of the contenders, each with its speed.
pub const CONTENDERS: [(&str, f64); 15] = [
    ("trunkline", 430_000.0),
    ("trunkline-bytea", 1_441_000.0),
    ("hasql-queue", 4_754.0),
    ("pgmq", 9_120.0),
    ("pgq", 61_300.0),
    ("graphile-worker-rs", 5_210.0),
    ("apalis-postgres", 2_870.0),
    ("river", 12_840.0),
    ("graphile-worker", 7_020.0),
    ("pg-boss", 1_015.0),
    ("awa", 3_300.0),
    ("pgqueuer", 6_480.0),
    ("procrastinate", 312.0),
    ("sql", 6_000.0),
    ("queue", 5_700.0),
];

fn made() -> Made {
    Made { commit: "0123456789ab".into(), arguments: "publication".into(), build: "release".into() }
}

/// Returns the results of a complete run.
pub fn whole() -> Results {
    let mut results = results();
    for row in &mut results.rows {
        row.planned_rounds = row.rounds.len() as u32;
    }
    results.runs = vec![Header {
        id: "2025-11-21T15-04-00".into(),
        made: made(),
        sittings: vec![(1_763_737_440, 1_763_741_040), (1_763_744_640, 1_763_748_240)],
        planned: results.rows.iter().map(Row::name).collect(),
        left_out: Vec::new(),
    }];
    results
}

pub fn row(suite: &str, case: &str, contender: &str) -> Row {
    Row {
        suite: suite.into(),
        case: case.into(),
        contender: contender.into(),
        version: format!("{contender} 1.2.3"),
        runtime: "rust 1.89".into(),
        settings: "as its documents say".into(),
        told: Told {
            case: case.into(),
            payload: 100,
            batch: 1,
            producers: 16,
            consumers: 0,
            rate: None,
            backlog: 0,
            seconds: 10.0,
            wait: "best".into(),
            delay_ms: 0.0,
            held_snapshot: false,
            sleeper: false,
            messages: 0,
            fsync: String::new(),
            standby: false,
            dead: 0,
            windows: 0,
            dequeue_batch: 0,
            threads: 0,
            settle: 0.0,
            fsync_ms: None,
            stripes: 0,
            keys: 0,
            timed: String::new(),
        },
        server: Server {
            version: "15.18".into(),
            fsync: "on".into(),
            synchronous_commit: "on".into(),
            wal_level: "replica".into(),
            commit_delay: "0".into(),
            connection: "unix socket".into(),
            processors: 2,
            processor: "Imaginary 9000".into(),
            memory: 8 << 30,
            rustc: "1.93.0".into(),
        },
        disk: "fdatasync 9525.067".to_owned(),
        measured_at: 1_763_737_440,
        run: "2025-11-21T15-04-00".into(),
        made: made(),
        major: None,
        planned_rounds: 3,
        outcome: Outcome::Measured,
        rounds: Vec::new(),
    }
}

/// Returns a round of ten seconds with `rate` messages per second, each with a latency of `latency`
/// microseconds.
pub fn round(rate: f64, latency: f64) -> Round {
    Round {
        sent: (rate * 10.0) as u64,
        received: (rate * 10.0) as u64,
        seconds: 10.0,
        latency: Some(Latency {
            count: 1000,
            mean: latency * 1.1,
            p50: latency as u64,
            p90: (latency * 2.0) as u64,
            p99: (latency * 6.0) as u64,
            p999: (latency * 11.0) as u64,
            max: (latency * 40.0) as u64,
        }),
        client_cpu_us: Some(4e5 / rate),
        server_cpu_us: Some(9e5 / rate),
        wal_bytes: Some(180.0 + 2e6 / rate),
        transactions: Some((4000.0 / rate).min(3.0)),
        client_cpu: Some(0.011),
        server_cpu: Some(0.023),
        statements_per_second: Some(2.5),
        dead_before: Some(0),
        dead_after: Some((rate * 8.0) as u64),
        fsyncs_before: 7_403.0,
        fsyncs_after: 6_911.0,
        stolen: 0.004,
        ..Round::default()
    }
}

/// Adds three rounds to the row, which differ slightly.
pub fn measured(mut row: Row, rate: f64, latency: f64) -> Row {
    row.rounds = [1.0, 0.9, 1.04].map(|luck| round(rate * luck, latency / luck)).to_vec();
    row
}

/// Returns the samples of a minute under a held snapshot, during which the cost of a message grows.
pub fn series(rate: f64, from: f64, to: f64) -> Vec<Sample> {
    let sample = |second: u32| {
        let (at, share) = (f64::from(second), f64::from(second) / 60.0);
        // Adds noise, so that every second is different.
        let noise = 1.0 + 0.08 * (at * 2.7).sin();
        Sample {
            at,
            sent: rate,
            received: rate * noise,
            server_cpu_us: (from + (to - from) * share * share) * noise,
            dead: (rate * at) as u64,
            size: 8_000_000 + (rate * at * 300.0) as u64,
        }
    };
    (1..=60).map(sample).collect()
}

/// Returns rows of every suite. One peer is missing, one peer stalled, and one was disturbed.
pub fn results() -> Results {
    let mut rows = Vec::new();
    for (at, (name, speed)) in CONTENDERS[..13].iter().enumerate() {
        let at = at as f64;
        for (case, kind, batch, share) in [
            ("send-sequential", "send", 1, 0.3),
            ("send-batch-100", "send", 100, 2.1),
            ("drain", "drain", 100, 1.3),
            ("cycle", "cycle", 1, 1.0),
        ] {
            let mut row = measured(row("throughput", case, name), speed * share * (1.0 + at % 3.0), 1e6 / speed);
            (row.told.case, row.told.batch) = (kind.into(), batch);
            rows.push(row);
        }
        for rate in [100.0, 1000.0] {
            let mut row = row("latency", &format!("{rate:.0}-a-second"), name);
            (row.told.case, row.told.rate) = ("cycle".into(), Some(rate));
            rows.push(measured(row, rate, 210.0 + 40.0 * (at - 2.0).abs().powi(3)));
        }
        let mut old = row("old-snapshot", "1000-a-second", name);
        (old.told.case, old.told.rate, old.told.held_snapshot) = ("cycle".into(), Some(1000.0), true);
        let mut held = round(1000.0, 400.0 * (1.0 + at));
        held.series = series(1000.0, 40.0 + 30.0 * at, 42.0 + 30.0 * at + at * at * 90.0);
        old.rounds = vec![held];
        rows.push(old);
        for rate in [0.0, 1.0, 10.0] {
            let mut row = row("idle", &format!("{rate:.0}-a-second"), name);
            (row.told.case, row.told.rate) = ("cycle".into(), Some(rate));
            let mut idle = round(rate.max(0.1), 500.0 + 20.0 * at);
            (idle.server_cpu, idle.statements_per_second) = (Some(0.001 * (at + 1.0)), Some(at * 3.0));
            row.rounds = vec![idle];
            rows.push(row);
        }
        for delay in [0.0, 1.0, 5.0] {
            let mut row = row("distance", &format!("cycle, {delay} ms each way"), name);
            (row.told.case, row.told.delay_ms) = ("cycle".into(), delay);
            row.told.producers = if name.starts_with("trunkline") { 1024 } else { 16 };
            let mut row = measured(row, speed / (1.0 + delay * at), 300.0);
            row.rounds.iter_mut().for_each(|round| round.latency = None);
            rows.push(row);
        }
        let mut burst = row("burst", "a million", name);
        (burst.told.case, burst.told.backlog) = ("drain".into(), 1_000_000);
        rows.push(measured(burst, *speed, 1e6 / speed));
    }
    fsyncs(&mut rows);
    for (at, name) in ["sql", "queue", "coalesced", "pgmq"].into_iter().enumerate() {
        steps(&mut rows, at as f64, name);
    }
    for (contender, speed) in [("trunkline", 5100.0), ("hasql-queue", 1700.0)] {
        for (wait, batch) in [("poll", 1), ("notify", 1), ("poll", 100)] {
            for (producers, consumers) in [(1, 1), (1, 2), (2, 4)] {
                let mut row = row("grid", &format!("{producers}/{consumers}, {wait}, batches of {batch}"), contender);
                (row.told.case, row.told.wait, row.told.batch) = ("cycle".into(), wait.into(), batch);
                (row.told.producers, row.told.consumers, row.told.backlog) = (producers, consumers, 20_000);
                rows.push(measured(row, speed * producers as f64 * (batch as f64).sqrt(), 300.0));
            }
        }
    }
    let unable = |row: &&mut Row| ["pgq", "awa"].contains(&row.contender.as_str());
    for row in rows.iter_mut().filter(unable) {
        row.rounds.clear();
        row.outcome = match row.contender.as_str() {
            "pgq" => Outcome::Missing("the extension pgq is not installed | <on this server>".into()),
            _ => Outcome::Stalled("it said nothing for twenty seconds".into()),
        };
    }
    let disturbed = rows.iter_mut().find(|row| row.contender == "river").and_then(|row| row.rounds.get_mut(1));
    disturbed.expect("river runs").disturbed = Some("the disk went from 7403 to 3100 fsyncs/s".into());
    Results { runs: Vec::new(), rows }
}

fn fsyncs(rows: &mut Vec<Row>) {
    for (callers, contenders) in [(64, &CONTENDERS[..5]), (1024, &CONTENDERS[..2])] {
        for least in [0.0, 1.0, 5.0, 20.0] {
            for (contender, _) in contenders {
                let mut row = row("fsync", &format!("send, {callers} callers, {least} ms"), contender);
                (row.told.case, row.told.producers, row.told.fsync_ms) = ("send".into(), callers, Some(least));
                let time = 1000.0 * (least + 0.4);
                rows.push(measured(row, callers as f64 * 1e6 / time, time));
            }
        }
    }
}

fn steps(rows: &mut Vec<Row>, at: f64, name: &str) {
    for (case, time) in [
        ("send-single", 139.0),
        ("send-batch-100", 169.0),
        ("read-batch-10", 142.0),
        ("delete-single", 26.7),
        ("full-cycle", 488.0),
    ] {
        let mut row = row("layer-comparison", case, name);
        row.told.batch = case.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(1);
        let mut row = measured(row, 1e6 / time, time * (1.0 + at / 9.0));
        row.rounds[0].allocations = Some(12.0 * (1.0 + at));
        rows.push(row);
        if name != "coalesced" || case.starts_with("send") {
            let mut many = rows[rows.len() - 1].clone();
            (many.case, many.told.producers) = (format!("{case}, 1024 callers"), 1024);
            rows.push(many);
        }
    }
    for (case, batch, payload, time) in [
        ("send-batch-10", 10, 100, 150.0),
        ("send-batch-100", 100, 100, 171.0),
        ("send-payload-100", 1, 100, 139.0),
        ("send-payload-10000", 1, 10_000, 396.0),
        ("send-payload-100000", 1, 100_000, 2180.0),
        ("send-single", 1, 100, 139.0),
    ] {
        let mut row = row("send", case, name);
        (row.told.batch, row.told.payload) = (batch, payload);
        rows.push(measured(row, 1e6 / time, time * (1.0 + at / 7.0)));
    }
    for (suite, case, time) in [("read", "read-single", 151.0), ("ack", "delete-batch-100", 335.0)] {
        let mut row = row(suite, case, name);
        row.told.batch = if case.ends_with("100") { 100 } else { 1 };
        rows.push(measured(row, 1e6 / time, time * (1.0 + at / 5.0)));
    }
    for (case, trips) in [("send-single", 1.0), ("send-batch-100", 1.0), ("full-cycle", 3.0)] {
        for delay in [0.0, 1.0, 5.0] {
            let mut row = row("distance", &format!("{case}, {delay} ms each way"), name);
            (row.told.case, row.told.delay_ms) = (case.into(), delay);
            rows.push(measured(row, 900.0, (160.0 + 2000.0 * delay) * trips * (1.0 + at / 3.0)));
        }
    }
}
