use std::time::Duration;

use crate::measured::Spread;

/// Formats a number with three significant digits.
pub fn short(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Formats the median, with the minimum and the maximum.
pub fn spread(spread: Option<Spread>) -> String {
    let told = |spread: Spread| {
        let (least, most) = (short(spread.least), short(spread.most));
        match spread.scatters() {
            true => format!("says nothing ({least}, {most})"),
            false => format!("{} ({least}, {most})", short(spread.median)),
        }
    };
    spread.map_or_else(|| "-".to_owned(), told)
}

/// Formats the ratio of the first value to the second.
pub fn times(value: Option<f64>, of: Option<f64>) -> String {
    value.zip(of).map_or_else(|| "-".to_owned(), |(value, of)| format!("{}×", short(value / of)))
}

/// Formats a delay as a heading.
pub fn away(delay: Duration) -> String {
    if delay.is_zero() { "0 ms".to_owned() } else { format!("{delay:?} each way") }
}

/// Formats a line of a table.
pub fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// Formats the first two lines of a table. All columns except the first are numbers.
pub fn head(cells: &[String]) -> String {
    let rule: Vec<String> = (0..cells.len()).map(|at| if at == 0 { "---" } else { "--:" }.to_owned()).collect();
    line(cells) + &line(&rule)
}
