//! The single connection that listens for all queues with waiting consumers.
//!
//! To test this connection, another connection sends it a notification. If the notification does
//! not arrive, for example behind a pooler, or if the connection is lost, waiting consumers poll.

use std::{
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};
use tokio_postgres::config::TargetSessionAttrs;
use tracing::{debug, warn};

use super::{
    announced::{Announced, announce, running, withdraw},
    channels::{Channel, Heard, ListenedChannels},
    identity::is_same_database,
    proof::{in_time, proof_channel, prove, silent, suits},
    session::{Session, random},
};
use crate::{
    error::Result,
    postgres::{
        sql::{Sql, quote},
        target::Target,
        wire::{Connection, Use, connect},
    },
};

/// The first and the longest pause between tries to connect to the database.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// The pause before another try if notifications do not arrive.
const DEAF_PAUSE: Duration = Duration::from_secs(30);
/// The time in which all sessions of a server obey a changed setting. They read it one after
/// another, so a call may meet a server that only reads before the listener does.
const RELOADED: Duration = Duration::from_secs(1);
const ALIVE: &str = include_str!("../../../sql/statements/alive.sql");

/// The listening task. The task ends if its runtime ends or if it panics. Waiting consumers then
/// poll, and the next caller starts the task again.
struct Listening(Weak<ListenedChannels>);

impl Listening {
    fn start(channels: &Arc<ListenedChannels>) {
        if !channels.listening.swap(true, Ordering::AcqRel) {
            tokio::spawn(listen(Self(Arc::downgrade(channels)), channels.target.clone(), channels.mark.clone()));
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(channels) = self.0.upgrade() {
            channels.listening.store(false, Ordering::Release);
            channels.deaf();
        }
    }
}

pub(crate) struct Listener {
    pub(super) channels: Arc<ListenedChannels>,
    /// Marks the notifications that this process sends. This process ignores them, because it wakes
    /// its own consumers directly.
    pub mark: String,
}

/// A subscription to a channel. It ends when this value is dropped.
pub(crate) struct Subscription {
    pub heard: watch::Receiver<Heard>,
    name: String,
    channels: Arc<ListenedChannels>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.channels.with(|all| {
            if let Some(channel) = all.get_mut(&self.name) {
                channel.subscribers -= 1;
                if channel.subscribers == 0 {
                    all.remove(&self.name);
                }
            }
        });
        self.channels.subscribed.fetch_sub(1, Ordering::Relaxed);
        self.channels.changed.send_replace(());
    }
}

impl Listener {
    pub fn new(target: Target) -> Self {
        let mark = uuid::Uuid::from_u64_pair(std::process::id().into(), random()).simple().to_string();
        let channels = ListenedChannels {
            all: Mutex::default(),
            subscribed: AtomicUsize::new(0),
            changed: watch::Sender::default(),
            doubts: Arc::default(),
            listening: AtomicBool::new(false),
            tested: Mutex::default(),
            target,
            identity: OnceLock::new(),
            mark: mark.clone(),
        };
        Self { channels: Arc::new(channels), mark }
    }

    /// Subscribes to a channel. The first call opens the connection.
    pub fn subscribe(&self, name: &str, texts: Option<mpsc::UnboundedSender<String>>) -> Subscription {
        let heard = self.channels.with(|all| {
            let channel = all.entry(name.to_owned()).or_insert_with(|| Channel {
                heard: watch::Sender::default(),
                texts: None,
                subscribers: 0,
            });
            channel.texts = texts.or(channel.texts.take());
            channel.subscribers += 1;
            channel.heard.subscribe()
        });
        self.channels.subscribed.fetch_add(1, Ordering::Relaxed);
        self.channels.changed.send_replace(());
        let subscription = Subscription { heard, name: name.to_owned(), channels: self.channels.clone() };
        Listening::start(&self.channels);
        subscription
    }

    /// Restarts the listening task if it has ended and there are subscriptions.
    pub fn revive(&self) {
        let ListenedChannels { listening, subscribed, .. } = &*self.channels;
        if !listening.load(Ordering::Relaxed) && subscribed.load(Ordering::Relaxed) > 0 {
            Listening::start(&self.channels);
        }
    }

