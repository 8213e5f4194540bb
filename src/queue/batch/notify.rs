//! Wakes the consumers that listen: those of this process at once, those of others by one
//! notification for many commits.

use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::{Either, select};
use tokio_postgres::types::ToSql;
use tracing::debug;

use crate::{
    error::Result,
    postgres::{
        db::{Class, Db, Session},
        sql::Sql,
        wire::Row,
    },
};

/// Notifications to other processes are at least this far apart, except for the first.
const NOTIFY_GAP: Duration = Duration::from_millis(4);

/// Notifications to be sent, shared by all clones of a [`Db`].
#[derive(Default)]
struct Notifications(Mutex<Unsent>);

#[derive(Default)]
struct Unsent {
    channels: BTreeSet<String>,
    sending: bool,
}

impl Notifications {
    fn lock(&self) -> MutexGuard<'_, Unsent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn to send notifications. However it ends, with its runtime or by a panic, the next caller
/// takes over, with those that were not sent.
struct Sending {
    db: Db,
    notifications: Arc<Notifications>,
    unsent: Vec<String>,
    over: bool,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.over {
            let mut waiting = self.notifications.lock();
            waiting.sending = false;
            waiting.channels.extend(self.unsent.drain(..));
        }
    }
}

static NOTIFY: LazyLock<Sql> = LazyLock::new(|| Sql::new("notify", include_str!("../../../sql/statements/notify.sql")));

impl Db {
    /// Wakes the consumers that listen: those of this process at once, the others by a notification
    /// that is sent after the commit, from outside the transaction, and shared by all who ask while
    /// one is on its way.
    pub(crate) fn wake(&self, channel: &str) {
        self.listener().ring(channel);
        let notifications = self.attached::<Notifications>();
        let mut waiting = notifications.lock();
        if !waiting.channels.contains(channel) {
            waiting.channels.insert(channel.to_owned());
        }
        drop(waiting);
        if let Some(sending) = self.sending(&notifications) {
            tokio::spawn(sending.notify(Duration::ZERO));
        }
    }

    /// The right to send notifications, unless somebody has it.
    fn sending(&self, notifications: &Arc<Notifications>) -> Option<Sending> {
        let before = std::mem::replace(&mut notifications.lock().sending, true);
        let notifications = notifications.clone();
        (!before).then(|| Sending { db: self.clone(), notifications, unsent: Vec::new(), over: false })
    }

    /// Runs a statement of at most `most` rows whose commit wakes consumers. Where no notification
    /// is under way, it follows in the same flush, a transaction of its own behind the statement's:
    /// one round trip less until a sleeper wakes.
    pub(crate) async fn query_and_wake(
        &self,
        session: &Session,
        (sql, most): (&Sql, usize),
        params: &[&(dyn ToSql + Sync)],
        channel: &str,
    ) -> Result<Vec<Row>> {
        let most = Some(most);
        // Prepared before either is sent: the notification must not overtake.
        session.ready(sql).await?;
        session.ready(&NOTIFY).await?;
        #[cfg(trunkline_mutant)]
        if crate::error::mutant::is("notifies-before-commit") {
            session.query(&NOTIFY, &[&&[channel][..], &self.listener().mark]).await?;
            return session.query_rows(sql, params, most).await;
        }
        let Some(sending) = self.sending(&self.attached()) else {
            let rows = session.query_rows(sql, params, most).await?;
            self.wake(channel);
            return Ok(rows);
        };
        tokio::spawn(sending.notify(NOTIFY_GAP)); // and then what is asked for meanwhile
        let channels = [channel];
        let notification: [&(dyn ToSql + Sync); 2] = [&&channels[..], &self.listener().mark];
        // Both are sent by the first poll, in this order; the caller's answer does not wait for the
        // second's.
        let (statement, notify) =
            (pin!(session.query_rows(sql, params, most)), pin!(session.query(&NOTIFY, &notification)));
        let rows = match select(statement, notify).await {
            Either::Left((rows, _)) => rows,
            Either::Right((_, statement)) => statement.await,
        };
        self.listener().ring(channel);
        rows
    }
}

impl Sending {
    /// Sends what is asked for, until nothing is.
    async fn notify(mut self, mut pause: Duration) {
        loop {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            pause = NOTIFY_GAP;
            {
                let mut waiting = self.notifications.lock();
                if waiting.channels.is_empty() {
                    waiting.sending = false;
                    self.over = true;
                    return;
                }
                self.unsent = std::mem::take(&mut waiting.channels).into_iter().collect();
            }
            let sent = self.db.query_again(Class::Store, &NOTIFY, &[&self.unsent, &self.db.listener().mark]).await;
            self.unsent.clear();
            if let Err(error) = sent {
                debug!(%error, "notification not sent; consumers of other processes find the messages by polling");
            }
        }
    }
}
