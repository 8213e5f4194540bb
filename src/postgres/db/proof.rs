//! A test of the listening connection, to which another connection sends a notification.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::Client;
use tracing::debug;

use super::session::Session;
use crate::{
    error::Result,
    postgres::{sql::quote, target::Target, wire::Use},
};

/// The timeout for the test notification, and for each reply on the listening connection.
pub(super) const PROOF: Duration = Duration::from_secs(5);

/// The outcome of the test notification.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    Heard,
    /// The test could not be made, because the server is unreachable or is a standby.
    NotSent,
    /// The notification was sent, but did not arrive.
    NotHeard,
}

pub(super) fn proof_channel(mark: &str) -> String {
    format!("trunkline {mark}")
}

/// Sends a notification to the listening connection and waits for it. The notification is sent by
/// another connection, because some poolers only forward notifications that the listening
/// connection itself has sent.
pub(super) async fn prove(
    client: &Client,
    target: &Target,
    proof: &mut mpsc::UnboundedReceiver<()>,
    mark: &str,
) -> Proof {
    let channel = quote(&proof_channel(mark));
    let said =
        |text: String| async move { timeout(PROOF, client.batch_execute(&text)).await.is_ok_and(|said| said.is_ok()) };
    if !said(format!("listen {channel}")).await {
        return Proof::NotSent;
    }
    if let Err(error) = notify(target, &channel).await {
        debug!(%error, "listener cannot test itself");
        return Proof::NotSent;
    }
    match timeout(PROOF, proof.recv()).await {
        Ok(Some(())) if said(format!("unlisten {channel}")).await => Proof::Heard,
        Ok(_) => Proof::NotSent, // the connection broke before the notification arrived
        Err(_) => Proof::NotHeard,
    }
}

async fn notify(target: &Target, channel: &str) -> Result<()> {
    Session::open_now(target, Use::Alone, Arc::default()).await?.batch("notify", &format!("notify {channel}")).await
}