    /// Checks the connection, and replaces it if its server does not answer or no longer suits.
    pub fn doubt(&self) {
        self.doubts().notify_one();
    }

    pub fn doubts(&self) -> &Arc<Notify> {
        &self.channels.doubts
    }

    /// Returns the outcome of the latest test, for a subscription to which no notification can
    /// arrive: false if the test notification did not arrive. Fails if the test could not be made.
    pub fn why_deaf(&self) -> Result<bool> {
        match &*self.channels.tested() {
            Some(Ok(true)) | None => Err(silent()), // the connection is not restored yet
            Some(tested) => tested.clone(),
        }
    }

    /// Wakes the consumers of this process directly, without the server.
    pub fn ring(&self, name: &str) {
        self.channels.ring(name, None);
    }
}

/// Listens until all owners of the channels have been dropped.
async fn listen(listening: Listening, target: Target, mark: String) {
    let (channels, mut pause, mut has_warned) = (&listening.0, PAUSE.0, false);
    while channels.strong_count() > 0 {
        let proof = listen_once(&target, channels, &mark).await;
        match &proof {
            // Warns once, and only after several failures, because a restart of the server causes
            // the first ones.
            Err(error) if pause == PAUSE.1 && !has_warned => {
                has_warned = true;
                warn!(%error, "listener cannot connect or test itself; consumers poll");
            }
            Err(error) => debug!(%error, "listener cannot connect or test itself; consumers poll"),
            Ok(_) => has_warned = false,
        }
        let rest = match proof {
            Ok(true) => {
                pause = PAUSE.0;
                pause
            }
            Ok(false) => DEAF_PAUSE,
            Err(_) => {
                let longer = (pause * 2).min(PAUSE.1);
                std::mem::replace(&mut pause, longer)
            }
        };
        let Some(all) = channels.upgrade() else { return };
        *all.tested() = Some(proof);
        all.deaf();
        drop(all);
        sleep(rest).await;
    }
}

/// Connects, and listens until the connection breaks. Returns the outcome of [`prove`]. Fails if
/// the test succeeded, but the connection could not listen.
async fn listen_once(target: &Target, channels: &Weak<ListenedChannels>, mark: &str) -> Result<bool> {
    let (connection, driver) = Connection::of(connect(target).await?, target, Use::Alone);
    let (proof_heard, mut proof) = mpsc::unbounded_channel();
    let ears = {
        let (asides, channels) = (connection.keep_asides(Vec::new()), channels.clone());
        let (own_mark, of_proof) = (mark.to_owned(), proof_channel(mark));
        tokio::spawn(async move {
            let notified = |channel: &str, payload: &str| {
                if channel == of_proof {
                    let _ = proof_heard.send(());
                } else if payload != own_mark
                    && let Some(channels) = channels.upgrade()
                {
                    channels.ring(channel, Some(payload));
                }
            };
            if let Err(error) = asides.drive(driver, notified).await {
                debug!(%error, "listener lost its connection; consumers poll until it is back");
            }
        })
    };
    let (session, alive) = (Session::without_set_up(connection), random().cast_signed());
    let proven = match prove(&session, target, &mut proof, mark).await {
        Ok(true) if !is_same_database(&session, channels).await => Err(silent()),
        proven => proven,
    };
    let listened = match proven {
        Ok(true) => match in_time(session.query(&Sql::new("alive", ALIVE), &[&alive])).await {
            Ok(_) => {
                let attrs = target.config.get_target_session_attrs();
                return follow(&session, attrs, alive, channels, ears).await.map(|()| true);
            }
            Err(error) => Err(error),
        },
        Ok(false) => {
            warn!("listener receives no notifications (is a transaction pooler in between?); consumers poll");
            Ok(false)
        }
        Err(error) => Err(error),
    };
    ears.abort();
    listened
}

