//! Trunkline's own layers, with every allocation counted. Counting takes time, so only the memory
//! figures come from this program.

use std::{alloc::System, process::ExitCode};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    trunkline_layers::main(Some(|| {
        let so_far = COUNTED.stats();
        (so_far.allocations as u64, so_far.bytes_allocated as u64)
    }))
}
