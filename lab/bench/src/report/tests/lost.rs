//! Tests the measures of the lost comparisons.

use super::{fake, race, readme, section};

#[test]
fn a_peer_with_less_wal_or_smaller_tables_is_listed() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 500.0)]);
    let sizes = [(300.0, 4_000_000), (200.0, 1_000_000)];
    for (row, (wal, size)) in results.rows.iter_mut().zip(sizes) {
        for round in &mut row.rounds {
            round.wal_bytes = Some(wal);
            round.series = fake::series(1000.0, 40.0, 42.0);
            round.series.iter_mut().for_each(|sample| sample.size = size);
        }
    }
    let text = readme(&results, &[]);
    let lost = section(&text, "What was lost");
    for (what, figures) in [
        ("WAL a message", "×1.50 | `pgq` 200 B (×1.50); ours `trunkline` 300 B"),
        ("tables and indexes at the end", "×4.00 | `pgq` 1.00 MB (×4.00); ours `trunkline` 4.00 MB"),
    ] {
        assert!(lost.contains(&format!("at least once, {what} | {figures}")), "{lost}");
        assert_eq!(lost.matches(what).count(), 2, "the measure is also named in the caption: {lost}");
    }
}
