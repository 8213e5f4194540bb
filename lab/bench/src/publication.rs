//! Makes all published results in one run of at most five hours. An interrupted run can be
//! continued.

use std::{ffi::OsString, path::Path, time::Duration};

use trunkline_embedded::Binaries;
use trunkline_programs::say;

use crate::{
    Claims, Failure, Publication,
    choose::{chosen, matches, name},
    claims, drivers,
    making::Making,
    report,
    suites::{NEAREST, Plan},
    tree,
    wanted::Wanted,
};

/// The suites that are measured on every major version of PostgreSQL.
const ON_EVERY_MAJOR: [&str; 2] = ["throughput", "layer-comparison"];
const CLAIMS: &str = "claims";

pub async fn run(asked: &Publication) -> Result<(), Failure> {
    let folder = match &asked.folder {
        Some(folder) => folder.clone(),
        None => tree::runs()?.join("publication"),
    };
    tree::outside(&folder)?;
    let servers = servers(asked)?;
    let mut plans = plans(asked);
    let others: Vec<Plan> = servers.iter().flat_map(|(major, _)| on(&plans, *major)).collect();
    plans.extend(others);
    for plan in &mut plans {
        plan.rounds = asked.rounds.unwrap_or(plan.rounds);
        plan.told.seconds = asked.seconds.unwrap_or(plan.told.seconds);
    }
    if plans.is_empty() {
        return Err("no row has such a name; `list` shows them".into());
    }
    if asked.plan {
        for plan in &plans {
            say(format_args!("{} × {} s {}", plan.rounds, plan.told.seconds, name(plan)));
        }
        say(format_args!("about {:.1} hours, once everything is built", estimate(&plans).as_secs_f64() / 3600.0));
        return Ok(());
    }
    let mut making = open(asked, &folder.join("results.json"), &plans)?;
    let own: Vec<Plan> = plans.iter().filter(|plan| plan.major.is_none()).cloned().collect();
    making.turns(&own, &asked.server.wanted(), asked.server.skip_cleanup).await?;
    for (major, programs) in servers {
        let of: Vec<Plan> = plans.iter().filter(|plan| plan.major == Some(major)).cloned().collect();
        let wanted = Wanted { programs: Some(programs.dir().to_owned()), ..asked.server.wanted() };
        making.turns(&of, &wanted, asked.server.skip_cleanup).await?;
    }
    making.write()?;
    pages(asked, &folder).await?;
    making.write()?;
    report::write(&making.results, &folder)?;
    say(format_args!("{}\n`trunkline-bench publish` puts it into lab/results", folder.join("README.md").display()));
    Ok(())
}

/// Begins a new publication, or continues an interrupted one.
fn open(asked: &Publication, file: &Path, plans: &[Plan]) -> Result<Making, Failure> {
    if asked.restart || !file.exists() {
        if asked.restart {
            for page in crate::publish::PAGES {
                let _ = std::fs::remove_file(file.with_file_name(page));
            }
        }
        return Making::begin(file, plans, left_out(asked));
    }
    let results = report::read(file)?;
    let run = results.run.clone().unwrap_or_default();
    let why = if run.made.commit != tree::commit() {
        format!("is of commit {:?}, and the sources are {:?} now", run.made.commit, tree::commit())
    } else if run.planned != plans.iter().map(name).collect::<Vec<_>>() {
        "was begun with other rows".to_owned()
    } else {
        return Ok(Making::again(file, results));
    };
    Err(format!("what {} has {why}: finish it as it was begun, or begin again with `--restart`", file.display()).into())
}

