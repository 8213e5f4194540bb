//! Applies the same checker to other queues in PostgreSQL, as far as they have the necessary verbs.
//! The result is a table of promises that were kept, broken, or not made.

mod payload;
mod rules;
mod excuses;
mod list;
mod own;
mod prepare;
mod stage;
mod turns;
mod translate;
mod verdict;
mod table;
mod judge;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use trunkline_programs::say;

use self::list::{RIVALS, Rival};
pub use self::own::play;

/// Runs each rival with the same faults, and writes the table of results.
#[derive(Debug, Clone, clap::Args)]
pub struct Rivals {
    /// Length of each run in minutes, without the time to start, to drain and to check.
    #[arg(long, default_value_t = 4.0)]
    pub minutes: f64,
    /// Faults and operations are drawn from this number.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only these rivals, with commas between; all if not given.
    #[arg(long, value_delimiter = ',')]
    pub rival: Vec<String>,
    /// The folder of histories and verdicts, with a folder for each rival.
    #[arg(long, default_value = "target/rivals")]
    pub folder: PathBuf,
    /// The file of the table; standard output if not given.
    #[arg(long)]
    pub table: Option<PathBuf>,
    /// Runs nothing: judges what lies in the folder.
    #[arg(long)]
    pub again: bool,
    /// Fails if a rival is not available on this machine.
    #[arg(long)]
    pub require_all: bool,
}

/// Returns true if Trunkline kept its promises, and every required rival was available. Broken
/// promises of other queues are reported, but are not a failure.
pub fn run(rivals: &Rivals) -> Result<bool, String> {
    let chosen: Vec<&Rival> = match &*rivals.rival {
        [] => RIVALS.iter().collect(),
        names => names.iter().map(|name| list::find(name)).collect::<Result<_, _>>()?,
    };
    let folder = std::path::absolute(&rivals.folder).map_err(|error| error.to_string())?;
    let (mut columns, mut is_kept) = (Vec::new(), true);
    for rival in chosen {
        let into = folder.join(rival.name);
        if !rivals.again {
            match prepare::prepare(rival) {
                Ok(program) => stage::run(rival, &program, &into, rivals.seed, (rivals.minutes * 60.0) as u64)?,
                Err(why) => {
                    say(format_args!("SKIPPED: {}: {why}", rival.name));
                    is_kept &= !rivals.require_all;
                    columns.push(verdict::Verdict::skipped(rival, why));
                    continue;
                }
            }
        }
        let verdict = judge::judge(rival, &into)?;
        say(table::line(&verdict)?);
        is_kept &= rival.name != list::OWN || verdict.is_kept();
        columns.push(verdict);
    }
    let text = table::markdown(&columns);
    if let Some(path) = &rivals.table {
        std::fs::write(path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    } else {
        say(text.trim_end());
    }
    Ok(is_kept)
}
