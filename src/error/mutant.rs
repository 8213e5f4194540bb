//! Deliberate defects that the checker in `lab/torture/` must find. They are compiled only with
//! `--cfg trunkline_mutant`.

use std::sync::LazyLock;

static CHOSEN: LazyLock<String> = LazyLock::new(|| std::env::var("TRUNKLINE_MUTANT").unwrap_or_default());

pub(crate) fn is(name: &str) -> bool {
    *CHOSEN == name
}
