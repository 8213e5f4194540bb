//! `docs/command-line.md` repeats the help of each verb.

use std::{fmt::Write, fs, path::Path};

use crate::fixture::{helps, helps_in};

/// Returns the options of every verb, which the help of each verb repeats.
fn shared(help: &str) -> &str {
    const LAST: &str = "          Print version\n";
    let start = help.find("      --database-url <URL>").expect("the first of them");
    let end = help.find(LAST).expect("the last of them") + LAST.len();
    &help[start..end]
}

fn page() -> String {
    let helps = helps();
    let shared = shared(&helps[0].1);
    let mut page = include_str!("command_line/head.md").to_owned();
    for (verb, help) in &helps {
        let mut own = help.clone();
        if !verb.is_empty() {
            assert!(help.contains(shared), "trunkline {verb} has other common options: {help}");
            own = help.replace(shared, "").replace("Options:\n\n", "").replace("\n\n\n", "\n\n");
        }
        let level = if verb.contains(' ') { "###" } else { "##" };
        let name = format!("trunkline {verb}");
        write!(page, "\n{level} {}\n\n```text\n{}\n```\n", name.trim_end(), own.trim_end()).expect("written");
    }
    page
}

#[test]
fn the_page_is_what_help_says() {
    let found = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    if std::env::var_os("TRUNKLINE_BLESS").is_some() {
        fs::write(&path, &found).expect("written");
    }
    let golden = fs::read_to_string(&path).expect("docs/command-line.md is there");
    let other = found.lines().zip(golden.lines()).find(|(found, golden)| found != golden);
    assert!(found == golden, "help says something else now (bless the page with TRUNKLINE_BLESS=1): {other:?}");
}

/// Checks that paragraphs are filled: the first word of each line did not fit on the previous line.
#[test]
fn paragraphs_are_filled_on_every_terminal() {
    for (columns, helps) in [(60, helps_in(60)), (80, helps_in(80)), (100, helps())] {
        for (verb, help) in helps {
            let lines: Vec<&str> = help.lines().collect();
            let options = lines.iter().position(|line| line.contains("Print version")).map_or(0, |at| at + 1);
            let below = lines[options..].iter().take_while(|line| !line.starts_with("Example"));
            let below: Vec<&str> = below.copied().collect();
            for pair in
                below.windows(2).filter(|pair| !pair.iter().any(|line| line.is_empty() || line.starts_with(' ')))
            {
                let word = pair[1].split(' ').next().expect("a word").chars().count();
                let together = pair[0].chars().count() + 1 + word;
                assert!(
                    together > columns,
                    "trunkline {verb}, on {columns} columns: {:?} could go on with {:?}",
                    pair[0],
                    pair[1]
                );
            }
        }
    }
}

#[test]
fn no_line_is_wider_than_a_terminal_of_100_columns() {
    for (verb, help) in helps() {
        let wide = help.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "trunkline {verb}");
    }
}
