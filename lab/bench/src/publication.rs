//! Makes all published results, part by part. An interrupted part can be continued.

use std::{ffi::OsString, path::Path, time::Duration};

use trunkline_embedded::Binaries;
use trunkline_programs::say;

use crate::{
    Claims, Failure, Publication,
    choose::{chosen, matches, name},
    claims,
    continued::{is_complete, refused},
    drivers,
    making::Making,
    parts, report,
    suites::{NEAREST, Plan},
    tree,
    wanted::Wanted,
};

/// The suites that are measured on every major version of PostgreSQL.
const ON_EVERY_MAJOR: [&str; 2] = ["throughput", "layer-comparison"];
const CLAIMS: &str = "claims";

/// A suite on one version of PostgreSQL. It is measured and published independently of other parts.
struct Part {
    name: String,
    plans: Vec<Plan>,
    /// The server's programs, if it is not the publication's own server.
    programs: Option<Binaries>,
}

pub async fn run(asked: &Publication) -> Result<(), Failure> {
    let folder = match &asked.folder {
        Some(folder) => folder.clone(),
        None => tree::runs()?.join("publication"),
    };
    tree::outside(&folder)?;
    let parts = chosen_parts(asked)?;
    if asked.plan {
        show(&parts);
        return Ok(());
    }
    // Creates the folder before the measurements, because the other programs write their pages only
    // after they have measured everything.
    std::fs::create_dir_all(&folder)?;
    for part in &parts {
        measure(asked, part, &folder).await?;
    }
    pages(asked, &folder).await?;
    report::write(&parts::read(&folder)?, &folder)?;
    say(format_args!("{}\n`trunkline-bench publish` puts it into lab/results", folder.join("README.md").display()));
    Ok(())
}

fn show(parts: &[Part]) {
    let mut all = Duration::ZERO;
    for part in parts {
        for plan in &part.plans {
            say(format_args!("{} × {} s {}", plan.rounds, plan.told.seconds, name(plan)));
        }
        let time = estimate(&part.plans);
        say(format_args!("{}: about {:.0} minutes, once everything is built\n", part.name, time.as_secs_f64() / 60.0));
        all += time;
    }
    say(format_args!("in all about {:.1} hours", all.as_secs_f64() / 3600.0));
}

/// Measures the turns that a part still lacks.
async fn measure(asked: &Publication, part: &Part, folder: &Path) -> Result<(), Failure> {
    let file = parts::file(folder, &part.name);
    let making = if asked.restart || !file.exists() {
        parts::put_aside(folder, &part.name)?;
        Making::begin(&file, &part.plans, left_out(asked))?
    } else {
        let results = report::read(&file)?;
        if let Some(why) = refused(&results, &part.plans, &left_out(asked), tree::commit()) {
            let (file, name) = (file.display(), &part.name);
            return Err(format!(
                "what {file} has {why}: finish it as it was begun, or begin again with `--restart {name}`"
            )
            .into());
        }
        if is_complete(&results) {
            say(format_args!("{} is complete", part.name));
            return Ok(());
        }
        Making::again(&file, results)
    };
    let programs = part.programs.as_ref().map(|programs| programs.dir().to_owned());
    let own = asked.server.wanted();
    let wanted = Wanted { programs: programs.or(own.programs.clone()), ..own };
    let mut making = making.of_one_commit();
    making.turns(&part.plans, &wanted, asked.server.skip_cleanup).await?;
    making.write()?;
    say(format_args!("{} is complete", part.name));
    Ok(())
}

