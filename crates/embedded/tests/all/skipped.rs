//! What a machine lacks is said, counted, and a failure where it is required.

use crate::again::{self, words};
use crate::required::{Part, skipped};
use std::path::Path;

#[test]
#[ignore = "a part in other tests"]
fn lacking() {
    if again::argument().is_some() {
        skipped(Part::Disk, "no disk is small enough");
        skipped(Part::Disk, "no disk is\nlarge enough");
    }
}

/// What a run says that lacks a disk, with that in `TRUNKLINE_REQUIRE`.
fn said(required: &str) -> String {
    let mut part = again::part("skipped::lacking", Path::new("lacking"));
    words(part.env("TRUNKLINE_REQUIRE", required).spawn().unwrap())
}

#[test]
fn what_is_lacking_is_said_and_counted_at_the_end() {
    for required in ["", "pgbouncer", "majors, fetch"] {
        let said = said(required);
        assert!(said.contains("test result: ok. 1 passed"), "{said}");
        assert!(said.contains("\nSKIPPED: no disk is small enough\n"), "{said}");
        assert!(said.ends_with("SKIPPED in all: 2\n"), "{said}");
    }
}

#[test]
fn what_is_lacking_and_required_is_a_failure() {
    for required in ["all", "disk", "pgbouncer, disk"] {
        let said = said(required);
        assert!(said.contains("TRUNKLINE_REQUIRE asks for it: no disk is small enough"), "{said}");
        assert!(said.contains("test result: FAILED. 0 passed") && !said.contains("SKIPPED"), "{said}");
    }
}

#[test]
fn a_misspelt_requirement_is_a_failure() {
    let said = said("disc");
    assert!(said.contains("TRUNKLINE_REQUIRE names \"disc\": name all, or some of majors,"), "{said}");
    assert!(said.contains("test result: FAILED. 0 passed"), "{said}");
}
