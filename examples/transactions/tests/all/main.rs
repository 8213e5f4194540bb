//! Queues inside the transactions of three other drivers.

mod drivers;
mod promises;
mod usual;
