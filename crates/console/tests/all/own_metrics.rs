//! The metrics of a program, of the library and of the database, on one page.

use std::collections::BTreeSet;

use trunkline_embedded::test_database;

#[allow(dead_code, missing_docs)] // its `main` is not used here
#[path = "../../examples/own_metrics.rs"]
mod example;

#[tokio::test(flavor = "multi_thread")]
async fn one_page_has_all_and_no_metric_twice() {
    let url = tokio::task::spawn_blocking(test_database).await.expect("no panic").expect("a database");
    let page = example::page(&url).await.expect("a page");
    let types: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let names: BTreeSet<&str> = types.iter().copied().collect();
    assert_eq!(names.len(), types.len(), "a name with two types is refused by Prometheus: {types:?}");
    assert!(
        names.contains("trunkline_handle_seconds") && names.contains("trunkline_queue_oldest_due_seconds"),
        "{types:?}"
    );
}
