use std::{collections::BTreeSet, sync::OnceLock, time::Duration};

use trunkline_embedded::Cluster;

use crate::{
    Person,
    measured::Measured,
    place::Place,
    queue,
    report::{Made, Report, csv, pages},
    server::Server,
    turns::{Open, Patience, turns},
    ways::{OURS, ways},
    work::Kind,
    workloads::{WORKLOADS, Workload},
};

const ONCE: Patience = Patience { rounds: 1, enough: Duration::from_secs(1) };

/// A private server without fsync, because the speed of its disk does not matter here. It stops
/// when the process exits.
fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::temporary().setting("fsync", "off").start().expect("a private PostgreSQL starts"))
}

/// Checks, with one turn per way, that every way leaves the same database and returns the same
/// answers as the first way.
#[tokio::test(flavor = "multi_thread")]
async fn every_way_does_every_workload_and_the_same() {
    let mut server = Server::start(Some(&cluster().url("postgres"))).await.expect("it has a database");
    let mut open = Vec::new();
    for way in ways() {
        let driver = (way.open)(server.place.clone()).await.expect("it connects");
        open.push(Open { way, driver });
    }
    let people = Person::all(1000);
    let mut report =
        Report { machine: "a machine".to_owned(), made: Made::default(), measured: Vec::new(), verbs: Vec::new() };
    for workload in WORKLOADS {
        let count = workload.count.min(100);
        let tiny = Workload { count, ..*workload };
        let rows = turns(&mut server, &open, (&tiny, Duration::ZERO), &people, ONCE).await.expect("all do the same");
        assert!(rows.len() >= 3, "{}: only {} ways", workload.name, rows.len());
        assert_eq!(rows[0].way, OURS, "{}", workload.name);
        assert!(rows.iter().all(|row| row.turns.len() == 1), "{}", workload.name);
        report.measured.extend(rows.into_iter().map(|row| Measured { workload: *workload, ..row }));
    }
    let names = |names: Vec<&'static str>| names.into_iter().collect::<BTreeSet<_>>();
    let took_part = names(report.measured.iter().map(|row| row.way).collect());
    assert_eq!(took_part, names(ways().iter().map(|way| way.name).collect()));
    tells_everything(&report);
    drop(open);
    server.end().await.expect("its database goes");
}

/// Checks that every bar and every step has figures. A name that matches no row would leave a gap.
fn tells_everything(report: &Report) {
    let text = report.markdown();
    let far = |line: &str| line.contains("each way");
    let gaps: Vec<&str> = text.lines().filter(|line| line.contains("not measured") && !far(line)).collect();
    assert!(gaps.is_empty(), "{gaps:?}");
    let sources = text.split("## Where the gain comes from").nth(1).and_then(|rest| rest.split("## Bars").next());
    let sources = sources.expect("the sources are told");
    for (source, count) in
        [("binary", 10), ("`unnest`", 5), ("fire-and-forget", 2), ("pipelining", 3), ("together", 10)]
    {
        let line = sources.lines().find(|line| line.starts_with(&format!("| {source}"))).expect("a line");
        assert!(line.contains(&format!(" | {count} | ")), "{line}");
    }
    let steps = text.split("## What gives what").nth(1).and_then(|rest| rest.split("## Workloads").next());
    let steps = steps.expect("the steps are told");
    assert_eq!(
        steps.matches("| - |").count(),
        2 * steps.matches("| CPU |").count(),
        "only the first step has none before it:\n{steps}"
    );
    for workload in WORKLOADS {
        assert!(text.contains(&format!("### {}\n", workload.name)), "{}", workload.name);
    }
    for (name, page) in pages(report) {
        let ways = report.measured.iter().filter(|row| row.workload.kind == Kind::Results).count();
        assert!(name != "results-parsing.html" || page.matches("<svg").count() == ways, "{page}");
    }
    assert_eq!(pages(report).len(), 3);
    let turns: usize = report.measured.iter().map(|row| row.turns.len()).sum();
    assert_eq!(csv(report).lines().count(), turns + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_of_the_queue_has_its_turn() {
    let place = Place::of(&cluster().url("postgres")).expect("it has an address");
    queue::migrate(&place).await.expect("migrated");
    let verbs = queue::verbs(&place, Duration::ZERO, ONCE).await.expect("all of them");
    assert_eq!(verbs.len(), 8);
    assert!(verbs.iter().all(|verb| verb.turns.len() == 1));
    let report = Report { machine: String::new(), made: Made::default(), measured: Vec::new(), verbs };
    assert!(report.markdown().contains("ack_and_lease 100"));
}
