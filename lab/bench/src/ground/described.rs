//! Describes the server and its machine.

use tokio_postgres::Client;
use trunkline_programs::machine;

use crate::{Failure, results::Server};

/// Describes the network in the same way as the script that shapes it (`lab/bench/netem.sh`).
fn connection(tcp: bool) -> String {
    match (tcp, std::env::var("BENCH_NETWORK")) {
        (false, _) => "unix socket".to_owned(),
        (true, Ok(network)) if !network.is_empty() => format!("TCP, {network}"),
        (true, _) => "TCP".to_owned(),
    }
}

pub async fn server(admin: &Client, tcp: bool) -> Result<Server, Failure> {
    let row = admin
        .query_one(
            "select current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
                current_setting('wal_level'), current_setting('commit_delay')",
            &[],
        )
        .await?;
    let text = |column: usize| row.get::<_, String>(column);
    Ok(Server {
        version: text(0).split(' ').next().unwrap_or_default().to_owned(),
        fsync: text(1),
        synchronous_commit: text(2),
        wal_level: text(3),
        commit_delay: text(4),
        connection: connection(tcp),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        processor: machine::processor(),
        memory: machine::memory().unwrap_or(0),
        rustc: machine::rustc().unwrap_or_default(),
    })
}
