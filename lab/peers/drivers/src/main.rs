//! Compares sqlx, diesel-async and libpq with Trunkline's driver. Each is used as its documentation
//! recommends, and also with its bulk operations.

mod by_sqlx;
mod by_diesel;
mod by_libpq;

use trunkline_drivers::{Failure, Way, main as measured, ways};

fn main() -> Result<(), Failure> {
    let mut all = ways();
    all.extend([
        Way { name: "sqlx in sequence, one transaction", open: |place| Box::pin(by_sqlx::sequence(place)) },
        Way { name: "sqlx, arrays", open: |place| Box::pin(by_sqlx::arrays(place)) },
        Way {
            name: "diesel-async in sequence, one transaction",
            open: |place| Box::pin(by_diesel::open(place, false)),
        },
        Way { name: "diesel-async pipelined, one transaction", open: |place| Box::pin(by_diesel::open(place, true)) },
        Way { name: "diesel-async, batches", open: |place| Box::pin(by_diesel::batches(place)) },
        Way { name: "libpq pipelined", open: |place| Box::pin(by_libpq::open(place)) },
    ]);
    measured(all)
}
