use crate::{driver::Way, ours, theirs};

/// Trunkline's own way. All other ways are compared with it.
pub const OURS: &str = "trunkline";
/// Trunkline's own way with one statement for all rows.
pub const OUR_ARRAYS: &str = "trunkline, arrays";
/// The way of tokio-postgres that is the baseline for all gains.
pub const TEXT: &str = "tokio-postgres, text in sequence";
pub const SEQUENCE: &str = "tokio-postgres in sequence";
pub const SEQUENCE_TOGETHER: &str = "tokio-postgres in sequence, one transaction";
pub const PIPELINED: &str = "tokio-postgres pipelined";
pub const PIPELINED_TOGETHER: &str = "tokio-postgres pipelined, one transaction";
pub const THEIR_ARRAYS: &str = "tokio-postgres, arrays";

/// Returns true if this way runs a workload as one statement for all rows.
#[must_use]
pub fn is_bulk(way: &str) -> bool {
    way.ends_with(", arrays") || way.ends_with(", batches")
}

/// Returns true if tokio-postgres is the driver of this way.
#[must_use]
pub fn is_tokio_postgres(way: &str) -> bool {
    way.starts_with("tokio-postgres")
}

/// Returns true if the way uses a driver other than Trunkline's.
#[must_use]
pub fn is_rival(way: &str) -> bool {
    !way.starts_with(OURS)
}

/// Returns the ways that need no dependencies beyond those of the workspace.
#[must_use]
pub fn ways() -> Vec<Way> {
    vec![
        Way { name: OURS, open: |place| Box::pin(ours::pipelined(place)) },
        Way { name: OUR_ARRAYS, open: |place| Box::pin(ours::arrays(place)) },
        Way { name: TEXT, open: |place| Box::pin(theirs::text(place)) },
        Way { name: SEQUENCE, open: |place| Box::pin(theirs::binary(place, false, false)) },
        Way { name: SEQUENCE_TOGETHER, open: |place| Box::pin(theirs::binary(place, false, true)) },
        Way { name: PIPELINED, open: |place| Box::pin(theirs::binary(place, true, false)) },
        Way { name: PIPELINED_TOGETHER, open: |place| Box::pin(theirs::binary(place, true, true)) },
        Way { name: THEIR_ARRAYS, open: |place| Box::pin(theirs::arrays(place)) },
    ]
}
