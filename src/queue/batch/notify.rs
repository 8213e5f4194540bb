//! Wakes listening consumers. Consumers of this process wake at once. A notification, which many
//! commits share, wakes consumers of other processes.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{Either, select},
};
use tokio_postgres::types::ToSql;
use tracing::debug;

use super::batcher::{Batcher, Permit, Running, Waiting};
use crate::{
    error::{Error, Result},
    postgres::{
        db::{Class, Db, Session},
        sql::Sql,
        wire::Row,
    },
};

/// The minimum time between notifications to other processes. The first one is sent at once.
const NOTIFY_GAP: Duration = Duration::from_millis(4);

/// The channels that wait for a notification, shared by all clones of a [`Db`].
#[derive(Default)]
struct Channels(BTreeSet<String>);

impl Waiting for Channels {
    type Call = Infallible;
    type Work = Vec<String>;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn next(&mut self, _: &Running) -> Option<(Vec<String>, usize)> {
        let channels: Vec<String> = std::mem::take(&mut self.0).into_iter().collect();
        let count = channels.len();
        (count > 0).then_some((channels, count))
    }

    /// Returns no calls, because no caller waits. The next caller's task also notifies these
    /// channels.
    fn abandoned(&mut self) -> Vec<Infallible> {
        Vec::new()
    }

    fn fail(call: Infallible) {
        match call {}
    }
}

/// The channels of a notification that is being sent. If the task is dropped before the server's
/// reply, the channels are queued again.
struct Unsent<'a> {
    permit: &'a Permit<Channels>,
    channels: Vec<String>,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.permit.state().waiting.0.extend(self.channels.drain(..));
    }
}

/// The cached statement that sends notifications; it contains the schema's name.
#[derive(Default)]
struct Notification(OnceLock<Arc<Sql>>);

impl Db {
    /// Returns the statement that notifies the sessions that have announced themselves on a
    /// channel.
    fn notification(&self) -> Arc<Sql> {
        let cached = self.attached::<Notification>();
        let new = || self.statement("notify", include_str!("../../../sql/statements/notify.sql")).into();
        cached.0.get_or_init(new).clone()
    }

    /// Wakes listening consumers. Consumers of this process wake at once. A notification, sent
    /// after the commit and outside the transaction, wakes consumers of other processes. Calls that
    /// arrive while a notification is being sent share the next one.
    pub(crate) fn wake(&self, channel: &str) {
        self.listener().ring(channel);
        let add = |waiting: &mut Channels| {
            if !waiting.0.contains(channel) {
                waiting.0.insert(channel.to_owned());
            }
        };
        if let Some(permit) = self.attached::<Batcher<Channels>>().join(add) {
            tokio::spawn(send_waiting(self.clone(), permit, Duration::ZERO));
        }
    }

    /// Runs a statement that returns at most `most` rows and whose commit wakes consumers. If no
    /// notification is being sent, one follows in the same flush, as a separate transaction.
    /// Consumers then wake one round trip earlier.
    pub(crate) async fn query_and_wake(
        &self,
        session: &Session,
        (sql, most): (&Sql, usize),
        params: &[&(dyn ToSql + Sync)],
        channel: &str,
    ) -> Result<Vec<Row>> {
        let most = Some(most);
        // Both statements are prepared before either is sent, because the notification must not
        // overtake the first.
        let notify = self.notification();
        session.ready(sql).await?;
        session.ready(&notify).await?;
        #[cfg(trunkline_mutant)]
        if crate::error::mutant::is("notifies-before-commit") {
            session.query(&notify, &[&&[channel][..], &self.listener().mark]).await?;
            return session.query_rows(sql, params, most).await;
        }
        let Some(permit) = self.attached::<Batcher<Channels>>().join(|_| ()) else {
            let rows = session.query_rows(sql, params, most).await;
            if may_have_committed(&rows) {
                self.wake(channel);
            }
            return rows;
        };
        tokio::spawn(send_waiting(self.clone(), permit, NOTIFY_GAP)); // this task also serves calls that arrive later
        let channels = [channel];
        let notification: [&(dyn ToSql + Sync); 2] = [&&channels[..], &self.listener().mark];
        let (rows, is_overtaken) =
            first_answer(session.query_rows(sql, params, most), session.query(&notify, &notification)).await;
        if is_overtaken || rows.is_err() && may_have_committed(&rows) {
            self.wake(channel); // the notification may have been lost, or woken consumers that found nothing yet
        } else {
            self.listener().ring(channel);
        }
        rows
    }
}

/// Returns true unless the transaction is known to have had no effect.
pub(crate) fn may_have_committed<T>(outcome: &Result<T>) -> bool {
    outcome.as_ref().err().is_none_or(Error::is_outcome_unknown)
}

/// Sends two statements, in this order, and returns the answer to the first as soon as it arrives.
/// Also returns whether the second statement ran first: the first is sent again if the server has
/// to prepare it again.
async fn first_answer<A>(first: impl Future<Output = A>, second: impl Future) -> (A, bool) {
    match select(pin!(first), pin!(second)).await {
        // On a busy machine, the first reply may arrive during the first poll, before the second
        // statement is sent.
        Either::Left((answer, second)) => {
            let _ = second.now_or_never(); // sends the second statement, whose answer is not needed
            (answer, false)
        }
        Either::Right((_, first)) => (first.await, true),
    }
}

/// Sends notifications until no channel is waiting to be notified.
async fn send_waiting(db: Db, mut permit: Permit<Channels>, mut pause: Duration) {
    loop {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        pause = NOTIFY_GAP;
        let Some(channels) = permit.next() else { return };
        let mut unsent = Unsent { permit: &permit, channels };
        let sent = db.query_again(Class::Store, &db.notification(), &[&unsent.channels, &db.listener().mark]).await;
        unsent.channels.clear();
        if let Err(error) = sent {
            debug!(%error, "notification not sent; consumers of other processes find the messages by polling");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::pending};

    use super::*;

    #[test]
    fn second_statement_is_sent_even_after_an_immediate_first_answer() {
        let sent = Cell::new(0);
        let second = async {
            sent.set(sent.get() + 1);
            pending::<()>().await;
        };
        assert_eq!(first_answer(async { 7 }, second).now_or_never(), Some((7, false)));
        assert_eq!(sent.get(), 1);
    }

    #[test]
    fn first_statement_that_is_sent_again_is_answered_last() {
        let again = async {
            tokio::task::yield_now().await;
            7
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(runtime.block_on(first_answer(again, async {})), (7, true));
    }
}
