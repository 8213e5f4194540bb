//! Queues in transactions of three other drivers.

mod drivers;
mod promises;
mod usual;
