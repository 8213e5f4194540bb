//! Finds or fetches a PostgreSQL and runs private clusters of it.
//!
//! ```no_run
//! use trunkline_embedded::Cluster;
//!
//! let cluster = Cluster::temporary().setting("fsync", "off").start()?;
//! println!("{}", cluster.url("postgres"));
//! # Ok::<(), trunkline_embedded::Error>(())
//! ```

mod error;
mod account;
mod places;
mod download;
mod unpack;
mod fetch;
mod find;
mod settings;
mod running;
mod home;
mod watchdog;
mod server;
mod cluster;
mod builder;
mod delay_proxy;

pub use builder::Builder;
pub use cluster::Cluster;
pub use delay_proxy::{DelayProxy, Upstream};
pub use error::{Error, Result};
pub use find::Binaries;
pub use running::Running;
pub use server::Stop;