/// Makes the pages of the other programs, unless they exist.
async fn pages(asked: &Publication, folder: &Path) -> Result<(), Failure> {
    let page = |name: &str| folder.join(format!("{name}.md"));
    if drivers::is_chosen(&asked.choice) && !page(drivers::NAME).exists() {
        let mut words: Vec<OsString> = vec!["--seconds".into(), "0.5".into(), "--csv".into()];
        words.push(folder.join("drivers.csv").into());
        words.extend(["--markdown".into(), page(drivers::NAME).into()]);
        drivers::run(&words)?;
    }
    let patterns = &asked.choice.patterns;
    if (patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, CLAIMS))) && !page(CLAIMS).exists() {
        let rows = if asked.seconds.is_some() { 200 } else { 20_000 };
        let claims = Claims {
            server: asked.server.clone(),
            rounds: asked.rounds.unwrap_or(7),
            rows,
            patterns: Vec::new(),
            markdown: Some(page(CLAIMS)),
        };
        claims::run(&claims).await?;
    }
    Ok(())
}

fn left_out(asked: &Publication) -> Vec<String> {
    let mut left_out = asked.choice.left_out();
    let majors = majors(asked).unwrap_or_default();
    for (is_out, what) in [
        (
            asked.rounds.is_some() || asked.seconds.is_some(),
            "the length of its rounds and their number: it was a trial".to_owned(),
        ),
        (asked.choice.quick, "the lengths that were not quick".to_owned()),
        (asked.server.database_url.is_some(), "the private cluster".to_owned()),
        (
            !asked.server.settings.is_empty(),
            format!("the server's own settings ({})", asked.server.settings.join(", ")),
        ),
        (
            (14..=18).any(|major| !majors.contains(&major)),
            format!("versions of PostgreSQL: only {majors:?} was asked for"),
        ),
    ] {
        left_out.extend(is_out.then_some(what));
    }
    left_out
}

fn majors(asked: &Publication) -> Result<Vec<u32>, Failure> {
    let words = asked.majors.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| word.parse().map_err(|_| format!("--majors: {word:?} is no version of PostgreSQL").into()))
        .collect()
}

/// Finds the servers of the other major versions.
fn servers(asked: &Publication) -> Result<Vec<(u32, Binaries)>, Failure> {
    let mut majors = majors(asked)?;
    if majors.is_empty() {
        return Ok(Vec::new());
    }
    let own = match &asked.server.programs {
        Some(folder) => Binaries::inspect(folder)?,
        None => Binaries::find_or_fetch(|_, _| {})?,
    };
    majors.retain(|major| *major != own.major());
    let named = std::env::var_os("TRUNKLINE_PG_BINS").unwrap_or_default();
    let found: Vec<Binaries> = std::env::split_paths(&named)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| Binaries::inspect(&folder))
        .collect::<Result<_, _>>()?;
    let server = |major: u32| {
        let known = found.iter().find(|binaries| binaries.major() == major).cloned();
        let known = known.ok_or_else(|| {
            format!(
                "there is no PostgreSQL {major}: name the folder of its programs in TRUNKLINE_PG_BINS (folders with colons between), or \
                 ask for fewer with --majors, and then it is not whole"
            )
        })?;
        Ok((major, known))
    };
    majors.into_iter().map(server).collect()
}

/// Returns the rows on the run's own server.
fn plans(asked: &Publication) -> Vec<Plan> {
    let mut plans = chosen(&asked.choice);
    plans.iter_mut().for_each(length);
    plans
}

/// Returns our own rows, planned for another version of PostgreSQL. Omits rows with one process per
/// caller, because each turn starts many processes. Also omits the rows for the library's own cost
/// and for a commit without the disk, which are measured on one version only.
fn on(plans: &[Plan], major: u32) -> Vec<Plan> {
    let is_short = |plan: &Plan| {
        let of_one_version =
            plan.contender.name == "statements" || !plan.told.fsync.is_empty() || plan.told.messages > 0;
        plan.contender.is_own() && !plan.contender.is_one_caller() && !of_one_version
    };
    let ours = |plan: &&Plan| plan.major.is_none() && ON_EVERY_MAJOR.contains(&plan.suite) && is_short(plan);
    plans
        .iter()
        .filter(ours)
        .map(|plan| Plan { major: Some(major), rounds: 1, allocations: false, ..plan.clone() })
        .collect()
}

