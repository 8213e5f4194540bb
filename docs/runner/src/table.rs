//! Formats rows as psql shows them.

use tokio_postgres::SimpleQueryRow;

pub fn of<'a>(rows: impl Iterator<Item = &'a SimpleQueryRow>) -> String {
    let rows: Vec<&SimpleQueryRow> = rows.collect();
    let Some(first) = rows.first() else { return "(0 rows)\n".to_owned() };
    let names: Vec<&str> = first.columns().iter().map(tokio_postgres::SimpleColumn::name).collect();
    let cells: Vec<Vec<&str>> =
        rows.iter().map(|row| (0..names.len()).map(|at| row.get(at).unwrap_or("")).collect()).collect();
    let widths: Vec<usize> = (0..names.len())
        .map(|at| cells.iter().map(|row| row[at].chars().count()).chain([names[at].chars().count()]).max().unwrap_or(0))
        .collect();
    let numbers: Vec<bool> = (0..names.len())
        .map(|at| cells.iter().all(|row| row[at].is_empty() || row[at].parse::<f64>().is_ok()))
        .collect();

    let mut text =
        names.iter().zip(&widths).map(|(name, width)| format!(" {name:^width$} ")).collect::<Vec<_>>().join("|");
    text.push('\n');
    text.push_str(&widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("+"));
    text.push('\n');
    for row in &cells {
        let shown = row.iter().enumerate().map(|(at, cell)| {
            let width = widths[at];
            if numbers[at] { format!(" {cell:>width$} ") } else { format!(" {cell:<width$} ") }
        });
        text.push_str(&shown.collect::<Vec<_>>().join("|"));
        text.push('\n');
    }
    let plural = if rows.len() == 1 { "" } else { "s" };
    text + &format!("({} row{plural})\n", rows.len())
}
