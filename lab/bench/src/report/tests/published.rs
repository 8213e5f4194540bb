//! What is published, and what its pages say of it.

use super::{FIGURES, Folder, fake, readme, write};

#[test]
fn the_page_says_which_run_it_is_of_and_in_which_hours_it_was_made() {
    let text = readme(&fake::whole(), &[]);
    assert!(
        text.contains(
            "One run, `2025-11-21T15-04-00`, of commit `0123456789ab` (release build), made by `trunkline-bench publication` from \
             2025-11-21 15:04 UTC to 2025-11-21 16:04 UTC, and from 2025-11-21 17:04 UTC to 2025-11-21 18:04 UTC."
        ),
        "{text}"
    );
    let mut several = fake::whole();
    several.run = None;
    several.rows[0].made = crate::results::Made::default();
    let text = readme(&several, &[]);
    assert!(text.contains("**Not one run**") && text.contains("1 of them do not say"), "{text}");
    assert!(!text.contains("trunkline-bench -- run"), "it claims a command");
}

#[test]
fn what_is_published_is_what_its_results_say() {
    let folder = crate::tree::published();
    let results = crate::report::read(&folder.join("results.json")).expect("results are published");
    let page = std::fs::read_to_string(folder.join("README.md")).expect("a page");
    let drawn: Vec<&str> = FIGURES.iter().filter(|(_, draw)| draw(&results).is_some()).map(|(name, _)| *name).collect();
    assert!(page == readme(&results, &drawn), "the report has changed: `trunkline-bench publish --again`");
}

#[test]
fn the_page_for_a_browser_has_its_tables_and_its_figures_in_it() {
    let folder = Folder::new("html");
    write(&fake::results(), &folder.0).expect("a folder");
    let page = std::fs::read_to_string(folder.0.join("index.html")).expect("a page");
    assert!(
        page.contains("<title>Trunkline and its peers, side by side</title>") && page.contains("<h2>throughput</h2>")
    );
    let figures = FIGURES.iter().filter(|(_, draw)| draw(&fake::results()).is_some()).count();
    assert!(figures > 3 && page.matches("<svg").count() == figures && !page.contains("<img"), "{figures} figures");
    assert!(
        page.matches("<table>").count() > 10 && page.matches("<table>").count() == page.matches("</table>").count()
    );
}