/// Makes the pages of the other programs, unless they exist.
async fn pages(asked: &Publication, folder: &Path) -> Result<(), Failure> {
    let page = |name: &str| folder.join(format!("{name}.md"));
    let is_asked = |name: &str| {
        let patterns = &asked.choice.patterns;
        let is_chosen = patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, name));
        is_chosen && (asked.parts.is_empty() || asked.parts.iter().any(|part| part == name))
    };
    if is_asked(drivers::NAME) && (asked.restart || !page(drivers::NAME).exists()) {
        let mut words: Vec<OsString> = ["--rounds", "101", "--seconds", "0.5", "--csv"].map(Into::into).to_vec();
        words.push(folder.join("drivers.csv").into());
        words.extend(["--markdown".into(), page(drivers::NAME).into()]);
        made(&page(drivers::NAME), async || drivers::run(&words)).await?;
    }
    if is_asked(CLAIMS) && (asked.restart || !page(CLAIMS).exists()) {
        let rows = if asked.seconds.is_some() { 200 } else { 20_000 };
        let claims = Claims {
            server: asked.server.clone(),
            rounds: asked.rounds.unwrap_or(7),
            rows,
            patterns: Vec::new(),
            markdown: Some(page(CLAIMS)),
        };
        made(&page(CLAIMS), async || claims::run(&claims).await).await?;
    }
    Ok(())
}

/// Makes a page. The previous page is renamed first. If the sources change, no page remains.
async fn made(page: &Path, make: impl AsyncFnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    tree::unchanged()?;
    parts::rename(page)?;
    make().await?;
    let unchanged = tree::unchanged();
    if unchanged.is_err() {
        std::fs::remove_file(page)?;
    }
    unchanged
}

fn left_out(asked: &Publication) -> Vec<String> {
    let mut left_out = asked.choice.left_out();
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
    let is_named = |major: u32| asked.parts.iter().any(|part| part.ends_with(&format!("-{major}")));
    majors.retain(|major| *major != own.major() && (asked.parts.is_empty() || is_named(*major)));
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
                 ask for fewer with --majors"
            )
        })?;
        Ok((major, known))
    };
    majors.into_iter().map(server).collect()
}

/// Returns the parts that the command line names, or all.
fn chosen_parts(asked: &Publication) -> Result<Vec<Part>, Failure> {
    let mut own = chosen(&asked.choice);
    own.iter_mut().for_each(length);
    let mut parts = by_suite(&own, None);
    for (major, programs) in servers(asked)? {
        parts.extend(by_suite(&on(&own, major), Some(&programs)));
    }
    let known =
        |name: &String| parts.iter().any(|part| part.name == *name) || [drivers::NAME, CLAIMS].contains(&&**name);
    if let Some(unknown) = asked.parts.iter().find(|name| !known(name)) {
        let names: Vec<&str> = parts.iter().map(|part| &*part.name).chain([drivers::NAME, CLAIMS]).collect();
        return Err(format!("there is no part {unknown:?}; the parts are {}", names.join(", ")).into());
    }
    if !asked.parts.is_empty() {
        parts.retain(|part| asked.parts.contains(&part.name));
    } else if parts.is_empty() {
        return Err("no row has such a name; `list` shows them".into());
    }
    for plan in parts.iter_mut().flat_map(|part| &mut part.plans) {
        plan.rounds = asked.rounds.unwrap_or(plan.rounds);
        plan.told.seconds = asked.seconds.unwrap_or(plan.told.seconds);
    }
    Ok(parts)
}

/// Divides plans for one server into a part per suite.
fn by_suite(plans: &[Plan], programs: Option<&Binaries>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for plan in plans {
        let name = parts::named(plan.suite, plan.major);
        match parts.iter_mut().find(|part| part.name == name) {
            Some(part) => part.plans.push(plan.clone()),
            None => parts.push(Part { name, plans: vec![plan.clone()], programs: programs.cloned() }),
        }
    }
    parts
}

/// Returns our own rows, planned for another version of PostgreSQL. Omits rows with one process per
/// caller, because each turn starts many processes. Also omits the rows for the library's own cost
/// and for a commit without the disk, because one version is enough for them.
fn on(plans: &[Plan], major: u32) -> Vec<Plan> {
    let is_short = |plan: &Plan| {
        let of_one_version =
            plan.contender.name == "statements" || !plan.told.fsync.is_empty() || plan.told.messages > 0;
        plan.contender.is_own() && !plan.contender.is_one_caller() && !of_one_version
    };
    let ours = |plan: &&Plan| plan.major.is_none() && ON_EVERY_MAJOR.contains(&plan.suite) && is_short(plan);
    plans.iter().filter(ours).map(|plan| Plan { major: Some(major), allocations: false, ..plan.clone() }).collect()
}

