//! `trunkline doctor`

use std::time::{Duration, SystemTime};

use trunkline_console::doctor::{Doctor, Finding, Severity};

use crate::{
    database::Database,
    error::{Error, Result},
    json::Line,
    print::{self, clean},
    time,
};

/// The arguments of `trunkline doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is changed or locked, and no payload is read. A finding is `wrong` (do something), `advice`
(it works, and could be better or safer) or `unchecked` (the role may not look there). The exit code
is 1 when something is wrong.

Looked at: who holds back the cleaning of dead rows (transactions, prepared transactions, slots,
standbys), dead rows, autovacuum, indexes, sequences and transaction ids, the notification queue,
whether notifications arrive, settings, rights; and for each queue whether what is due is consumed,
its floor and its sequence.

Examples:
  trunkline doctor
  trunkline doctor --patience 1m
  trunkline doctor --json | jq -r 'select(.severity == \"wrong\") | .mend'")]
pub struct Args {
    /// For how long a transaction may be open, a slot unread and a message due
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time::duration)]
    patience: Duration,
    /// A line of JSON for each finding
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let doctor = Doctor::new().patience(args.patience);
    let mut found = Vec::new();
    for (server, db) in database.connect_each().await? {
        found.extend(doctor.examine(&db).await?.into_iter().map(|finding| (server.clone(), finding)));
    }
    if args.json {
        print::lines(found.iter().map(|(server, finding)| object(server, finding)))?;
    } else if found.is_empty() {
        print::line("nothing is wrong")?;
    } else {
        let told: Vec<String> = found.iter().map(|(server, finding)| told(server, finding)).collect();
        print::text(told.join("\n"))?;
    }
    match found.iter().filter(|(_, finding)| finding.severity == Severity::Wrong).count() {
        0 => Ok(()),
        1 => Err(Error::new("one thing is wrong")),
        more => Err(Error::new(format!("{more} things are wrong"))),
    }
}

fn object(server: &str, finding: &Finding) -> Line {
    let line = Line::default().with("check", finding.check).with("severity", finding.severity.as_str());
    let line = match server.is_empty() {
        true => line,
        false => line.with("server", server),
    };
    let line = line.with("queue", finding.queue.clone()).with("what", finding.what.clone());
    line.with("since", finding.since.map(time::exact))
        .with("why", finding.why.clone())
        .with("mend", finding.mend.clone())
}

fn told(server: &str, finding: &Finding) -> String {
    let about = [server, finding.queue.as_deref().unwrap_or_default()];
    let about: Vec<String> = about.into_iter().filter(|name| !name.is_empty()).map(clean).collect();
    let head = [&[finding.severity.as_str().to_owned()], &*about, &[clean(&finding.what)]].concat().join(": ");
    let since = finding.since.map_or_else(String::new, |since| {
        let age = SystemTime::now().duration_since(since).unwrap_or_default();
        format!("  since  {} ({})\n", time::rfc3339(since), time::age(age))
    });
    format!("{head} [{}]\n{since}  why    {}\n  mend   {}\n", finding.check, clean(&finding.why), clean(&finding.mend))
}