/// Keeps the channels of the server's session equal to the channels of this process, until the
/// connection ends. Fails if the session never listened on them.
async fn follow(
    session: &Session,
    attrs: TargetSessionAttrs,
    alive: i64,
    channels: &Weak<ListenedChannels>,
    mut ears: JoinHandle<()>,
) -> Result<()> {
    let mut listened: Vec<String> = Vec::new();
    let mut announced = Announced::default();
    let heard_of = channels.upgrade().map(|all| (all.changed.subscribe(), all.doubts.clone()));
    let Some((mut changes, doubts)) = heard_of else {
        ears.abort();
        return Ok(());
    };
    let (mut outcome, mut checks_again) = (Err(silent()), None);
    loop {
        let Some(all) = channels.upgrade() else { break };
        changes.borrow_and_update();
        let wanted = all.names();
        let (fresh, left) = (without(&wanted, &listened), without(&listened, &wanted));
        let unaware = match follow_to(session, &fresh, &left).await {
            Ok(unaware) => unaware,
            Err(error) => {
                outcome = outcome.map_err(|_| error);
                break;
            }
        };
        outcome = Ok(());
        announced.withdraw(&left);
        announced.add(&fresh, unaware);
        listened = wanted;
        // Marks all channels. One may have been unsubscribed and subscribed again in the meantime:
        // the server still listens on it, but the new subscription has not been marked as
        // listening.
        all.hear(&listened, alive, |name| !announced.awaits(name));
        drop(all);
        tokio::select! {
            change = changes.changed() => if change.is_err() { break },
            () = doubts.notified() => {
                if !still_suits(session, attrs, channels, &listened).await { break }
                checks_again = (attrs != TargetSessionAttrs::Any).then(|| Instant::now() + RELOADED);
            }
            () = sleep_until(checks_again.unwrap_or_else(Instant::now)), if checks_again.is_some() => {
                if !still_suits(session, attrs, channels, &listened).await { break }
                checks_again = None;
            }
            () = sleep(announced.pause()), if announced.is_waiting() => {
                let Ok(running) = in_time(running(session)).await else { break };
                announced.ended(&running);
                if !announced.is_waiting() && in_time(listen_again(session, &listened)).await.is_err() {
                    break;
                }
            }
            _ = &mut ears => break,
        }
    }
    ears.abort();
    outcome
}

/// Returns false if the listening connection gets no reply, or its server no longer suits.
async fn still_suits(
    session: &Session,
    attrs: TargetSessionAttrs,
    channels: &Weak<ListenedChannels>,
    listened: &[String],
) -> bool {
    let checked = in_time(async {
        let suits = suits(session, attrs).await? && is_same_database(session, channels).await;
        listen_again(session, listened).await.map(|()| suits)
    });
    let suits = matches!(checked.await, Ok(true));
    if !suits {
        debug!("listener gets no reply, or its server no longer suits; connecting again");
    }
    suits
}

/// Repeats `listen` for the first channel. The only effect is that `pg_stat_activity` shows it as
/// the session's last statement.
async fn listen_again(session: &Session, listened: &[String]) -> Result<()> {
    let again = listened.first().map_or_else(String::new, |name| format!("listen {}", quote(name)));
    session.batch("listen", &again).await
}

/// Announces and listens on the channels in `fresh`, and stops listening on the channels in `left`.
/// Returns the transactions that may have missed the announcement.
async fn follow_to(session: &Session, fresh: &[String], left: &[String]) -> Result<Vec<String>> {
    let unaware = match fresh {
        [] => Vec::new(),
        fresh => in_time(announce(session, fresh)).await?,
    };
    if !left.is_empty() {
        in_time(withdraw(session, left)).await?;
    }
    // `listen` comes last, because `pg_stat_activity` shows a session's last statement. After
    // `listen`, consumers look for messages once more, and so find messages that were committed
    // earlier.
    let listen = fresh.iter().map(|name| format!("listen {}", quote(name)));
    let unlisten = left.iter().map(|name| format!("unlisten {}", quote(name)));
    let statements: Vec<String> = listen.chain(unlisten).collect();
    if !statements.is_empty() {
        in_time(session.batch("listen", &statements.join("; "))).await?;
    }
    Ok(unaware)
}

fn without(all: &[String], others: &[String]) -> Vec<String> {
    all.iter().filter(|name| !others.contains(name)).cloned().collect()
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Subscription").field("channel", &self.name).finish_non_exhaustive()
    }
}
