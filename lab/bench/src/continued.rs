//! Decides whether a part that was interrupted can be continued. All its rows must be comparable.

use crate::{
    choose::name,
    results::{Results, Row, Server},
    suites::Plan,
};

/// Returns the reason why these results cannot be continued at this commit. A complete part stays
/// valid even if the sources have changed since its commit.
pub fn refused(results: &Results, plans: &[Plan], left_out: &[String], now: &str) -> Option<String> {
    let run = results.run().cloned().unwrap_or_default();
    if run.planned != plans.iter().map(name).collect::<Vec<_>>() {
        return Some("was begun with other rows".to_owned());
    }
    if run.left_out != left_out {
        return Some("was begun with other options".to_owned());
    }
    let commit = &run.made.commit;
    let is_of_now = commit == now || is_complete(results);
    (!is_of_now).then(|| format!("is of commit {commit:?}, and the sources are {now:?} now"))
}

pub fn is_complete(results: &Results) -> bool {
    let planned = results.run().map_or(0, |run| run.planned.len());
    planned > 0 && results.rows.len() == planned && !results.rows.iter().any(Row::lacks_rounds)
}

/// Lists the differences between the server of these rows and the current server. Rows that do not
/// run on this server, such as those without fsync, may have another fsync.
pub fn other_server(rows: &[Row], now: &Server, is_here: impl Fn(&Row) -> bool) -> Vec<String> {
    let differences = |row: &Row| {
        let mut then = row.server.clone();
        if !is_here(row) {
            then.fsync.clone_from(&now.fsync);
        }
        then.differences(now)
    };
    rows.iter().map(differences).find(|differences| !differences.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fake;

    fn differences(change: impl Fn(&mut Server), is_here: bool) -> String {
        let rows = fake::whole().rows;
        let mut now = rows[0].server.clone();
        change(&mut now);
        other_server(&rows, &now, |_| is_here).join("; ")
    }

    #[test]
    fn rows_of_another_server_are_found() {
        assert_eq!(differences(|_| {}, true), "");
        assert_eq!(other_server(&[], &fake::whole().rows[0].server, |_| true), Vec::<String>::new());
        assert_eq!(
            differences(|now| (now.version, now.processors) = ("16.2".into(), 4), true),
            "PostgreSQL was 15.18, and is 16.2 now; the number of processors was 2, and is 4 now"
        );
        assert_eq!(
            differences(|now| now.processor = "Imaginary 9001".into(), false),
            "the processor was Imaginary 9000, and is Imaginary 9001 now"
        );
        assert!(differences(|now| now.commit_delay = "100".into(), true).contains("commit_delay"));
    }

    #[test]
    fn unknown_properties_and_memory_are_not_compared() {
        assert_eq!(differences(|now| (now.rustc, now.memory) = (String::new(), 7), true), "");
    }

    #[test]
    fn rows_of_a_separate_server_may_have_another_fsync() {
        assert!(differences(|now| now.fsync = "off".into(), true).contains("fsync was on"));
        assert_eq!(differences(|now| now.fsync = "off".into(), false), "");
    }
}
