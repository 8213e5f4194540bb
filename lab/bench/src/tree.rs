//! The source tree: its commit, and a check that no measurement writes into it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use trunkline_programs::target;

use crate::{Failure, report::date, results::Made};

/// Returns the folder of the published results.
pub fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../results")
}

pub fn root() -> &'static Path {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    bench.ancestors().nth(2).unwrap_or(bench)
}

/// Returns the folder of the runs' results.
pub fn runs() -> Result<PathBuf, Failure> {
    Ok(target()?.join("bench"))
}

/// Checks that a file is outside the tree, because only `publish` writes into it.
pub fn outside(file: &Path) -> Result<&Path, Failure> {
    let mut full = std::path::absolute(file)?;
    // Resolves symbolic links, which may lead back into the tree.
    for folder in full.clone().ancestors() {
        if let (Ok(real), Ok(rest)) = (folder.canonicalize(), full.strip_prefix(folder)) {
            full = real.join(rest);
            break;
        }
    }
    let (root, target) = (root().canonicalize()?, target()?);
    let target = target.canonicalize().unwrap_or(target);
    match full.starts_with(&root) && !full.starts_with(&target) {
        true => Err(format!(
            "{} is in the source tree: a measurement is kept below target/ or elsewhere, and `trunkline-bench publish` puts complete parts into lab/results",
            file.display()
        )
        .into()),
        false => Ok(file),
    }
}

/// Returns the current time in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns a name for a run that begins now: `2026-11-22T00-13-59`.
pub fn id() -> String {
    let now = now();
    let minute = date(now).replace(" UTC", "").replace(' ', "T").replace(':', "-");
    format!("{minute}-{:02}", now % 60)
}

/// Returns the conditions of rows that are being measured: the commit, the arguments and the build.
pub fn made() -> Made {
    Made {
        commit: commit().to_owned(),
        arguments: arguments(std::env::args().skip(1)),
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}

static COMMIT: LazyLock<String> = LazyLock::new(present);

/// Returns the commit at the program's start, followed by `+` if the sources in the tree differed
/// from it. Returns an empty text without git. The first call, which the program makes at its
/// start, determines the commit.
pub fn commit() -> &'static str {
    &COMMIT
}

/// Fails if the commit is no longer the one at the program's start. Otherwise figures would be
/// labelled with a commit on which they were not measured.
pub fn unchanged() -> Result<(), Failure> {
    changed(commit(), &present()).map_or(Ok(()), |why| Err(why.into()))
}

fn changed(start: &str, now: &str) -> Option<String> {
    let why = || {
        format!(
            "the sources have changed since the program's start: they were of commit {start:?}, and are of {now:?} now; restore them, and \
             run the same command again"
        )
    };
    (start != now).then(why)
}

fn present() -> String {
    let git = |words: &[&str]| {
        // Takes no optional locks, because another git command may run in the tree at the same
        // time.
        let output = Command::new("git").arg("--no-optional-locks").args(words).current_dir(root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return String::new() };
    // Ignores published results, which are not sources.
    let changed = git(&["status", "--porcelain", "--", ".", ":!lab/results"]).is_none_or(|said| !said.is_empty());
    if changed { commit + "+" } else { commit }
}

/// Hides this machine's paths, and secrets within the arguments.
fn arguments(words: impl Iterator<Item = String>) -> String {
    const PLACES: [&str; 6] = ["--results", "--csv", "--database-url", "--server-bin", "--folder", "--markdown"];
    let mut told: Vec<String> = Vec::new();
    let mut hidden = false;
    for word in words {
        let place = PLACES.iter().find(|place| word.starts_with(&format!("{place}=")));
        match (hidden, place) {
            (true, _) => told.push("…".to_owned()),
            (false, Some(place)) => told.push(format!("{place}=…")),
            (false, None) if word.contains([' ', '*', '\'', '$', '|', '^']) => told.push(format!("'{word}'")),
            (false, None) => told.push(word.clone()),
        }
        hidden = !hidden && PLACES.contains(&word.as_str());
    }
    told.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_into_the_tree_but_below_target() {
        for inside in ["lab/results/results.json", "results.json", "lab/../README.md"] {
            let why = outside(&root().join(inside)).expect_err(inside).to_string();
            assert!(why.contains("publish"), "{why}");
        }
        outside(&runs().expect("a target folder").join("x/results.json")).expect("it is below target");
        outside(&std::env::temp_dir().join("results.json")).expect("it is elsewhere");
    }

    #[test]
    fn change_of_the_commit_is_an_error_that_names_both() {
        assert_eq!(changed("abc", "abc"), None);
        for now in ["abc+", "def", ""] {
            let why = changed("abc", now).expect("it changed");
            assert!(why.contains("\"abc\"") && why.contains(&format!("{now:?}")), "{why}");
        }
    }

    #[test]
    fn arguments_of_a_row_name_no_local_path() {
        let words = "run --quick --database-url postgresql://me:secret@host/db --results=/home/me/x -p throughput/*";
        let told = arguments(words.split(' ').map(str::to_owned));
        assert_eq!(told, "run --quick --database-url … --results=… -p 'throughput/*'");
    }
}
