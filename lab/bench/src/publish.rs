//! Publishes one whole run, never a mixture of runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use trunkline_programs::say;

use crate::{
    Failure, Publish, report,
    results::{Made, Outcome, Results},
    tree,
};

/// The pages of other programs in a publication; each page names its commit.
pub const PAGES: [&str; 2] = ["drivers.md", "claims.md"];

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
    if asked.again {
        let rows = fs::read(published.join("results.json.gz"))?;
        report::write(&report::read(&published.join("results.json"))?, &published)?;
        // The compressed rows stay byte for byte as they were measured.
        fs::remove_file(published.join("results.json"))?;
        fs::write(published.join("results.json.gz"), rows)?;
        say(published.join("README.md").display());
        return Ok(());
    }
    let folder = match &asked.folder {
        Some(folder) => folder.clone(),
        None => tree::runs()?.join("publication"),
    };
    let results = report::read(&folder.join("results.json"))?;
    let mut reasons = reasons(&results);
    let commit = results.run.as_ref().map_or("", |run| &run.made.commit);
    for page in PAGES {
        match fs::read_to_string(folder.join(page)) {
            Ok(text) if text.contains(&format!("commit `{commit}`")) => {}
            Ok(_) => reasons.push(format!("{page} is of another commit than the rows")),
            Err(_) => reasons.push(format!("{page} is not there: only `trunkline-bench publication` makes everything")),
        }
    }
    if !reasons.is_empty() {
        return Err(format!("{} is not published:\n- {}", folder.display(), reasons.join("\n- ")).into());
    }
    report::write(&results, &published)?;
    report::pack(&published.join("results.json"))?;
    for page in PAGES {
        fs::copy(folder.join(page), published.join(page))?;
    }
    say(published.join("README.md").display());
    Ok(())
}

/// Lists the reasons why these rows cannot be published. Publishable rows come from one whole run
/// of a committed source tree in a release build.
fn reasons(results: &Results) -> Vec<String> {
    let Some(run) = &results.run else {
        return vec!["there is no run in it, or its rows are of several".to_owned()];
    };
    let mut reasons: Vec<String> = run.left_out.iter().map(|what| format!("the run left out {what}")).collect();
    let Made { commit, build, .. } = &run.made;
    match commit.as_str() {
        "" => reasons.push("the commit that made it is unknown".to_owned()),
        commit if commit.ends_with('+') => {
            reasons.push(format!("it was made by sources that no commit has ({commit}): commit them, and run again"));
        }
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
    let short =
        |row: &crate::results::Row| row.outcome == Outcome::Measured && row.rounds.len() < row.planned_rounds as usize;
    some("rows have fewer rounds than were asked for: the same command goes on", of(&short));
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
        let why = refused(|results| results.run = None);
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
            if let Some(run) = &mut results.run {
                run.left_out.push("the suite throughput".into());
            }
        });
        assert!(why.contains("left out the suite throughput"), "{why}");
    }

    #[test]
    fn a_run_of_no_commit_is_not() {
        for (commit, why) in [("", "is unknown"), ("abc+", "no commit has")] {
            let told = refused(|results| {
                if let Some(run) = &mut results.run {
                    run.made.commit = commit.into();
                }
            });
            assert!(told.contains(why), "{told}");
        }
        let told = refused(|results| {
            if let Some(run) = &mut results.run {
                run.made.build = "debug".into();
            }
        });
        assert!(told.contains("--release"), "{told}");
    }
}
