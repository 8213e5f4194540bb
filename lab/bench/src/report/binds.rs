//! Shows the bottleneck of each row, with the measured figures. The bottleneck is the processors,
//! the disk, locks, or the network between client and server.

use std::fmt::Write;

use crate::{
    report::{
        markdown::{Table, code},
        measure::{CLIENT_USE, SERVER_USE},
        number,
        race::{is_measured, shown},
    },
    results::Row,
};

/// The share of all processors at which the processors count as the bottleneck.
const FULL: f64 = 0.85;

/// Makes a table with one line per row.
pub fn table(rows: &[&Row]) -> String {
    let mut table = Table::of_words(["case", "contender", "bound by", "as was measured"]);
    for row in rows.iter().filter(|row| is_measured(row)) {
        if let Some((binds, by)) = told(row) {
            table.row([Some(code(&row.case)), Some(shown(&row.contender)), Some(binds.into()), Some(by)]);
        }
    }
    table.text()
}

/// The mean number of sessions in each state.
#[derive(Default)]
struct Sessions {
    running: f64,
    disk: f64,
    locks: f64,
    /// Sessions in a transaction that wait for the client's next statement.
    client: f64,
}

/// Returns the bottleneck and its figures, or `None` if the wait states were not sampled.
fn told(row: &Row) -> Option<(&'static str, String)> {
    let looks: Vec<&_> = row.rounds.iter().map(|round| &round.waits).filter(|waits| !waits.is_empty()).collect();
    let mut sessions = Sessions::default();
    for (wait, count) in looks.iter().copied().flatten() {
        let kind = match wait.as_str() {
            "running" => &mut sessions.running,
            "Client:ClientRead" => &mut sessions.client,
            // Counts a session that waits for another session's flush as waiting for the disk.
            wait if wait.starts_with("IO:") || wait.starts_with("LWLock:WALWrite") => &mut sessions.disk,
            wait if wait.starts_with("Lock:") || wait.starts_with("LWLock:") || wait.starts_with("BufferPin:") => {
                &mut sessions.locks
            }
            // Skips sessions that sleep, or communicate with another process of the server.
            _ => continue,
        };
        *kind += count / looks.len() as f64;
    }
    let used = CLIENT_USE.median(row).zip(SERVER_USE.median(row));
    let load = used.map(|(client, server)| (client + server) / row.server.processors.max(1) as f64);
    if looks.is_empty() {
        return None;
    }
    let Sessions { running, disk, locks, client } = sessions;
    let binds = if load.is_some_and(|load| load >= FULL) {
        "processors"
    } else if disk > 0.0 && disk >= running.max(locks) {
        "disk"
    } else if locks > 0.0 && locks >= running {
        "locks"
    } else {
        "network: each waits for the other's answer"
    };
    let mut by = String::new();
    if let (Some(load), Some((client, server))) = (load, used) {
        let (load, client, server) = (number::percent(load), number::percent(client), number::percent(server));
        let _ = write!(by, "processors in use {load} (client {client} of one, server {server} of one); ");
    }
    let _ = write!(
        by,
        "sessions that run {}, wait for the disk {}, for locks {}, for the client inside a transaction {}",
        number::rate(running),
        number::rate(disk),
        number::rate(locks),
        number::rate(client)
    );
    Some((binds, by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fake;

    fn binds(cpu: f64, waits: &[(&str, f64)]) -> &'static str {
        let mut row = fake::measured(fake::row("grid", "1/1, poll, batches of 1", "trunkline"), 1000.0, 100.0);
        for round in &mut row.rounds {
            (round.client_cpu, round.server_cpu) = (Some(cpu / 2.0), Some(cpu / 2.0));
            round.waits = waits.iter().map(|(wait, count)| ((*wait).to_owned(), *count)).collect();
        }
        told(&row).map_or("nothing", |(binds, _)| binds)
    }

    #[test]
    fn bottleneck_follows_from_measurements() {
        let disk = [("IO:WALSync", 0.8), ("running", 0.2), ("LWLock:WALWrite", 0.3)];
        assert_eq!(binds(0.5, &disk), "disk");
        assert_eq!(binds(1.9, &disk), "processors");
        assert_eq!(binds(0.5, &[("Lock:transactionid", 1.4), ("running", 0.9)]), "locks");
        assert!(binds(0.5, &[("Client:ClientRead", 0.9), ("running", 0.2)]).starts_with("network"));
        assert_eq!(binds(0.5, &[]), "nothing");
    }
}
