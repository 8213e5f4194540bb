//! Runs the chosen rows, which take turns.

use trunkline_programs::{named_by_environment, say};

use crate::{
    Failure, Run, ServerArgs,
    choose::chosen,
    drivers,
    making::Making,
    report,
    results::Outcome,
    show,
    tree::{self, outside},
    wanted::Wanted,
};

pub async fn run(asked: &Run) -> Result<(), Failure> {
    let mut plans = chosen(&asked.choice);
    if plans.is_empty() {
        return Err(match drivers::is_chosen(&asked.choice) {
            true => "`drivers` is a verb of its own: `trunkline-bench drivers`".into(),
            false => "no row has such a name; `list` shows them".into(),
        });
    }
    for plan in &mut plans {
        plan.rounds = asked.rounds.unwrap_or(plan.rounds);
        plan.told.seconds = asked.seconds.unwrap_or(plan.told.seconds);
    }
    if let Some(csv) = &asked.csv {
        outside(csv)?;
    }
    let file = match &asked.results {
        Some(file) => file.clone(),
        None => tree::runs()?.join(tree::id()).join("results.json"),
    };
    let mut making = Making::begin(&file, &plans, asked.choice.left_out())?;
    making.turns(&plans, &asked.server.wanted(), asked.server.skip_cleanup).await?;
    say(format_args!("\nmedian (least, most) of the turns"));
    for row in &making.results.rows {
        say(show::row(row));
    }
    say(format_args!("\nkept in {}", file.display()));
    if let Some(path) = &asked.csv {
        std::fs::write(path, report::csv(&making.results))?;
    }
    let skipped = making.results.rows.iter().filter(|row| matches!(row.outcome, Outcome::Missing(_))).count();
    match asked.require_all && skipped > 0 {
        true => Err(format!("{skipped} rows were skipped, and all are required").into()),
        false => Ok(()),
    }
}

impl ServerArgs {
    /// Uses the server that libpq's variables name, if no URL was given.
    pub fn obey_environment(&mut self) -> Result<(), Failure> {
        if self.database_url.is_none() {
            self.database_url = named_by_environment(|name| std::env::var(name).ok())?;
        }
        Ok(())
    }

    pub fn wanted(&self) -> Wanted {
        Wanted {
            url: self.database_url.clone(),
            settings: self.settings.clone(),
            programs: self.programs.clone(),
            tcp: self.tcp,
            slow_disk: false,
            standby: false,
        }
    }
}
