//! Formats the texts that follow the options in the help for the terminal, and lets values begin
//! with a minus sign. A paragraph fills the width of the terminal. A list item is indented to its
//! own column.

use clap::{Command, error::ErrorKind};

/// The maximum width of a line, even on wider terminals.
const WIDEST: usize = 100;
/// The minimum width of a second column. A narrower column is dropped.
const NARROWEST: usize = 24;

/// Formats the help of a command and of all its subcommands.
pub fn laid_out(command: Command) -> Command {
    let width = width();
    every(command, width)
}

fn every(command: Command, width: usize) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(fill(&text, width)),
        None => command,
    };
    command.mut_subcommands(|below| every(below, width))
}

/// Passes negative times and numbers to their parsers, whose errors list the possible values.
/// Otherwise clap would report them as unknown options.
pub fn with_negative_values(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_value_names() {
        Some([name]) if ["TIME", "WHEN"].contains(&name.as_str()) => arg.allow_hyphen_values(true),
        Some([name]) if ["N", "BYTES"].contains(&name.as_str()) => arg.allow_negative_numbers(true),
        _ => arg,
    });
    command.mut_subcommands(with_negative_values)
}

/// Returns the error of a wrong command line, with a usage that lists what the user has given. clap
/// would also list the options that variables set, as if they were required.
pub fn without_variables(command: Command, wrong: clap::Error) -> clap::Error {
    // A help names the variables.
    if !wrong.use_stderr() || wrong.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return wrong;
    }
    match command.mut_args(|arg| arg.env(None::<&'static str>)).try_get_matches() {
        Err(again) if again.kind() == wrong.kind() => again,
        _ => wrong,
    }
}

/// Returns the width of the terminal, as clap finds it.
fn width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(said).unwrap_or(WIDEST).min(WIDEST)
}

fn fill(text: &str, width: usize) -> String {
    let mut filled = Vec::new();
    let mut examples = false;
    for block in blocks(text) {
        examples = match &*block {
            "" => false,
            _ => examples || block.starts_with("Example"),
        };
        match examples {
            true => filled.push(block), // a command stays on one line
            false => filled.extend(hang(&block, width)),
        }
    }
    filled.join("\n")
}

/// Joins the lines of paragraphs and of list items. Returns each as one line.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let (mut examples, mut before) = (false, None);
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        examples = !line.is_empty() && (examples || line.starts_with("Example"));
        let goes_on = match before {
            _ if line.is_empty() || examples => false,
            Some(0) => depth == 0,
            Some(before) => depth > before,
            None => false,
        };
        if let Some(block) = blocks.last_mut().filter(|_| goes_on) {
            block.push(' ');
            block.push_str(line.trim_start());
        } else {
            blocks.push(line.to_owned());
            before = (!line.is_empty()).then_some(depth);
        }
    }
    blocks
}

/// Breaks a block into lines. Text after two or more spaces is the second column.
fn hang(block: &str, width: usize) -> Vec<String> {
    if block.chars().count() <= width {
        return vec![block.to_owned()]; // keeps further columns, if there are any
    }
    let depth = block.len() - block.trim_start().len();
    let column = block[depth..].find("  ").map(|at| {
        let gap = &block[depth + at..];
        depth + at + gap.len() - gap.trim_start().len()
    });
    let column = column.map_or(depth, |at| block[..at].chars().count());
    let column = if column + NARROWEST > width { depth } else { column };
    let (head, rest): (String, String) = (block.chars().take(column).collect(), block.chars().skip(column).collect());
    let mut lines = vec![head];
    let mut is_empty = true;
    for word in rest.split_whitespace() {
        let line = lines.last_mut().expect("the first line is there");
        let wanted = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        if wanted > width && !is_empty {
            lines.push(format!("{}{word}", " ".repeat(column)));
        } else {
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
        }
        is_empty = false;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_filled_and_items_hang() {
        let text = "One two\nthree four.\n\nItems:\n  a     is the first\n        of them\n  bb    is not\nThen\nmore.\n\nExamples:\n  trunkline x       does something that is long\n  trunkline y";
        let wanted = "One two three four.\n\nItems:\n  a     is the first of them\n  bb    is not\nThen more.\n\nExamples:\n  trunkline x       does something that is long\n  trunkline y";
        assert_eq!(fill(text, 32), wanted);
        assert!(fill(text, 25).contains("One two three four.\n"));
    }

    #[test]
    fn a_column_hangs_where_there_is_room() {
        assert_eq!(hang("  a     one two three four five six", 34), ["  a     one two three four five", "        six"]);
        assert_eq!(hang("  a     one two three four", 20), ["  a one two three", "  four"]);
        assert_eq!(hang("one two", 3), ["one", "two"]);
    }
}
