//! A test of the listening connection, to which another connection sends a notification.

use std::{io, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::config::TargetSessionAttrs;

use super::session::{Session, Waits};
use crate::{
    error::{Error, Kind, Result},
    postgres::{sql::quote, target::Target, wire::Use},
};

/// The timeout for the test notification, and for each reply that the test awaits.
const PROOF: Duration = Duration::from_secs(5);

pub(super) fn proof_channel(mark: &str) -> String {
    format!("trunkline {mark}")
}

/// Sends a notification to the listening connection and waits for it. The notification is sent by
/// another connection, because some poolers only forward notifications that the listening
/// connection itself has sent. Returns false if the notification was sent, but did not arrive.
/// Fails if the test cannot be made, for example because the server is a standby.
pub(super) async fn prove(
    session: &Session,
    target: &Target,
    proof: &mut mpsc::UnboundedReceiver<()>,
    mark: &str,
) -> Result<bool> {
    let channel = quote(&proof_channel(mark));
    in_time(session.batch("listen", &format!("listen {channel}"))).await?;
    notify(target, &channel).await?;
    match timeout(PROOF, proof.recv()).await {
        Ok(Some(())) => in_time(session.batch("listen", &format!("unlisten {channel}"))).await.map(|()| true),
        Ok(None) => Err(silent()), // the connection broke before the notification arrived
        Err(_) => Ok(false),
    }
}

/// Waits for the reply to a statement on the listening connection.
pub(super) async fn in_time<T>(statement: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(PROOF, statement).await.unwrap_or_else(|_| Err(silent()))
}

/// Returns false if the server no longer matches `target_session_attrs`, as after a switchover that
/// leaves it running. `listen` succeeds on a read-only server, too.
pub(super) async fn suits(session: &Session, wanted: TargetSessionAttrs) -> Result<bool> {
    if wanted == TargetSessionAttrs::Any {
        return Ok(true);
    }
    Ok(session.is_read_only().await? == (wanted == TargetSessionAttrs::ReadOnly))
}

/// Returns the error for a listening connection that was not tested in time.
pub(crate) fn silent() -> Error {
    let why = io::Error::new(io::ErrorKind::TimedOut, "the connection that listens does not answer");
    Error::new(Kind::Unreachable(why))
}

async fn notify(target: &Target, channel: &str) -> Result<()> {
    let session = Session::open_now(target, Waits::Long, Use::Alone, Arc::default()).await?;
    in_time(session.batch("notify", &format!("notify {channel}"))).await
}
