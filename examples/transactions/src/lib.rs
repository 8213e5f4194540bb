//! Trunkline's queues inside transactions of sqlx, diesel-async and sea-orm. A program copies the
//! file for its driver and the two types below. `InSqlx`, `InDiesel` or `InSeaOrm` holds the
//! driver's open transaction. Pass a reference to it to `Queue::enqueue_in`, `take_in`, `ack_in`
//! and similar methods.

pub mod diesel_async;
pub mod sea_orm;
pub mod sqlx;

/// The driver's own error.
type Failed = Box<dyn std::error::Error + Send + Sync>;
/// A value in PostgreSQL's binary format with the OID of its type.
type Cell = (u32, Option<trunkline::Bytes>);
