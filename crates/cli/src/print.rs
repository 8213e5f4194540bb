//! Writes to standard output. Does not panic if the reader is gone.

use std::{
    fmt,
    io::{self, Write},
};

use trunkline::Description;

use crate::{
    clean::clean,
    closed::is_output_closed,
    error::{Error, Result},
};

/// Writes a text unchanged. Fails if the program was started without a standard output.
pub fn text(text: impl AsRef<[u8]>) -> Result<()> {
    if is_output_closed() {
        return Err(Error::NoOutput);
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref()).and_then(|()| out.flush()).map_err(|cause| Error::output(&cause))
}

pub fn line(line: impl AsRef<str>) -> Result<()> {
    text(format!("{}\n", line.as_ref()))
}

/// Writes all lines at once.
pub fn lines(mut lines: impl Iterator<Item = impl fmt::Display>) -> Result<()> {
    let mut all = Vec::new();
    lines.try_for_each(|line| writeln!(all, "{line}")).map_err(|cause| Error::output(&cause))?;
    text(all)
}

/// Writes the result of a change. If that fails, the error has the hint of [`after_change`].
pub fn done(lines: impl Iterator<Item = impl fmt::Display>) -> Result<()> {
    after_change(self::lines(lines))
}

/// Accepts that the program was started without a standard output, because the exit code or the
/// program's work says enough.
pub fn if_open(written: Result<()>) -> Result<()> {
    match written {
        Err(Error::NoOutput) => Ok(()),
        written => written,
    }
}

/// Adds a hint to the error that the change was made although its result could not be written.
pub fn after_change(written: Result<()>) -> Result<()> {
    if_open(written).map_err(|error| error.hint("the change was made; do not repeat the command because of this error"))
}

/// Writes a line to standard error, and ignores a failure.
pub fn note(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", clean(line.as_ref()));
}

/// Warns that a queue is paused, because the program then delivers nothing.
pub fn if_paused(queue: &Description) {
    if queue.is_paused {
        let name = &queue.name;
        note(format!("warning: {name} is paused and delivers nothing; `trunkline queue resume {name}` resumes it"));
    }
}

/// A table with headers. A header that begins with `>` marks a column of numbers.
pub struct Table(Vec<String>, Vec<Vec<String>>);

impl Table {
    pub fn new<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        Self(headers.into_iter().map(str::to_owned).collect(), Vec::new())
    }

    fn without(mut self, header: &str) -> Self {
        if let Some(at) = self.0.iter().position(|one| one == header) {
            self.0.remove(at);
            self.1.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        self
    }

    /// Drops the columns for priorities and keys if the queue has none.
    pub fn of(self, queue: &Description) -> Self {
        let table = if queue.priorities > 1 { self } else { self.without(">priority") };
        if queue.partitions > 0 { table } else { table.without("key") }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.1.push(cells.into_iter().map(|cell| clean(&cell)).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<String> = self.0.iter().map(|header| header.trim_start_matches('>').to_owned()).collect();
        let width = |at: usize| {
            let cells = self.1.iter().chain([&headers]).filter_map(|row| row.get(at));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..headers.len()).map(width).collect();
        for row in [&headers].into_iter().chain(&self.1) {
            let mut line = String::new();
            for ((cell, width), header) in row.iter().zip(&widths).zip(&self.0) {
                let padding = " ".repeat(width - cell.chars().count());
                let (before, after) = if header.starts_with('>') { (&*padding, "") } else { ("", &*padding) };
                line.extend([before, cell.as_str(), after, "  "]);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Formats a number with separators between the thousands.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::{Table, thousands};
    use crate::clean::clean;

    #[test]
    fn a_terminal_is_not_obeyed() {
        assert_eq!(clean("a\u{1b}[2Jb\nc\rd\u{9b}e\u{202e}f\u{7f}ü…"), "a [2Jb c d e f ü…");
        let mut table = Table::new(["error"]);
        table.row(["one\ntwo \u{1b}]0;x\u{7}".to_owned()]);
        assert_eq!(table.to_string(), "error\none two  ]0;x\n");
    }

    #[test]
    fn columns_stand_below_their_headers() {
        let mut table = Table::new(["name", ">due"]);
        table.row(["a".to_owned(), "1,000".to_owned()]);
        assert_eq!(table.to_string(), "name    due\na     1,000\n");
    }

    #[test]
    fn a_column_can_be_left_out() {
        let mut table = Table::new(["a", ">b", "c"]);
        table.row(["1", "2", "3"].map(str::to_owned));
        assert_eq!(table.without(">b").without(">d").to_string(), "a  c\n1  3\n");
    }

    #[test]
    fn thousands_are_set_apart() {
        let grouped = [0, 999, 1_000, 12_345, 1_234_567].map(thousands);
        assert_eq!(grouped, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