/// Sets the rounds and the seconds so that everything fits into five hours.
fn length(plan: &mut Plan) {
    let (rounds, seconds) = match plan.suite {
        "throughput" if plan.told.messages > 0 => (1, plan.told.seconds), // the time is only a limit
        "throughput" if plan.told.case.starts_with("full-cycle") => (2, 1.0),
        "throughput" | "grid" => (2, 1.25),
        "latency" => (2, 2.75),
        "old-snapshot" if plan.told.dead > 0 || plan.told.rate > Some(1000.0) => (1, 180.0),
        "old-snapshot" if plan.contender.name == "trunkline" => (1, 1800.0),
        // This is longer than the minute in which other peers fell behind. A shorter time would
        // favour these peers, because the number of dead rows grows with time.
        "old-snapshot" if NEAREST.contains(&plan.contender.name) => (1, 600.0),
        "old-snapshot" => (1, 180.0),
        "layer-comparison" | "send" | "read" | "ack" => (2, 1.0),
        "idle" if plan.told.rate == Some(0.0) => (1, 60.0),
        "exactly-once" => (2, 4.0),
        "fsync" => (2, 3.0),
        "burst" => (1, 16.0),
        "soak" => (1, 3600.0),
        // The remaining rows are `idle` with messages, `distance` and `stripes`.
        "idle" => (1, 10.0),
        _ => (1, 1.0),
    };
    (plan.rounds, plan.told.seconds) = (rounds, seconds);
}

/// The time that the pages of the other programs take, in seconds.
const PAGES: f64 = 20.0 * 60.0;

/// Estimates the duration of these rows. Each turn also includes a new database, a process, and a
/// measurement of the disk.
fn estimate(plans: &[Plan]) -> Duration {
    let turn = |plan: &Plan| {
        let around = match plan.contender.is_one_caller() {
            true => 2.0 + 0.2 * plan.told.producers as f64,
            false if plan.contender.is_own() => 1.5,
            false => 2.0,
        };
        let counting = if plan.allocations { plan.told.seconds.min(1.0) + around } else { 0.0 };
        // Rows that end after a number of messages last a second or two.
        let seconds = if plan.told.messages > 0 { 1.5 } else { plan.told.seconds };
        let dead = plan.told.dead as f64 / 100_000.0;
        let seeding = dead + plan.told.backlog as f64 / if plan.contender.is_quick { 300_000.0 } else { 40_000.0 };
        f64::from(plan.rounds) * (seconds + plan.told.settle + around + seeding) + counting
    };
    Duration::from_secs_f64(plans.iter().map(turn).sum::<f64>() + PAGES)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        publication: Publication,
    }

    fn publication(words: &[&str]) -> Publication {
        Words::parse_from([&["publication"], words].concat()).publication
    }

    #[test]
    fn a_whole_publication_fits_into_five_hours() {
        let mut plans = plans(&publication(&[]));
        let others: Vec<Plan> = [14, 16, 17, 18].iter().flat_map(|major| on(&plans, *major)).collect();
        plans.extend(others);
        let hours = estimate(&plans).as_secs_f64() / 3600.0;
        assert!(hours < 5.0, "{hours:.2} hours");
        let long = |suite: &str, contender: &str| {
            let row = plans.iter().find(|plan| plan.suite == suite && plan.contender.name == contender);
            row.map(|plan| plan.told.seconds).expect(contender)
        };
        for (suite, contender, seconds) in [
            ("old-snapshot", "trunkline", 1800.0),
            ("old-snapshot", "pgmq", 600.0),
            ("old-snapshot", "river", 180.0),
            ("soak", "trunkline", 3600.0),
            ("idle", "hasql-queue", 60.0),
            ("fsync", "pgq", 3.0),
        ] {
            assert!((long(suite, contender) - seconds).abs() < f64::EPSILON, "{suite} {contender}");
        }
    }

    #[test]
    fn trial_lists_its_omissions() {
        assert!(left_out(&publication(&[])).is_empty());
        let left_out = left_out(&publication(&["--seconds", "1", "-p", "burst", "--majors", "15"]));
        assert_eq!(left_out.len(), 3, "{left_out:?}");
    }
}
