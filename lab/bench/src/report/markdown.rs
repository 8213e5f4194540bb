//! Writes the few elements of Markdown that the report uses.

use std::fmt::Write;

/// A table that omits columns without any cell.
#[derive(Default)]
pub struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
    /// The number of leading columns with text. The remaining columns contain figures and are
    /// aligned to the right.
    words: usize,
}

impl Table {
    /// Makes a table whose first column is a name and whose other columns are figures.
    pub fn new<T: Into<String>>(titles: impl IntoIterator<Item = T>) -> Self {
        Self { titles: titles.into_iter().map(Into::into).collect(), rows: Vec::new(), words: 1 }
    }

    /// Makes a table whose columns are all text.
    pub fn of_words<const N: usize>(titles: [&str; N]) -> Self {
        Self { words: N, ..Self::new(titles) }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Option<String>>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the table and an empty line after it, or an empty string if it has no rows.
    pub fn text(&self) -> String {
        let told = |column: &usize| self.rows.iter().any(|row| row.get(*column).is_some_and(Option::is_some));
        let columns: Vec<usize> = (0..self.titles.len()).filter(told).collect();
        if columns.is_empty() {
            return String::new();
        }
        let mut text = line(columns.iter().map(|column| self.titles[*column].clone()));
        text += &line(columns.iter().map(|column| if *column < self.words { "---" } else { "---:" }.to_owned()));
        for row in &self.rows {
            let cell = |column: &usize| row.get(*column).cloned().flatten().unwrap_or_else(|| "–".into());
            text += &line(columns.iter().map(cell));
        }
        text.push('\n');
        text
    }
}

/// Escapes foreign text, so that it neither ends a table cell nor begins a tag.
pub fn plain(words: &str) -> String {
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    words.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*").replace('`', "'")
}

pub fn code(name: &str) -> String {
    format!("`{}`", name.replace('`', "'").replace('|', "\\|"))
}

pub fn codes<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let mut text = String::from("|");
    for cell in cells {
        let _ = write!(text, " {cell} |");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::{Table, plain};

    #[test]
    fn empty_column_is_left_out() {
        let mut table = Table::new(["name", "p50", "p99"]);
        table.row([Some("a".into()), None, Some("1".into())]);
        table.row([Some("b".into()), None, None]);
        assert_eq!(table.text(), "| name | p99 |\n| --- | ---: |\n| a | 1 |\n| b | – |\n\n");
        assert_eq!(Table::new(["name"]).text(), "");
    }

    #[test]
    fn foreign_words_stay_in_their_cell() {
        assert_eq!(plain("a | b\n<c>"), "a \\| b &lt;c>");
    }
}
