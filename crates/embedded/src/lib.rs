//! Finds or fetches a PostgreSQL and runs private clusters of it.
//!
//! ```no_run
//! use trunkline_embedded::Cluster;
//!
//! let cluster = Cluster::temporary().setting("fsync", "off").start()?;
//! println!("{}", cluster.url("postgres"));
//! # Ok::<(), trunkline_embedded::Error>(())
//! ```
//!
//! # In the tests of a program
//!
//! [`test_database`] is the whole fixture: it creates a database for each test, on a server that
//! all tests of a process share. The server ends with the process. With `trunkline-embedded` among
//! the `dev-dependencies`, the body of a `#[tokio::test]` looks like this:
//!
//! ```
//! use std::{error::Error, time::Duration};
//! use trunkline::{Db, Draft, Json, Message, Queue, Settings, Worker};
//! use trunkline::testing::{assert_enqueued, assert_not_enqueued, shift};
//!
//! #[derive(Debug, serde::Serialize, serde::Deserialize)]
//! struct Mail { to: String, text: String }
//!
//! const DAY: Duration = Duration::from_secs(86_400);
//!
//! /// Welcomes a new user a day later.
//! async fn sign_up(mails: &Queue<Json<Mail>>, to: &str) -> trunkline::Result<()> {
//!     let mail = Mail { to: to.to_owned(), text: "welcome".to_owned() };
//!     mails.enqueue(Draft::new(Json(mail)).after(DAY)).await.map(drop)
//! }
//!
//! async fn send(mail: Message<Json<Mail>>) -> Result<(), std::io::Error> {
//!     println!("to {}: {}", mail.payload.to, mail.payload.text);
//!     Ok(())
//! }
//!
//! async fn whoever_signs_up_is_welcomed_a_day_later() -> Result<(), Box<dyn Error>> {
//!     let db = Db::connect(&trunkline_embedded::test_database()?).await?;
//!     db.migrate().await?;
//!     db.create_queue("mails", &Settings::of::<Json<Mail>>()).await?;
//!     let mails = db.queue("mails").await?;
//!
//!     sign_up(&mails, "ada@example.org").await?;
//!     assert_enqueued(&mails, |mail| mail.payload.to == "ada@example.org").await;
//!     assert_eq!(Worker::new(mails.clone(), send).drain().await?.done, 0, "not today");
//!
//!     shift(&mails, DAY).await?;
//!     assert_eq!(Worker::new(mails.clone(), send).drain().await?.done, 1);
//!     assert_not_enqueued(&mails, |_any| true).await;
//!     Ok(())
//! }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn Error>> {
//! #     whoever_signs_up_is_welcomed_a_day_later().await
//! # }
//! ```

#[cfg(not(unix))]
compile_error!("trunkline-embedded runs on Linux and macOS");

mod error;
mod account;
mod lock;
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
mod say;
mod shared;
mod delay_proxy;

pub use builder::Builder;
pub use cluster::Cluster;
pub use delay_proxy::{DelayProxy, Hold, Upstream};
pub use error::{Error, Result};
pub use find::Binaries;
pub use running::Running;
pub use server::Stop;
pub use shared::{test_cluster, test_database};
