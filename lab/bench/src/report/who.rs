//! Lists the contenders, with their versions and settings.

use crate::{
    report::{
        markdown::{Table, code, plain},
        race::is_ours,
    },
    results::Results,
};

pub fn section(results: &Results) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in &results.rows {
        if !names.contains(&row.contender.as_str()) {
            names.push(&row.contender);
        }
    }
    // Our contenders come first. Within each group, contenders keep the order in which they ran.
    names.sort_by_key(|name| !is_ours(name));
    let mut table = Table::of_words(["contender", "version", "runtime", "settings that it chose"]);
    for name in names {
        let linked = match is_ours(name) {
            true => format!("**{}**", code(name)),
            false => format!("[{}](../peers/{name}/README.md)", code(name)),
        };
        let told = |figure: fn(&crate::results::Row) -> &str| {
            let mut words: Vec<String> = Vec::new();
            for row in results.rows.iter().filter(|row| row.contender == name) {
                let word = plain(figure(row));
                if !word.is_empty() && !words.contains(&word) {
                    words.push(word);
                }
            }
            (!words.is_empty()).then(|| words.join("; <br>"))
        };
        table.row([Some(linked), told(|row| &row.version), told(|row| &row.runtime), told(|row| &row.settings)]);
    }
    let table = table.text();
    if table.is_empty() { table } else { format!("## Who ran, and how\n\n{table}") }
}
