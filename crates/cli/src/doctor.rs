//! `trunkline doctor`

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use tokio::time::timeout;
use trunkline_console::doctor::{Doctor, Finding, Severity};

use crate::{
    clean::clean,
    database::Database,
    error::{Error, Result},
    json::Line,
    print, time,
};

/// The arguments of `trunkline doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is changed or locked, and no payload is read. A finding is `wrong` (do something), `advice`
(it works, and could be better or safer) or `unchecked` (the role may not look there). The same
problem in four or more queues is one finding.

The exit code follows the worst finding: 0 if there is none, or only advice; 1 if something is wrong,
or the database does not answer; 3 if nothing is wrong, but a check was not possible. With --strict,
advice alone is 4. Wrong usage is 2.

In a monitoring job, name the database: otherwise the private PostgreSQL of the user is examined.

The doctor examines what holds back the cleaning of dead rows (transactions, prepared transactions,
slots, standbys), dead rows, autovacuum, indexes, sequences and transaction ids, the notification
queue, whether notifications arrive, settings, rights, workers that report, and relays. For each queue
it examines whether due messages are consumed, its dead letters, its floor and its sequence.

Examples:
  trunkline doctor
  trunkline doctor --patience 1m
  trunkline doctor --skip-check bloat,versions --skip-queue 'nightly_*'
  trunkline doctor --json | jq -r 'select(.severity == \"wrong\") | .mend'")]
pub struct Args {
    /// The time for which a transaction may be open, a slot unread and a message due without a
    /// finding
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time::duration)]
    patience: Duration,
    /// Leave out these checks, by the names in square brackets
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    skip_check: Vec<String>,
    /// Leave out these queues; a * at the end of a name matches any ending
    #[arg(long, value_name = "QUEUES", value_delimiter = ',')]
    skip_queue: Vec<String>,
    /// Exit with code 4 if there is advice, and nothing worse
    #[arg(long)]
    strict: bool,
    /// A line of JSON for each finding
    #[arg(long)]
    json: bool,
}

/// The maximum number of lines of a remedy that the text shows.
const MENDS: usize = 10;
/// The time limit for the list of queues, in which the names of `--skip-queue` are looked up.
const ANSWER: Duration = Duration::from_secs(15);

pub fn doctor(skip_checks: &[String], skip_queues: &[String]) -> Result<Doctor> {
    if let Some(other) = skip_checks.iter().find(|name| !Doctor::checks().any(|check| check == *name)) {
        let checks = Doctor::checks().collect::<Vec<_>>().join(", ");
        return Err(Error::usage(format!("there is no check {other:?}")).hint(format!("the checks are {checks}")));
    }
    let doctor = skip_checks.iter().fold(Doctor::new(), Doctor::skip_check);
    Ok(skip_queues.iter().fold(doctor, Doctor::skip_queue))
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let doctor = doctor(&args.skip_check, &args.skip_queue)?.patience(args.patience);
    let mut found = Vec::new();
    let mut queues = Some(BTreeSet::new());
    for (server, db) in database.try_each().await? {
        if !args.skip_queue.is_empty() {
            let listed = async { timeout(ANSWER, db.as_ref().ok()?.list_queues()).await.ok()?.ok() };
            queues = queues.zip(listed.await).map(|(mut all, listed)| {
                all.extend(listed.into_iter().map(|queue| queue.name));
                all
            });
        }
        let examined = match db {
            Ok(db) => doctor.examine(&db).await.map_err(Error::from),
            Err(error) => Err(error),
        };
        match examined {
            Ok(findings) => found.extend(findings.into_iter().map(|finding| (server.clone(), finding))),
            Err(error) if database.is_sharded() => found.push((server, unreachable(&error))),
            Err(error) => return Err(error),
        }
    }
    for name in queues.iter().flat_map(|queues| unknown(&args.skip_queue, queues)) {
        print::note(format!("warning: --skip-queue {name} leaves out nothing: there is no such queue"));
    }
    let written = if args.json {
        print::lines(found.iter().map(|(server, finding)| object(server, finding)))
    } else if found.is_empty() {
        print::line("nothing is wrong")
    } else {
        let told: Vec<String> = found.iter().map(|(server, finding)| told(server, finding)).collect();
        print::text(told.join("\n"))
    };
    verdict(&found, args.strict).and(print::if_open(written)) // a closed reader does not hide the verdict
}

/// Returns the names that leave out no queue.
fn unknown<'a>(skipped: &'a [String], queues: &BTreeSet<String>) -> impl Iterator<Item = &'a String> {
    skipped.iter().filter(|name| match name.strip_suffix('*') {
        Some(beginning) => !queues.iter().any(|queue| queue.starts_with(beginning)),
        None => !queues.contains(*name),
    })
}

fn verdict(found: &[(String, Finding)], is_strict: bool) -> Result<()> {
    let of = |severity| found.iter().filter(|(_, finding)| finding.severity == severity).count();
    match (of(Severity::Wrong), of(Severity::Unchecked), of(Severity::Advice)) {
        (0, 0, 0) => Ok(()),
        (0, 0, 1) if is_strict => Err(Error::found("--strict: the doctor has one piece of advice", 4)),
        (0, 0, advice) if is_strict => {
            Err(Error::found(format!("--strict: the doctor has {advice} pieces of advice"), 4))
        }
        (0, 0, _) => Ok(()),
        (0, 1, _) => Err(Error::found("nothing is known to be wrong, but one check could not run", 3)),
        (0, unchecked, _) => {
            Err(Error::found(format!("nothing is known to be wrong, but {unchecked} checks could not run"), 3))
        }
        (1, ..) => Err(Error::new("one thing is wrong")),
        (wrong, ..) => Err(Error::new(format!("{wrong} things are wrong"))),
    }
}

/// Returns the finding for a server that cannot be examined, if there are several servers.
fn unreachable(error: &Error) -> Finding {
    let (what, hint) = error.told();
    Finding {
        check: "server",
        severity: Severity::Wrong,
        queue: None,
        queues: Vec::new(),
        what,
        since: None,
        why: "Nothing on this server was examined.".to_owned(),
        mend: hint.unwrap_or_else(|| "start the server, or leave it out of the connection strings".to_owned()),
    }
}

fn object(server: &str, finding: &Finding) -> Line {
    let line = Line::default().with("check", finding.check).with("severity", finding.severity.as_str());
    let line = match server.is_empty() {
        true => line,
        false => line.with("server", server),
    };
    let line = line
        .with("queue", finding.queue.clone())
        .with("queues", finding.queues.clone())
        .with("what", finding.what.clone());
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
    format!("{head} [{}]\n{since}  why    {}\n  mend   {}\n", finding.check, clean(&finding.why), mends(&finding.mend))
}

/// Returns the first lines of a remedy, one below the other.
fn mends(mend: &str) -> String {
    let all: Vec<String> = mend.lines().map(clean).collect();
    let more = all.len().saturating_sub(MENDS);
    let more = (more > 0).then(|| format!("… and {more} more, which --json prints"));
    all.into_iter().take(MENDS).chain(more).collect::<Vec<_>>().join("\n         ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_of_many_queues_are_lines_and_not_too_many() {
        let lines = |count: usize| (1..=count).map(|n| format!("vacuum q{n};\u{1b}")).collect::<Vec<_>>().join("\n");
        assert_eq!(mends(&lines(2)), "vacuum q1; \n         vacuum q2; ");
        let many = mends(&lines(12));
        assert_eq!(many.lines().count(), 11, "{many}");
        assert!(many.ends_with("vacuum q10; \n         … and 2 more, which --json prints"), "{many}");
    }
}
