//! The channels that consumers of this process have subscribed to, and the state of each channel.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize},
    },
};

use tokio::sync::{Notify, mpsc, watch};

use crate::{
    error::Result,
    postgres::{sql::Sql, target::Target},
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// A counter that increases with each notification, and when one may have been missed.
    pub rings: u64,
    /// The number of notifications from other processes, which arrive through the server.
    pub from_others: u64,
    /// True if this process receives a notification for every commit that concerns this channel.
    pub hearing: bool,
    /// The key of the advisory lock that the listening session holds, or `None` if notifications do
    /// not reach this process.
    pub alive: Option<i64>,
}

pub(super) struct Channel {
    pub heard: watch::Sender<Heard>,
    pub texts: Option<mpsc::UnboundedSender<String>>,
    pub subscribers: usize,
}

pub(super) struct ListenedChannels {
    pub all: Mutex<HashMap<String, Channel>>,
    pub subscribed: AtomicUsize,
    pub changed: watch::Sender<()>,
    /// Signals that the server may have disappeared, which an idle connection does not detect.
    pub doubts: Arc<Notify>,
    /// True if a listening task is running or about to start.
    pub listening: AtomicBool,
    /// The outcome of the latest test of the connection.
    pub tested: Mutex<Option<Result<bool>>>,
    pub target: Target,
    /// A statement that returns the number of the database, with that number, if it was given.
    pub identity: OnceLock<(Sql, i32)>,
    pub mark: String,
}

impl ListenedChannels {
    pub fn with<R>(&self, act: impl FnOnce(&mut HashMap<String, Channel>) -> R) -> R {
        act(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn tested(&self) -> MutexGuard<'_, Option<Result<bool>>> {
        self.tested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn ring(&self, channel: &str, text: Option<&str>) {
        self.with(|all| {
            if let Some(channel) = all.get(channel) {
                if let (Some(texts), Some(text)) = (&channel.texts, text) {
                    let _ = texts.send(text.to_owned()); // fails if the reader is about to unsubscribe
                }
                channel.heard.send_modify(|heard| {
                    heard.rings += 1;
                    heard.from_others += u64::from(text.is_some());
                });
            }
        });
    }

    pub fn deaf(&self) {
        self.with(|all| {
            for channel in all.values() {
                channel.heard.send_modify(|heard| *heard = Heard { hearing: false, alive: None, ..*heard });
            }
        });
    }

    pub fn names(&self) -> Vec<String> {
        self.with(|all| all.keys().cloned().collect())
    }

    /// Records that notifications now arrive on the `listened` channels, and that none is missed on
    /// the `reliable` channels. If the state of a channel has improved, counts a notification,
    /// because one may have been missed before.
    pub fn hear(&self, listened: &[String], alive: i64, reliable: impl Fn(&str) -> bool) {
        self.with(|all| {
            for name in listened {
                let Some(channel) = all.get(name) else { continue };
                let hearing = reliable(name);
                channel.heard.send_if_modified(|heard| {
                    let is_news = heard.alive.is_none() || hearing && !heard.hearing;
                    if is_news {
                        *heard = Heard { rings: heard.rings + 1, hearing, alive: Some(alive), ..*heard };
                    }
                    is_news
                });
            }
        });
    }
}
