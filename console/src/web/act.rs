//! What an operator does: asked first, done in one transaction with its entry in the audit.

use serde::Deserialize;
use trunkline::{Db, Result};

use super::{
    sieve::Sieve,
    statement::{ask, sql},
    words,
};
use crate::metrics::ask::counts;

/// A form's fields. Which of them count depends on the verb.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Form {
    pub verb: String,
    pub queue: String,
    pub id: String,
    /// There and empty, it is the group of those without an error.
    pub error: Option<String>,
    pub text: String,
    pub from: String,
    pub until: String,
    pub schedule: String,
    pub payload: String,
    pub metadata: String,
    pub delay: String,
    pub priority: String,
    pub key: String,
    pub rate: String,
    pub csrf: String,
}

impl Form {
    /// Names and values, for the form that says yes.
    pub fn fields(&self) -> Vec<(&'static str, &str)> {
        let error = self.error.as_deref().map(|error| ("error", error));
        let others = [
            ("csrf", &self.csrf),
            ("verb", &self.verb),
            ("queue", &self.queue),
            ("id", &self.id),
            ("text", &self.text),
            ("from", &self.from),
            ("until", &self.until),
            ("schedule", &self.schedule),
            ("payload", &self.payload),
            ("metadata", &self.metadata),
            ("delay", &self.delay),
            ("priority", &self.priority),
            ("key", &self.key),
            ("rate", &self.rate),
        ];
        others.map(|(name, value)| (name, value.as_str())).into_iter().chain(error).collect()
    }
}

