//! Writes the captions above and below a table: the common settings of all rows, the disturbed
//! contenders and the missing contenders.

use std::fmt::Write;

use crate::{
    report::{
        markdown::{code, plain},
        number,
        race::excuse,
        settings,
    },
    results::Row,
};

/// Explains the double daggers.
pub fn scatter<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let rows: Vec<String> = rows.map(|row| format!("{} {}", code(&row.contender), code(&row.case))).collect();
    match rows.is_empty() {
        true => String::new(),
        false => {
            format!("‡ scatters more than threefold from round to round, and says nothing: {}.\n\n", rows.join(", "))
        }
    }
}

/// Returns the settings that all of these rows share, and the speed of the disk.
pub fn in_common(rows: &[&Row]) -> String {
    let disk = settings::disk(rows).map_or_else(String::new, |(least, _, most)| {
        format!("; {} to {} durable writes/s before and after", number::rate(least), number::rate(most))
    });
    format!("{}{disk}.\n\n", settings::same(rows))
}

/// Explains the daggers, and lists the contenders without figures.
pub fn foot(rows: &[&Row]) -> String {
    let mut text = String::new();
    let disturbed: Vec<String> = rows.iter().filter_map(|row| disturbance(row)).collect();
    if !disturbed.is_empty() {
        let _ = writeln!(text, "† disturbed: {}.\n", disturbed.join("; "));
    }
    text += &order(rows);
    let mut absent: Vec<String> = Vec::new();
    for row in rows {
        let Some((what, words)) = excuse(row) else { continue };
        let told = format!("{} ({what}: {})", code(&row.contender), plain(words));
        if !absent.contains(&told) {
            absent.push(told);
        }
    }
    if !absent.is_empty() {
        let _ = writeln!(text, "Without figures: {}.\n", absent.join("; "));
    }
    text
}

/// Lists the contenders that kept the order of each key, and the contenders that did not.
fn order(rows: &[&Row]) -> String {
    let broken = |row: &Row| row.rounds.iter().filter_map(|round| round.disordered).reduce(|all, count| all + count);
    let told = |row: &&Row| {
        Some((row.contender.clone(), broken(row)?, row.rounds.iter().map(|round| round.received).sum::<u64>()))
    };
    let (kept, not): (Vec<_>, Vec<_>) = rows.iter().filter_map(told).partition(|(_, count, _)| *count == 0);
    let names = |them: &[(String, u64, u64)], word: &dyn Fn(&(String, u64, u64)) -> String| {
        them.iter().map(word).collect::<Vec<_>>().join(", ")
    };
    let mut text = String::new();
    if !kept.is_empty() {
        let _ = writeln!(
            text,
            "The order of each key was checked, and kept by {}.\n",
            names(&kept, &|(name, ..)| code(name))
        );
    }
    if !not.is_empty() {
        let word = |(name, count, all): &(String, u64, u64)| format!("{} ({count} of {all} messages)", code(name));
        let _ = writeln!(text, "Out of the order of their keys: {}.\n", names(&not, &word));
    }
    text
}

fn disturbance(row: &Row) -> Option<String> {
    let mut reasons: Vec<String> = Vec::new();
    for (at, round) in row.rounds.iter().enumerate() {
        if let Some(reason) = &round.disturbed {
            reasons.push(format!("round {} of {}, {}", at + 1, row.rounds.len(), plain(reason)));
        }
    }
    (!reasons.is_empty()).then(|| format!("{} {}: {}", code(&row.contender), code(&row.case), reasons.join(", ")))
}
