//! The API of `tokio_postgres`, implemented with this crate's driver.
//!
//! To migrate a program, change one import: `use trunkline::postgres::compat as tokio_postgres;`.
//! Names, arguments and results are the same. `docs/from-tokio-postgres.md` lists the differences.
//! [`Client::pipelined`] is new. Statements that are sent with it share one round trip.
//!
//! ```no_run
//! use trunkline::postgres::compat::{self as tokio_postgres, Error, NoTls};
//!
//! # async fn run() -> Result<(), Error> {
//! let (client, connection) = tokio_postgres::connect("host=localhost user=app", NoTls).await?;
//! tokio::spawn(connection);
//! let update = client.prepare("update account set cents = cents + 1 where id = $1").await?;
//!
//! let pipelined = client.pipelined();
//! for id in 1..=100_i64 {
//!     pipelined.execute(&update, &[&id]).await?; // returns a handle
//! }
//! pipelined.finish().await?; // one round trip, one transaction
//! # Ok(())
//! # }
//! ```

mod failure;
mod encryption;
mod cancel;
mod session;
mod statement;
mod client;
mod row;
mod messages;
mod query;
mod queries;
mod simple_query;
mod copy_out;
mod copy_in;
mod binary_out;
mod binary_in;
mod transaction;
mod in_transaction;
mod transaction_queries;
mod generic_client;
mod portal;
mod pipelined;
mod connect;
mod settings;

pub use tokio_postgres::{IsolationLevel, NoTls, Socket, types};

pub use self::{
    cancel::CancelToken,
    client::Client,
    connect::{AsyncMessage, Connection, Notification},
    copy_in::CopyInSink,
    copy_out::CopyOutStream,
    failure::Error,
    generic_client::GenericClient,
    pipelined::{Answer, Pipelined},
    portal::Portal,
    query::RowStream,
    row::{Row, RowIndex, SimpleColumn, SimpleQueryMessage, SimpleQueryRow},
    settings::{Config, connect},
    simple_query::SimpleQueryStream,
    statement::{Column, Statement, ToStatement},
    transaction::{Transaction, TransactionBuilder},
};

/// Rows of a copy in the binary format.
///
/// ```no_run
/// use std::pin::pin;
///
/// use futures_util::TryStreamExt;
/// use trunkline::postgres::compat::{
///     Client, Error,
///     binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream},
///     types::Type,
/// };
///
/// # async fn run(client: &Client) -> Result<(), Error> {
/// let types = [Type::INT8, Type::TEXT];
/// let sink = client.copy_in("copy account (id, owner) from stdin binary").await?;
/// let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
/// writer.as_mut().write(&[&1_i64, &"ada"]).await?;
/// writer.finish().await?;
///
/// let stream = client.copy_out("copy account (id, owner) to stdout binary").await?;
/// let mut rows = pin!(BinaryCopyOutStream::new(stream, &types));
/// while let Some(row) = rows.try_next().await? {
///     println!("{} {}", row.get::<i64>(0), row.get::<&str>(1));
/// }
/// # Ok(())
/// # }
/// ```
pub mod binary_copy {
    pub use super::{
        binary_in::BinaryCopyInWriter,
        binary_out::{BinaryCopyOutRow, BinaryCopyOutStream},
    };
}

/// The settings of a connection.
pub mod config {
    pub use tokio_postgres::config::{
        ChannelBinding, Host, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs,
    };

    pub use super::settings::Config;
}

/// The choice between encrypted and unencrypted connections.
pub mod tls {
    pub use tokio_postgres::tls::{NoTls, NoTlsStream};

    pub use super::encryption::{AsConfigured, Encryption};
}

/// Errors from the server.
pub mod error {
    pub use tokio_postgres::error::{ErrorPosition, SqlState};

    pub use super::failure::{DbError, Error};
}
