//! The channels that consumers of this process have subscribed to, and what each of them has heard.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize},
    },
};

use tokio::sync::{Notify, mpsc, watch};

use crate::postgres::target::Target;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// A counter that increases at each notification, and whenever a notification may have been
    /// missed.
    pub rings: u64,
    /// The number of notifications that came from other processes, through the server.
    pub from_others: u64,
    /// True if this process receives a notification of every commit.
    pub hearing: bool,
    /// The advisory lock that the listening session holds. None if notifications do not reach this
    /// process.
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
    /// Notified when the list of channels changes.
    pub changed: watch::Sender<()>,
    /// Notified when the server may have disappeared silently. No reply is due on the connection,
    /// so the connection would never break by itself.
    pub doubts: Arc<Notify>,
    /// True if a task listens, or is about to.
    pub listening: AtomicBool,
    pub target: Target,
    pub mark: String,
}

impl ListenedChannels {
    pub fn with<R>(&self, act: impl FnOnce(&mut HashMap<String, Channel>) -> R) -> R {
        act(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn ring(&self, channel: &str, text: Option<&str>) {
        self.with(|all| {
            if let Some(channel) = all.get(channel) {
                if let (Some(texts), Some(text)) = (&channel.texts, text) {
                    let _ = texts.send(text.to_owned()); // the reader may be about to unsubscribe
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

    /// Returns the names of all channels.
    pub fn names(&self) -> Vec<String> {
        self.with(|all| all.keys().cloned().collect())
    }

    /// Records that notifications arrive on the `listened` channels from now on, and that none is
    /// missing on those that are `reliable`. Counts one notification for each news, because one may
    /// have been missed earlier.
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