/// An action whose form makes sense.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub queue: String,
    pub deed: Deed,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    Pause,
    Resume,
    Purge,
    Enqueue {
        payload: String,
        metadata: Option<String>,
        delay: f64,
        priority: i32,
        key: Option<String>,
    },
    Cancel {
        id: i64,
    },
    Reschedule {
        id: i64,
        delay: f64,
    },
    Replay(Sieve),
    /// So many a second.
    ReplaySlowly {
        letters: Sieve,
        rate: f64,
    },
    Discard(Sieve),
    /// The letter is discarded, and a message of the new payload enqueued.
    Edit {
        id: i64,
        payload: String,
    },
    Schedule {
        name: String,
        deed: OfSchedule,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfSchedule {
    Pause,
    Resume,
    Fire,
}

/// Dead letters moved by one action at most: what is moved is locked until the commit.
pub const AT_ONCE: i64 = 10_000;

/// The action of a form.
///
/// # Errors
/// Which field cannot be meant, in words for the page.
pub fn read(form: &Form) -> std::result::Result<Action, String> {
    let id = || words::number("the id", &form.id);
    let letters = || -> std::result::Result<Sieve, String> {
        let some = |text: &String| Some(text.clone());
        let id = Some(form.id.trim()).filter(|id| !id.is_empty()).map(|id| words::number("the id", id)).transpose()?;
        let (text, key, metadata) = (some(&form.text), some(&form.key), some(&form.metadata));
        let (from, until) = (some(&form.from), some(&form.until));
        Ok(Sieve { id, error: form.error.clone(), text, key, metadata, from, until }.tidied())
    };
    let schedule = |deed| Ok(Deed::Schedule { name: form.schedule.clone(), deed });
    let deed = match form.verb.as_str() {
        "pause" => Ok(Deed::Pause),
        "resume" => Ok(Deed::Resume),
        "purge" => Ok(Deed::Purge),
        "enqueue" => enqueue(form),
        "cancel" => id().map(|id| Deed::Cancel { id }),
        "reschedule" => Ok(Deed::Reschedule { id: id()?, delay: words::seconds(&form.delay)? }),
        "replay" if form.rate.trim().is_empty() => letters().map(Deed::Replay),
        "replay" => match form.rate.trim().parse::<f64>() {
            Ok(rate) if rate.is_finite() && (0.01..=10_000.0).contains(&rate) => {
                Ok(Deed::ReplaySlowly { letters: letters()?, rate })
            }
            _ => Err("the rate is no number from 0.01 to 10000 a second".to_owned()),
        },
        "discard" => letters().map(Deed::Discard),
        "edit" => id().map(|id| Deed::Edit { id, payload: form.payload.clone() }),
        "pause-schedule" => schedule(OfSchedule::Pause),
        "resume-schedule" => schedule(OfSchedule::Resume),
        "fire-schedule" => schedule(OfSchedule::Fire),
        _ => Err("there is no such action".to_owned()),
    };
    Ok(Action { queue: form.queue.clone(), deed: deed? })
}

fn enqueue(form: &Form) -> std::result::Result<Deed, String> {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let priority = match form.priority.trim() {
        "" => 0,
        text => text.parse().map_err(|_| format!("the priority {text:?} is no whole number"))?,
    };
    Ok(Deed::Enqueue {
        payload: form.payload.clone(),
        metadata: some(form.metadata.trim()),
        delay: words::seconds(&form.delay)?,
        priority,
        key: some(&form.key),
    })
}

impl Action {
    /// The name of the action in the audit.
    pub fn name(&self) -> &'static str {
        match &self.deed {
            Deed::Pause => "pause",
            Deed::Resume => "resume",
            Deed::Purge => "purge",
            Deed::Enqueue { .. } => "enqueue",
            Deed::Cancel { .. } => "cancel",
            Deed::Reschedule { .. } => "reschedule",
            Deed::Replay(_) | Deed::ReplaySlowly { .. } => "replay",
            Deed::Discard(_) => "discard",
            Deed::Edit { .. } => "edit",
            Deed::Schedule { deed: OfSchedule::Pause, .. } => "pause-schedule",
            Deed::Schedule { deed: OfSchedule::Resume, .. } => "resume-schedule",
            Deed::Schedule { deed: OfSchedule::Fire, .. } => "fire-schedule",
        }
    }

    /// What will be done, for the page that asks, and for the audit. No payload is in it.
    pub fn in_words(&self) -> String {
        match &self.deed {
            Deed::Pause => "no message is dequeued until it is resumed".to_owned(),
            Deed::Resume => "messages are dequeued again".to_owned(),
            Deed::Purge => "all messages that wait or are leased are deleted; dead letters and archive stay".to_owned(),
            Deed::Enqueue { payload, delay, .. } => format!("a message of {} bytes, due in {delay} s", payload.len()),
            Deed::Cancel { id } => format!("message {id} is deleted"),
            Deed::Reschedule { id, delay } => format!("message {id} is due in {delay} s"),
            Deed::Replay(letters) => format!("{} are due again (10,000 at a time)", letters.in_words()),
            Deed::ReplaySlowly { letters, rate } => {
                format!("{} are due again, {rate} a second (10,000 at a time)", letters.in_words())
            }
            Deed::Discard(letters) => format!("{} are deleted (10,000 at a time)", letters.in_words()),
            Deed::Edit { id, payload } => {
                format!(
                    "dead letter {id} is deleted, and enqueued anew with another payload of {} bytes",
                    payload.len()
                )
            }
            Deed::Schedule { name, deed: OfSchedule::Pause } => {
                format!("schedule {name} makes no ticks until it is resumed")
            }
            Deed::Schedule { name, deed: OfSchedule::Resume } => format!("schedule {name} makes ticks again"),
            Deed::Schedule { name, deed: OfSchedule::Fire } => format!("schedule {name} enqueues a message now"),
        }
    }

    /// How many messages or dead letters it is about, where that can be counted beforehand.
    pub async fn count(&self, db: &Db) -> Result<Option<i64>> {
        let letters = match &self.deed {
            Deed::Replay(letters) | Deed::Discard(letters) | Deed::ReplaySlowly { letters, .. } => letters,
            Deed::Purge => {
                return Ok(Some(counts(db, &self.queue).await?.depth()));
            }
            _ => return Ok(None),
        };
        let text = self.of_letters(&chosen(letters, "$1", "$2", "select count(*) from chosen"));
        let (count,): (i64,) = ask(db, &text, (letters.values(), AT_ONCE)).await?;
        Ok(Some(count))
    }

    fn of_letters(&self, text: &str) -> String {
        text.replace("{dead}", &format!("\"dead_{}\"", self.queue))
    }

    /// Does it, and writes it down, in one transaction; returns how many messages, dead letters or schedules it was done to.
    pub async fn run(&self, db: &Db, who: &str) -> Result<i64> {
        let (queue, what) = (self.queue.as_str(), self.in_words());
        let entry = (who, self.name(), queue, what.as_str());
        let (count,): (i64,) = match &self.deed {
            Deed::Pause => self.plain(db, "trunkline.pause_queue($3)", entry).await?,
            Deed::Resume => self.plain(db, "trunkline.resume_queue($3)", entry).await?,
            Deed::Purge => {
                let text = noted("select trunkline.purge($3) as n");
                ask(db, &text, entry).await?
            }
            Deed::Enqueue { payload, metadata, delay, priority, key } => {
                let text = noted(sql!("enqueue"));
                let of = (payload.as_str(), metadata.as_deref(), *delay, *priority, key.as_deref());
                ask(db, &text, (entry.0, entry.1, entry.2, entry.3, of.0, of.1, of.2, of.3, of.4)).await?
            }
            Deed::Cancel { id } => {
                let text = noted("select count(*) as n from trunkline.cancel($3, array[$5::bigint])");
                ask(db, &text, (entry.0, entry.1, entry.2, entry.3, *id)).await?
            }
            Deed::Reschedule { id, delay } => {
                let text = noted(
                    "select count(*) as n from trunkline.reschedule($3, array[$5::bigint], clock_timestamp() + make_interval(secs => $6))",
                );
                ask(db, &text, (entry.0, entry.1, entry.2, entry.3, *id, *delay)).await?
            }
            Deed::Replay(letters) => {
                self.letters(db, "select trunkline.replay($3, ids) as n from ids", letters, entry).await?
            }
            Deed::Discard(letters) => {
                self.letters(db, "select trunkline.discard($3, ids) as n from ids", letters, entry).await?
            }
            Deed::ReplaySlowly { letters, rate } => {
                let text = self.of_letters(&noted(&format!("{} {}", ids(letters), sql!("replay_slowly"))));
                ask(db, &text, (entry.0, entry.1, entry.2, entry.3, letters.values(), AT_ONCE, *rate)).await?
            }
            Deed::Edit { id, payload } => {
                let text = self.of_letters(&noted(sql!("edit")));
                ask(db, &text, (entry.0, entry.1, entry.2, entry.3, *id, payload.as_str())).await?
            }
            Deed::Schedule { name, deed } => {
                let text = noted(match deed {
                    OfSchedule::Pause => "select count(*) as n from (select trunkline.pause_schedule($5)) s",
                    OfSchedule::Resume => "select count(*) as n from (select trunkline.resume_schedule($5)) s",
                    OfSchedule::Fire => "select count(*) as n from (select trunkline.fire_schedule($5)) s",
                });
                ask(db, &text, (entry.0, entry.1, entry.2, entry.3, name.as_str())).await?
            }
        };
        Ok(count)
    }

    async fn plain(&self, db: &Db, call: &str, entry: Entry<'_>) -> Result<(i64,)> {
        ask(db, &noted(&format!("select count(*) as n from (select {call}) c")), entry).await
    }

    async fn letters(&self, db: &Db, deed: &str, letters: &Sieve, entry: Entry<'_>) -> Result<(i64,)> {
        let text = self.of_letters(&noted(&format!("{} {deed}", ids(letters))));
        ask(db, &text, (entry.0, entry.1, entry.2, entry.3, letters.values(), AT_ONCE)).await
    }
}

type Entry<'a> = (&'a str, &'a str, &'a str, &'a str);

/// The letters that are meant, by two parameters: what they have to have, and how many they may be.
fn chosen(letters: &Sieve, values: &str, limit: &str, wanted: &str) -> String {
    let text = sql!("letters_of").replace("{conditions}", &letters.conditions(values)).replace("{limit}", limit);
    text.replace("{wanted}", wanted).trim_end().to_owned()
}

/// Their ids, by the parameters 5 and 6.
fn ids(letters: &Sieve) -> String {
    chosen(letters, "$5", "$6", "") + ", ids as (select array_agg(id) as ids from chosen having count(*) > 0)"
}

/// A deed that answers `n`, with its entry.
fn noted(deed: &str) -> String {
    sql!("noted").replace("{deed}", deed)
}
