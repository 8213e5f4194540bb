//! Tests the published page, and its statements about the run.

use super::{FIGURES, fake, race, readme, section};

#[test]
fn page_names_its_run_and_hours() {
    let text = readme(&fake::whole(), &[]);
    assert!(
        text.contains(
            "run `2025-11-21T15-04-00`, of commit `0123456789ab` (release build), made by `trunkline-bench publication` from \
             2025-11-21 15:04 UTC to 2025-11-21 16:04 UTC, and from 2025-11-21 17:04 UTC to 2025-11-21 18:04 UTC."
        ),
        "{text}"
    );
    let mut several = fake::whole();
    several.runs.clear();
    let text = readme(&several, &[]);
    assert!(text.contains("**Of no run**"), "{text}");
    assert!(!text.contains("trunkline-bench -- run"), "it claims a command");
}

#[test]
fn drains_state_how_long_their_rounds_were() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 900.0)]);
    for (row, seconds) in results.rows.iter_mut().zip([[0.4, 0.39, 0.36], [10.0, 10.001, 10.0]]) {
        row.told.case = "drain".into();
        row.rounds.iter_mut().zip(seconds).for_each(|(round, seconds)| round.seconds = seconds);
    }
    let text = readme(&results, &[]);
    assert!(text.contains("| seconds per round |"), "{text}");
    assert!(text.contains("| 0.360 to 0.400 |") && text.contains("| 10.0 |"), "{text}");
}

#[test]
fn disk_is_stated_as_a_range_without_servers_that_do_not_wait() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 500.0), ("river", 500.0)]);
    let disks = ["fdatasync 900.5, fsync 800.5", "fdatasync 2700.5, fsync 2600.5", "commits do not wait for the disk"];
    for (row, disk) in results.rows.iter_mut().zip(disks) {
        disk.clone_into(&mut row.disk);
    }
    results.rows[2].server.fsync = "off".into();
    let text = readme(&results, &[]);
    let machine = section(&text, "Machine and server");
    assert!(
        machine.contains(
            "ran 2 times on the servers with fsync on. Writes of 8 KiB a second: fdatasync 900 to 2.70 k, fsync 800 to 2.60 k."
        ),
        "{machine}"
    );
    assert!(!machine.contains("do not wait"), "{machine}");
}

#[test]
fn published_page_matches_its_results() {
    let folder = crate::tree::published();
    let results = crate::parts::read(&folder).expect("results are published");
    let published = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mut drawn = Vec::new();
    for (name, draw) in FIGURES {
        let Some(figure) = draw(&results).expect(name) else { continue };
        assert!(published(name) == figure, "{name} has changed: `trunkline-bench publish --again`");
        assert!(figure.len() < 100_000, "{name} has {} bytes", figure.len());
        drawn.push(*name);
    }
    assert!(
        published("README.md") == readme(&results, &drawn),
        "the report has changed: `trunkline-bench publish --again`"
    );
}
