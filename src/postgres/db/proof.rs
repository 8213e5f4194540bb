//! How a listening connection proves that notifications reach it: by one to itself.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::Client;
use tracing::debug;

use super::session::Session;
use crate::{
    error::Result,
    postgres::{sql::quote, target::Target, wire::Use},
};

/// How long the notification to itself, and each answer on the listening connection, may take.
pub(super) const PROOF: Duration = Duration::from_secs(5);

/// What became of the notification by which a listener proves itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    Heard,
    /// The server is away, or its standby is not promoted yet: that says nothing of notifications.
    NotSent,
    /// It was sent, and did not arrive.
    NotHeard,
}

pub(super) fn proof_channel(mark: &str) -> String {
    format!("trunkline {mark}")
}

/// Sends itself a notification and waits for it. From another connection: its own would come with
/// the answer to `notify`, also through a pooler that passes on nothing else.
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
        Ok(_) => Proof::NotSent, // the connection broke meanwhile
        Err(_) => Proof::NotHeard,
    }
}

async fn notify(target: &Target, channel: &str) -> Result<()> {
    Session::open_now(target, Use::Alone, Arc::default()).await?.batch("notify", &format!("notify {channel}")).await
}
