//! The actions of operators. The console asks for confirmation. Then it runs the action and writes
//! its audit entry in one transaction.

use trunkline::{
    Db, Description, Result,
    postgres::{Params, Statement, Transaction},
};

use super::{
    form::Form,
    sieve::Sieve,
    statement::{MOST, sql},
    words,
};
use crate::{
    metrics::ask::{alone, counts_within},
    reason::is_late,
    schema::Text,
};

/// An action, parsed from a form.
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
    /// Replays at most `rate` messages per second.
    ReplaySlowly {
        letters: Sieve,
        rate: f64,
    },
    Discard(Sieve),
    /// Discards the dead letter and enqueues a message with the new payload.
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

/// The maximum number of dead letters that one action changes. They are locked until the commit.
pub const AT_ONCE: i64 = 10_000;

/// Parses the action of a form.
///
/// # Errors
/// If a field is invalid. The error is a text for the page.
pub fn read(form: &Form) -> std::result::Result<Action, String> {
    let id = || words::number("the id", &form.id);
    let letters = || -> std::result::Result<Sieve, String> {
        let some = |text: &String| Some(text.clone());
        let id = Some(form.id.trim()).filter(|id| !id.is_empty()).map(|id| words::number("the id", id)).transpose()?;
        let (text, key, metadata) = (some(&form.text), some(&form.key), some(&form.metadata));
        let (from, until, counted) = (some(&form.from), some(&form.until), some(&form.counted));
        Ok(Sieve { id, error: form.error.clone(), text, key, metadata, from, until, counted }.tidied())
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
            _ => Err("the rate is not a number from 0.01 to 10000 per second".to_owned()),
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
        text => text.parse().map_err(|_| format!("the priority {text:?} is not a whole number"))?,
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
    /// Fails with the reason if the queue would refuse the message that the action enqueues. This
    /// check enqueues nothing.
    pub async fn check(&self, db: &Db, is: &Description) -> Result<()> {
        let fill = |text: &str| Text::of(db, text).with_tables(&is.name);
        match &self.deed {
            Deed::Edit { payload, .. } => {
                let _: (bool,) = fill(sql!("payload_fits")).run(db, (payload.as_str(),)).await?;
            }
            Deed::Enqueue { payload, metadata, priority, key, .. } => {
                let of = (is.name.as_str(), payload.as_str(), metadata.as_deref(), *priority, key.as_deref());
                let _: (bool, bool, bool, bool) = fill(sql!("draft_fits")).run(db, of).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the number of messages or dead letters that the action affects, if they can be
    /// counted in advance, and the time at which dead letters were counted.
    pub async fn count(&self, db: &Db) -> Result<Count> {
        let letters = match &self.deed {
            Deed::Replay(letters) | Deed::Discard(letters) | Deed::ReplaySlowly { letters, .. } => letters,
            Deed::Purge => {
                return match counts_within(db, &self.queue, MOST).await {
                    Err(error) if is_late(&error) => Ok(Count::Late(String::new())),
                    counts => Ok(Count::Of(counts?.depth(), String::new())),
                };
            }
            _ => return Ok(Count::Unneeded),
        };
        let now = "pg_catalog.statement_timestamp()::text";
        let wanted = Text::of(db, &format!("select pg_catalog.count(*), {now} from chosen"));
        let text = chosen(db, letters, "$1", "$2").with_text("wanted", &wanted).with_tables(&self.queue);
        match alone::<_, (i64, String)>(db, text, (letters.values(), AT_ONCE), MOST).await {
            Err(error) if is_late(&error) => {
                let (at,): (String,) = Text::of(db, &format!("select {now}")).run(db, ()).await?;
                Ok(Count::Late(at))
            }
            counted => counted.map(|(count, at)| Count::Of(count, at)),
        }
    }

    /// Runs the action and writes its audit entry, in one transaction. If a form with this token
    /// has already acted, fails and changes nothing. The transaction has a connection of its own,
    /// so that no page waits behind an action that takes minutes or waits for a lock.
    pub async fn run(&self, db: &Db, is: &Description, who: &str, token: &str) -> Result<Done> {
        let (queue, what) = (self.queue.as_str(), self.in_words());
        let of = (who, self.name(), queue, what.as_str(), token);
        let plain = |text: &str| noted(db, &Text::of(db, text), QUEUE, NO_ID);
        let own = db.begin().await?;
        drop(own.send(&Statement::<(), ()>::new(BOUNDS), ()).await?);
        let (count, id): (i64, Option<i64>) = match &self.deed {
            Deed::Pause => plain(PAUSE).run_in(&own, of).await?,
            Deed::Resume => plain(RESUME).run_in(&own, of).await?,
            Deed::Purge => plain("select trunkline.purge($3) as n").run_in(&own, of).await?,
            Deed::Enqueue { payload, metadata, delay, priority, key } => {
                let text = noted(db, &Text::of(db, sql!("enqueue")), QUEUE, ID);
                let draft = (payload.as_str(), metadata.as_deref(), *delay, *priority, key.as_deref());
                text.run_in(&own, (of.0, of.1, of.2, of.3, of.4, draft.0, draft.1, draft.2, draft.3, draft.4)).await?
            }
            Deed::Cancel { id } => plain(CANCEL).run_in(&own, (of.0, of.1, of.2, of.3, of.4, *id)).await?,
            Deed::Reschedule { id, delay } => {
                plain(RESCHEDULE).run_in(&own, (of.0, of.1, of.2, of.3, of.4, *id, *delay)).await?
            }
            Deed::Replay(letters) => {
                let text = self.of_letters(db, letters, "select trunkline.replay($3, ids) as n from ids", NO_ID);
                text.run_in(&own, (of.0, of.1, of.2, of.3, of.4, letters.values(), AT_ONCE)).await?
            }
            Deed::Discard(letters) => {
                let text = self.of_letters(db, letters, "select trunkline.discard($3, ids) as n from ids", NO_ID);
                text.run_in(&own, (of.0, of.1, of.2, of.3, of.4, letters.values(), AT_ONCE)).await?
            }
            Deed::ReplaySlowly { letters, rate } => {
                let params = (of.0, of.1, of.2, of.3, of.4, letters.values(), AT_ONCE);
                (self.replay_slowly(&own, db, is, letters, *rate, params).await?, None)
            }
            Deed::Edit { id, payload } => {
                let text = noted(db, &Text::of(db, sql!("edit")), QUEUE, ID);
                text.run_in(&own, (of.0, of.1, of.2, of.3, of.4, *id, payload.as_str())).await?
            }
            Deed::Schedule { name, deed } => {
                let text = Text::of(
                    db,
                    match deed {
                        OfSchedule::Pause => {
                            "select pg_catalog.count(*) as n from (select trunkline.pause_schedule($6)) s"
                        }
                        OfSchedule::Resume => {
                            "select pg_catalog.count(*) as n from (select trunkline.resume_schedule($6)) s"
                        }
                        OfSchedule::Fire => {
                            "select pg_catalog.count(*) as n from (select trunkline.fire_schedule($6)) s"
                        }
                    },
                );
                noted(db, &text, QUEUE_OF_SCHEDULE, NO_ID)
                    .run_in(&own, (of.0, of.1, of.2, of.3, of.4, name.as_str()))
                    .await?
            }
        };
        own.commit().await?;
        Ok(Done { count, id })
    }

    /// Replays letters and spreads their due times. Both commit together, so no session sees a
    /// replayed letter that is due too early.
    async fn replay_slowly<P: Params>(
        &self,
        own: &Transaction,
        db: &Db,
        is: &Description,
        letters: &Sieve,
        rate: f64,
        params: P,
    ) -> Result<i64> {
        let replay = self.of_letters(db, letters, sql!("replay_slowly"), "pg_catalog.array_agg(id order by id)");
        let (count, ids): (i64, Option<Vec<i64>>) = replay.run_in(own, params).await?;
        if let Some(ids) = ids {
            let place = if is.partitions > 0 { ", place = u.due" } else { "" };
            let spread = Text::of(db, sql!("spread")).with("place", place).with_tables(&is.name);
            let _: (i64, Option<String>) = spread.run_in(own, (ids, rate, is.name.as_str())).await?;
        }
        Ok(count)
    }

    /// Returns the statement that runs `deed` on the dead letters that parameters 6 and 7 select.
    fn of_letters(&self, db: &Db, letters: &Sieve, deed: &str, id: &str) -> Text {
        let ids = Text::of(
            db,
            ", ids as (select pg_catalog.array_agg(id) as ids from chosen having pg_catalog.count(*) > 0) {deed}",
        );
        let ids = ids.with_text("deed", &Text::of(db, deed));
        let deed = chosen(db, letters, "$6", "$7").with_text("wanted", &ids);
        noted(db, &deed, QUEUE, id).with_tables(&self.queue)
    }
}

/// The number of messages that an action would affect, and the time of the count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Count {
    Of(i64, String),
    /// The count took too long, or a session has locked the table.
    Late(String),
    /// The action affects one message, or no existing message.
    Unneeded,
}

/// The outcome of an action: the number of messages, dead letters or schedules that it changed, and
/// the id of the enqueued message, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    pub count: i64,
    pub id: Option<i64>,
}

/// Sets, for one transaction, that names are found only in the catalog, and how long an action
/// waits for a lock.
const BOUNDS: &str = "select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('lock_timeout', '10s', true)";
const PAUSE: &str = "select pg_catalog.count(*) as n from (select trunkline.pause_queue($3)) c";
const RESUME: &str = "select pg_catalog.count(*) as n from (select trunkline.resume_queue($3)) c";
const CANCEL: &str = "select pg_catalog.count(*) as n from trunkline.cancel($3, array[$6::bigint])";
const RESCHEDULE: &str = "select pg_catalog.count(*) as n
    from trunkline.reschedule($3, array[$6::bigint], pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $7))";

/// SQL for the queue of an audit entry.
const QUEUE: &str = "nullif($3::text, '')";
/// SQL for the queue of an audit entry about a schedule. It is the schedule's queue, not the queue
/// in the form.
const QUEUE_OF_SCHEDULE: &str = "(select s.queue from trunkline.schedule s where s.name = $6 and $3::text is not null)";
const ID: &str = "pg_catalog.max(id)";
const NO_ID: &str = "null::bigint";

/// Selects the dead letters with two parameters: the values of the filter, and the limit.
fn chosen(db: &Db, letters: &Sieve, values: &str, limit: &str) -> Text {
    Text::of(db, sql!("letters_of").trim_end()).with("conditions", &letters.conditions(values)).with("limit", limit)
}

/// Returns the statement that runs `deed` and writes its audit entry. The result of `deed` must
/// have a column `n`, and also `id` if it enqueues.
fn noted(db: &Db, deed: &Text, of: &str, id: &str) -> Text {
    let of = Text::of(db, of);
    Text::of(db, sql!("noted")).with_text("deed", deed).with_text("of", &of).with("id", id)
}
