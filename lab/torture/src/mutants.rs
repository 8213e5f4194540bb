//! Seeded defects. The checker has to find each of them. A defect that it does not find shows a gap
//! in the checker.

mod list;
mod of_keys;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

pub use self::list::{Defect, Mutant};
use trunkline_programs::say;

use self::{list::MUTANTS, of_keys::OF_KEYS};
use crate::folder::Folder;

/// Runs each of the mutants, and says which was found by which rule.
#[derive(Debug, Clone, clap::Args)]
pub struct Mutants {
    /// Only these mutants, with commas between; all if not given.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Another seed for all of them.
    #[arg(long)]
    pub seed: Option<u64>,
    /// The folder of histories and reports, with a folder for each mutant.
    #[arg(long, default_value = "target/mutants")]
    pub folder: PathBuf,
    /// A build with `--cfg trunkline_mutant`; made if not given.
    #[arg(long)]
    pub program: Option<PathBuf>,
}

fn all() -> impl Iterator<Item = &'static Mutant> {
    MUTANTS.iter().chain(&OF_KEYS)
}

pub fn find(name: &str) -> Result<&'static Mutant, String> {
    all().find(|mutant| mutant.name == name).ok_or_else(|| {
        let names: Vec<&str> = all().map(|mutant| mutant.name).collect();
        format!("there is no mutant {name:?}; there are {}", names.join(", "))
    })
}

/// Runs the mutants. Returns true if the checker found all of them.
pub fn run(mutants: &Mutants) -> Result<bool, String> {
    let chosen: Vec<&Mutant> = match &*mutants.only {
        [] => all().collect(),
        names => names.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
    };
    let folder = std::path::absolute(&mutants.folder).map_err(|error| error.to_string())?;
    let in_rust = chosen.iter().any(|mutant| matches!(mutant.defect, Defect::Rust));
    let itself = std::env::current_exe().map_err(|error| format!("no path to this program: {error}"))?;
    let built = match &mutants.program {
        Some(program) => program.clone(),
        None if in_rust => build(&folder)?,
        None => itself.clone(),
    };
    let mut survived = 0;
    for mutant in chosen {
        let program = if matches!(mutant.defect, Defect::Rust) { &built } else { &itself };
        let (began, into, seed) = (Instant::now(), folder.join(mutant.name), mutants.seed.unwrap_or(mutant.seed));
        let found = find_out(mutant, program, &into, seed)?;
        survived += usize::from(found.is_empty());
        let verdict = if found.is_empty() { "SURVIVED".to_owned() } else { format!("found: {}", found.join("; ")) };
        say(format_args!("{:24} seed {seed:4} {:4} s  {verdict}", mutant.name, began.elapsed().as_secs()));
    }
    say(format_args!("{survived} survived"));
    Ok(survived == 0)
}

/// Returns the rules that found the mutant. Counts only the rules that the mutant is meant to
/// break.
fn find_out(mutant: &Mutant, program: &Path, into: &Path, seed: u64) -> Result<Vec<String>, String> {
    let faults: Vec<String> = mutant.faults.iter().map(|fault| fault.name()).collect();
    let mut command = Command::new(program);
    command.args([
        "run",
        "--mutant",
        mutant.name,
        "--seed",
        &seed.to_string(),
        "--minutes",
        &mutant.minutes.to_string(),
    ]);
    command.args(["--fault", &if faults.is_empty() { "none".to_owned() } else { faults.join(",") }]);
    command.arg("--folder").arg(into).stdout(Stdio::null());
    let status = command.status().map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if status.code().is_none_or(|code| code > 1) {
        return Err(format!("the run of mutant {} ended with {status}; see {}", mutant.name, into.display()));
    }
    let findings = crate::check::check_run(&Folder::open(into).read()?);
    let broken = findings.iter().filter(|finding| mutant.breaks.contains(&finding.rule));
    Ok(broken.map(|finding| format!("{} ({})", finding.rule, finding.count)).collect())
}

/// Builds this program with all defects in it. Each process activates one defect.
fn build(folder: &Path) -> Result<PathBuf, String> {
    let target = folder.join("build");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "-p", "trunkline-torture", "--locked", "--target-dir"]).arg(&target);
    command.env("RUSTFLAGS", "--cfg trunkline_mutant").current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    match command.status() {
        Ok(status) if status.success() => Ok(target.join("debug/trunkline-torture")),
        Ok(status) => Err(format!("the mutants cannot be built: {status}")),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts of the files with this name in the folder and its subfolders.
    fn texts(folder: &str, name: &str) -> Vec<String> {
        let folder = format!("{}/../../sql/{folder}", env!("CARGO_MANIFEST_DIR"));
        let inside = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
        let parts = inside.map(|part| part.expect("readable").path()).filter(|part| part.is_dir());
        let files = parts.chain([folder.into()]).map(|part| part.join(name).with_extension("sql"));
        files.filter(|file| file.exists()).map(|file| std::fs::read_to_string(file).expect("readable")).collect()
    }

    #[test]
    fn replaced_texts_stand_in_the_functions() {
        for mutant in all() {
            let (folder, replaced) = match &mutant.defect {
                Defect::Sql(template, texts) => ("queue", vec![(*template, *texts)]),
                Defect::Several(templates) => ("queue", templates.to_vec()),
                Defect::Shared(function, texts) => ("functions", vec![(*function, *texts)]),
                Defect::Rust => continue,
            };
            for (name, replaced) in replaced {
                let functions = texts(folder, name);
                for (from, _) in replaced {
                    let is_there = functions.iter().any(|function| function.contains(from));
                    assert!(is_there, "{}: {name} has no {from:?}", mutant.name);
                }
            }
        }
    }
}