/// Sets the rounds and the seconds. A row has five rounds of ten seconds, or one of at least five
/// minutes.
fn length(plan: &mut Plan) {
    (plan.rounds, plan.told.seconds) = match plan.suite {
        _ if plan.told.messages > 0 => (5, plan.told.seconds), // with a number of messages, the time is only a limit
        "old-snapshot" if plan.told.dead > 0 || plan.told.rate > Some(1000.0) => (1, 300.0),
        "old-snapshot" if plan.contender.name == "trunkline" => (1, 1800.0),
        // Ten minutes are longer than the minute after which other peers fell behind. A shorter
        // time would favour these peers, because the number of dead rows grows with time.
        "old-snapshot" if NEAREST.contains(&plan.contender.name) => (1, 600.0),
        "old-snapshot" | "headline" => (1, 300.0),
        "soak" => (1, 3600.0),
        "idle" => (5, 20.0),
        _ => (5, 10.0),
    };
}

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
        // Estimates a second or two for rows that end after a number of messages.
        let seconds = if plan.told.messages > 0 { 1.5 } else { plan.told.seconds };
        let dead = plan.told.dead as f64 / 100_000.0;
        let seeding = dead + plan.told.backlog as f64 / if plan.contender.is_quick { 300_000.0 } else { 40_000.0 };
        f64::from(plan.rounds) * (seconds + plan.told.settle + around + seeding) + counting
    };
    Duration::from_secs_f64(plans.iter().map(turn).sum::<f64>())
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
    fn a_part_fits_into_three_hours_and_has_five_rounds_or_five_minutes() {
        let mut own = chosen(&publication(&[]).choice);
        own.iter_mut().for_each(length);
        let mut parts = by_suite(&own, None);
        parts.extend(by_suite(&on(&own, 14), None));
        assert!(parts.iter().any(|part| part.name == "throughput-14"));
        for part in &parts {
            let hours = estimate(&part.plans).as_secs_f64() / 3600.0;
            assert!(hours < 3.0, "{}: {hours:.2} hours", part.name);
            for plan in &part.plans {
                let is_long = plan.told.seconds >= 300.0;
                assert!(is_long || plan.rounds >= 5 && plan.told.seconds >= 10.0, "{}", name(plan));
            }
        }
    }

    #[test]
    fn trial_lists_its_omissions() {
        assert!(left_out(&publication(&[])).is_empty());
        let left_out = left_out(&publication(&["--seconds", "1", "-p", "burst", "--majors", "15"]));
        assert_eq!(left_out.len(), 2, "{left_out:?}");
    }

    #[test]
    fn trial_and_publication_do_not_continue_each_other() {
        let mut own = chosen(&publication(&["-p", "^soak/"]).choice);
        own.iter_mut().for_each(length);
        let planned = own.iter().map(name).collect();
        let run = |left_out: Vec<String>| {
            let made = crate::results::Made { commit: "abc".into(), ..Default::default() };
            crate::results::Results {
                runs: vec![crate::results::Header { made, planned, left_out, ..Default::default() }],
                rows: Vec::new(),
            }
        };
        let begun = run(Vec::new());
        assert_eq!(refused(&begun, &own, &[], "abc"), None);
        let trial = left_out(&publication(&["--rounds", "1"]));
        assert_eq!(refused(&begun, &own, &trial, "abc").as_deref(), Some("was begun with other options"));
        let why = refused(&begun, &own, &[], "abc+").expect("another commit");
        assert!(why.contains("\"abc\"") && why.contains("\"abc+\""), "{why}");
        assert_eq!(refused(&begun, &[], &[], "abc").as_deref(), Some("was begun with other rows"));
    }
}
