//! A real Prometheus reads the metrics, the alert rules and the queries of the dashboard.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use trunkline::Db;
use trunkline_console::metrics::{CONTENT_TYPE, Metrics};

use super::{database, in_all_states};
use crate::browser::post;

const SOON: Duration = Duration::from_secs(60);

/// The shell script that runs Prometheus. It ends when its input closes: when the value is dropped,
/// or when this process ends.
const RUN: &str = r#""$0" --config.file="$1/prometheus.yml" --storage.tsdb.path="$1/data" --web.listen-address="$2" >"$1/log" 2>&1 &
    cat >/dev/null; kill $!; wait $!; rm -r "$1""#;

struct Prometheus {
    running: Child,
    address: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.running.stdin.take());
        let _ = self.running.wait(); // the shell has removed its folder by then
    }
}

const MISSING: &str = "no prometheus and promtool: put their folder first in PATH (see .ci/prometheus)";

/// Returns the paths of the server and of its command-line tool.
fn installed() -> (PathBuf, PathBuf) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let both = |folder: PathBuf| (folder.join("prometheus"), folder.join("promtool"));
    std::env::split_paths(&path).map(both).find(|(server, tool)| server.exists() && tool.exists()).expect(MISSING)
}

fn console() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl Prometheus {
    /// Starts a server that scrapes a target and evaluates the alert rules every second.
    fn start(program: &Path, target: SocketAddr) -> Self {
        let folder = std::env::temp_dir().join(format!("trunkline-prometheus-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder is made");
        let often = "scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s";
        let rules = console().join("prometheus/alerts.yml");
        let text = format!(
            "global: {{ {often} }}\nrule_files: ['{}']\nscrape_configs: [{{ job_name: console, static_configs: [{{ targets: ['{target}'] }}] }}]\n",
            rules.display(),
        );
        fs::write(folder.join("prometheus.yml"), text).expect("written");
        // Finds a free port, because Prometheus neither accepts a listener that is already open nor
        // reports a port that it chose itself.
        let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
        let address = free.expect("a port");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(RUN).arg(program).arg(&folder).arg(address.to_string()).stdin(Stdio::piped());
        Self { running: command.process_group(0).spawn().expect("started"), address }
    }

    async fn listens(&self) {
        let deadline = Instant::now() + SOON;
        while TcpStream::connect(self.address).await.is_err() {
            assert!(Instant::now() < deadline, "prometheus does not listen");
            crate::until_next_poll().await;
        }
    }

    /// Runs a query until `is_there` accepts its result.
    async fn ask(&self, path: &str, query: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let answer = post(self.address, path, &[("query", query)]).await;
            // Treats plain text as no data. It is the response until the server is ready.
            let data = serde_json::from_str::<Value>(&answer.body).unwrap_or_default();
            if is_there(&data["data"]) {
                return data["data"].clone();
            }
            assert!(Instant::now() < deadline, "{query}: {}", answer.body);
            crate::until_next_poll().await;
        }
    }
}

/// Answers every request with the metrics of a database.
async fn respond(listener: TcpListener, db: Db) {
    let metrics = Metrics::new();
    loop {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") && stream.read_buf(&mut asked).await.is_ok_and(|read| read > 0) {}
        let text = metrics.exposition(&db).await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {CONTENT_TYPE}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all((head + &text).as_bytes()).await; // the client may have disconnected
    }
}

/// Returns every query of the dashboard, with `.+` in place of `$queue`. Grafana substitutes the
/// same pattern when all queues are selected.
fn queries() -> Vec<String> {
    let board: Value = serde_json::from_str(include_str!("../../../grafana/trunkline.json")).expect("JSON");
    let panels = board["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets"));
    targets.map(|target| target["expr"].as_str().expect("a query").replace("$queue", ".+")).collect()
}

#[test]
#[ignore = "needs Prometheus: see .ci/prometheus"]
fn the_alert_rules_come_when_they_should() {
    let (_, tool) = installed();
    for (what, file) in [("check", "alerts.yml"), ("test", "alerts_test.yml")] {
        let mut command = Command::new(&tool);
        let said = command.args([what, "rules", file]).current_dir(console().join("prometheus")).output().expect("run");
        assert!(
            said.status.success(),
            "{}{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
    }
    let rules = fs::read_to_string(console().join("prometheus/alerts.yml")).expect("rules");
    let tests = fs::read_to_string(console().join("prometheus/alerts_test.yml")).expect("tests");
    for name in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "no test makes {name} fire");
    }
}

#[test]
#[ignore = "needs Prometheus: see .ci/prometheus"]
fn the_page_is_one_that_promtool_finds_nothing_in() {
    let (_, tool) = installed();
    let page = tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let (_, db, _sql) = database().await;
        in_all_states(&db, "emails").await;
        Metrics::new().exposition(&db).await
    });
    let mut checking = Command::new(tool);
    let checking =
        checking.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut checking = checking.spawn().expect("run");
    std::io::Write::write_all(&mut checking.stdin.take().expect("piped"), page.as_bytes()).expect("read");
    let said = checking.wait_with_output().expect("ended");
    let words = [said.stdout, said.stderr].concat();
    assert!(said.status.success() && words.is_empty(), "{}\n{page}", String::from_utf8_lossy(&words));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus: see .ci/prometheus"]
async fn each_query_of_the_board_has_data() {
    let (program, _) = installed();
    let (_, db, _sql) = database().await;
    in_all_states(&db, "emails").await;
    in_all_states(&db, "a.queue-with_1").await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let target = listener.local_addr().expect("an address");
    let responding = tokio::spawn(respond(listener, db));
    let prometheus = tokio::task::spawn_blocking(move || Prometheus::start(&program, target)).await.expect("started");
    prometheus.listens().await;

    let has_data = |data: &Value| data["result"].as_array().is_some_and(|result| !result.is_empty());
    let queries = queries();
    assert!(queries.len() > 15, "too few: {queries:?}");
    for query in &queries {
        prometheus.ask("/api/v1/query", query, has_data).await;
    }
    let due = r#"trunkline_queue_messages{state="due",queue="a.queue-with_1"}"#;
    let due = prometheus.ask("/api/v1/query", due, has_data).await;
    assert_eq!(due["result"][0]["value"][1], "10");
    tokio::task::spawn_blocking(move || drop(prometheus)).await.expect("ended");
    responding.abort();
}
