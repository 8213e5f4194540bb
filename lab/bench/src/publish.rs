//! Publishes parts. Each part is one whole run, and never a mixture of runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use trunkline_programs::say;

use crate::{
    Failure, Publish, parts, report,
    results::{Made, Results},
    tree,
};

/// The pages of other programs in a publication; each page names its commit.
const PAGES: [&str; 2] = ["drivers.md", "claims.md"];

/// Writes the tables and figures of a run into its folder.
pub fn report(file: Option<PathBuf>) -> Result<(), Failure> {
    let file = match file {
        Some(file) => file,
        None => newest(&tree::runs()?)?,
    };
    tree::outside(&file)?;
    if !file.is_file() {
        return Err(format!("{} is not there: name the results.json of a run", file.display()).into());
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    report::write(&report::read(&file)?, folder)?;
    say(folder.join("README.md").display());
    Ok(())
}

fn newest(runs: &Path) -> Result<PathBuf, Failure> {
    let files = fs::read_dir(runs).into_iter().flatten().flatten().map(|run| run.path().join("results.json"));
    let changed = |file: &PathBuf| file.metadata().and_then(|metadata| metadata.modified()).ok();
    let newest = files.filter(|file| file.is_file()).max_by_key(changed);
    newest.ok_or_else(|| format!("there is no run below {}: `run` makes one", runs.display()).into())
}

pub fn publish(asked: &Publish) -> Result<(), Failure> {
    let published = tree::published();
    if !asked.again {
        let folder = match &asked.folder {
            Some(folder) => folder.clone(),
            None => tree::runs()?.join("publication"),
        };
        copy(&folder, &published)?;
    }
    report::pages(&parts::read(&published)?, &published)?;
    say(published.join("README.md").display());
    Ok(())
}

/// Copies the complete parts and the pages. Fails if nothing is complete.
fn copy(folder: &Path, published: &Path) -> Result<(), Failure> {
    let (mut copied, mut refused) = (0, Vec::new());
    let mut settle = |part: &str, reasons: Vec<String>| {
        if reasons.is_empty() {
            copied += 1;
            say(format_args!("{part} is published"));
            return true;
        }
        refused.push(format!("{part} is not published:\n- {}", reasons.join("\n- ")));
        false
    };
    for part in parts::found(folder)? {
        let results = report::read(&parts::file(folder, &part))?;
        if settle(&part, reasons(&results)) {
            report::pack(&report::json(&results)?, &parts::file(published, &part))?;
        }
    }
    for page in PAGES {
        let Ok(text) = fs::read_to_string(folder.join(page)) else { continue };
        if settle(page, of_no_commit(&text)) {
            fs::write(published.join(page), text)?;
        }
    }
    match copied {
        0 if refused.is_empty() => {
            Err(format!("{} has no part: `trunkline-bench publication` makes them", folder.display()).into())
        }
        0 => Err(refused.join("\n").into()),
        _ => {
            refused.iter().for_each(say);
            Ok(())
        }
    }
}

/// Returns the reason why the page of another program cannot be published.
fn of_no_commit(page: &str) -> Vec<String> {
    let commit =
        page.split_once("commit `").and_then(|(_, rest)| rest.split_once('`')).map_or("", |(commit, _)| commit);
    match commit {
        "" => vec!["the commit that made it is unknown".to_owned()],
        commit if commit.ends_with('+') => vec![uncommitted(commit)],
        _ => Vec::new(),
    }
}

fn uncommitted(commit: &str) -> String {
    format!("it was made by sources that no commit has ({commit}): commit them, and run again")
}

/// Lists the reasons why these rows cannot be published. Publishable rows come from one whole run
/// of a committed source tree in a release build.
fn reasons(results: &Results) -> Vec<String> {
    let Some(run) = results.run() else {
        return vec!["there is no run in it, or its rows are of several".to_owned()];
    };
    let mut reasons: Vec<String> = run.left_out.iter().map(|what| format!("the run left out {what}")).collect();
    let Made { commit, build, .. } = &run.made;
    match commit.as_str() {
        "" => reasons.push("the commit that made it is unknown".to_owned()),
        commit if commit.ends_with('+') => reasons.push(uncommitted(commit)),
        _ => {}
    }
    if build != "release" {
        reasons.push(format!("it was made by a {build} build: `cargo run --release`"));
    }
    let names: Vec<String> = results.rows.iter().map(crate::results::Row::name).collect();
    let mut some = |what: &str, all: Vec<&str>| {
        if let Some(first) = all.first() {
            reasons.push(format!("{} {what}, `{first}` among them", all.len()));
        }
    };
    let rows = || results.rows.iter().zip(&names);
    let of = |is: &dyn Fn(&crate::results::Row) -> bool| {
        rows().filter(|(row, _)| is(row)).map(|(_, name)| name.as_str()).collect::<Vec<_>>()
    };
    some("rows are of another run", of(&|row| row.run != run.id || row.made != run.made));
    let missing = run.planned.iter().filter(|name| !names.contains(name)).map(String::as_str);
    some("rows are missing: the same command goes on where it was interrupted", missing.collect());
    let more = names.iter().filter(|name| !run.planned.contains(name)).map(String::as_str);
    some("rows were not asked for", more.collect());
    some(
        "rows have fewer rounds than were asked for: the same command goes on",
        of(&crate::results::Row::lacks_rounds),
    );
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fake;

    fn refused(change: impl Fn(&mut Results)) -> String {
        let mut results = fake::whole();
        change(&mut results);
        reasons(&results).join("\n")
    }

    #[test]
    fn one_whole_run_is_published() {
        assert_eq!(refused(|_| {}), "");
    }

    #[test]
    fn rows_of_several_runs_are_not() {
        let why = refused(|results| results.runs.clear());
        assert!(why.contains("several"), "{why}");
        let why = refused(|results| results.rows[2].run = "another".into());
        assert!(why.contains("1 rows are of another run"), "{why}");
        let why = refused(|results| results.rows[2].made.commit = "another".into());
        assert!(why.contains("1 rows are of another run"), "{why}");
        let why = refused(|results| results.rows.push(fake::row("throughput", "more", "trunkline")));
        assert!(why.contains("`throughput/more/trunkline`"), "{why}");
    }

    #[test]
    fn a_part_of_a_run_is_not() {
        let why = refused(|results| drop(results.rows.remove(0)));
        assert!(why.contains("1 rows are missing") && why.contains("goes on"), "{why}");
        let why = refused(|results| drop(results.rows[0].rounds.pop()));
        assert!(why.contains("1 rows have fewer rounds"), "{why}");
        let why = refused(|results| {
            for run in &mut results.runs {
                run.left_out.push("the suite throughput".into());
            }
        });
        assert!(why.contains("left out the suite throughput"), "{why}");
    }

    #[test]
    fn a_run_of_no_commit_is_not() {
        for (commit, why) in [("", "is unknown"), ("abc+", "no commit has")] {
            let told = refused(|results| {
                for run in &mut results.runs {
                    run.made.commit = commit.into();
                }
            });
            assert!(told.contains(why), "{told}");
        }
        let told = refused(|results| {
            for run in &mut results.runs {
                run.made.build = "debug".into();
            }
        });
        assert!(told.contains("--release"), "{told}");
    }

    #[test]
    fn page_of_no_commit_is_not_published() {
        assert!(of_no_commit("Made by `x`, commit `abc`, release").is_empty());
        for (page, why) in [("Made by `x`, commit `abc+`", "no commit has"), ("Made by `x`", "unknown")] {
            assert!(of_no_commit(page).concat().contains(why), "{page}");
        }
    }

    #[test]
    fn complete_parts_are_published_and_others_stay_as_they_were() {
        let place = std::env::temp_dir().join(format!("trunkline-publish-{}", std::process::id()));
        let (folder, published) = (place.join("made"), place.join("published"));
        fs::create_dir_all(&folder).expect("a folder");
        fs::create_dir_all(&published).expect("a folder");
        let why = copy(&folder, &published).expect_err("it is empty").to_string();
        assert!(why.contains("has no part"), "{why}");
        let part = |suite: &str| {
            let mut results = fake::whole();
            results.rows.retain(|row| row.suite == suite);
            results.runs[0].planned = results.rows.iter().map(crate::results::Row::name).collect();
            results
        };
        let keep = |name: &str, results: &Results| {
            fs::write(parts::file(&folder, name), report::json(results).expect("JSON")).expect("written");
        };
        let mut half = part("latency");
        half.rows.pop();
        keep("latency", &half);
        let why = copy(&folder, &published).expect_err("nothing is complete").to_string();
        assert!(why.contains("latency is not published") && why.contains("1 rows are missing"), "{why}");
        keep("throughput", &part("throughput"));
        fs::write(folder.join("claims.md"), "made by `x`, commit `abc`").expect("written");
        fs::write(folder.join("drivers.md"), "made by `x`, commit `abc+`").expect("written");
        copy(&folder, &published).expect("a part is complete");
        assert_eq!(parts::found(&published).expect("parts"), ["throughput"]);
        assert!(published.join("claims.md").exists() && !published.join("drivers.md").exists());
        let read = parts::read(&published).expect("the part");
        assert_eq!(read.rows.len(), part("throughput").rows.len());
        assert_eq!(read.runs.len(), 1);
        fs::remove_dir_all(&place).expect("removed");
    }
}
