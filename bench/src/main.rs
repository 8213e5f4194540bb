//! Trunkline measured beside the SQL of hasql-queue.
fn main() {}
