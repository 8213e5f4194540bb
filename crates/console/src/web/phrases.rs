//! Descriptions of actions: on the confirmation page, on the button, and in the result.

use super::{
    act::{Action, Deed, OfSchedule},
    words,
};

impl Action {
    /// Returns the name of the action in the audit.
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

    /// Returns true if the action deletes messages or dead letters.
    pub fn is_destructive(&self) -> bool {
        matches!(self.deed, Deed::Purge | Deed::Cancel { .. } | Deed::Discard(_) | Deed::Edit { .. })
    }

    /// Returns the heading of the confirmation page.
    pub fn question(&self) -> String {
        let queue = &self.queue;
        match &self.deed {
            Deed::Pause => format!("Pause queue {queue}?"),
            Deed::Resume => format!("Resume queue {queue}?"),
            Deed::Purge => format!("Purge queue {queue}?"),
            Deed::Enqueue { .. } => format!("Enqueue a message into {queue}?"),
            Deed::Cancel { id } => format!("Cancel message {id} of {queue}?"),
            Deed::Reschedule { id, .. } => format!("Reschedule message {id} of {queue}?"),
            Deed::Replay(_) | Deed::ReplaySlowly { .. } => format!("Replay dead letters of {queue}?"),
            Deed::Discard(_) => format!("Discard dead letters of {queue}?"),
            Deed::Edit { id, .. } => format!("Replace dead letter {id} of {queue}?"),
            Deed::Schedule { name, deed: OfSchedule::Pause } => format!("Pause schedule {name}?"),
            Deed::Schedule { name, deed: OfSchedule::Resume } => format!("Resume schedule {name}?"),
            Deed::Schedule { name, deed: OfSchedule::Fire } => format!("Run schedule {name} now?"),
        }
    }

    /// Describes what the action will do, for the confirmation page and for the audit. The text
    /// does not contain the payload.
    pub fn in_words(&self) -> String {
        match &self.deed {
            Deed::Pause => "no messages are dequeued until the queue is resumed".to_owned(),
            Deed::Resume => "messages are dequeued again".to_owned(),
            Deed::Purge => {
                "all waiting and leased messages are deleted; dead letters and archived messages stay".to_owned()
            }
            Deed::Enqueue { payload, delay, .. } => {
                format!("a message of {} bytes is enqueued, due in {delay} s", payload.len())
            }
            Deed::Cancel { id } => format!("message {id} is deleted"),
            Deed::Reschedule { id, delay } => format!("message {id} becomes due in {delay} s"),
            Deed::Replay(letters) => format!("{} become due again (at most 10,000 at a time)", letters.in_words()),
            Deed::ReplaySlowly { letters, rate } => {
                format!("{} become due again, {rate} per second (at most 10,000 at a time)", letters.in_words())
            }
            Deed::Discard(letters) => format!("{} are deleted (at most 10,000 at a time)", letters.in_words()),
            Deed::Edit { id, payload } => {
                format!(
                    "dead letter {id} is deleted, and its message is enqueued again with a new payload of {} bytes",
                    payload.len()
                )
            }
            Deed::Schedule { name, deed: OfSchedule::Pause } => {
                format!("schedule {name} makes no ticks until it is resumed")
            }
            Deed::Schedule { name, deed: OfSchedule::Resume } => format!("schedule {name} makes ticks again"),
            Deed::Schedule { name, deed: OfSchedule::Fire } => format!("schedule {name} enqueues its message now"),
        }
    }

    /// Describes what the action did to `count` messages, dead letters or schedules.
    pub fn done(&self, count: i64) -> String {
        let queue = &self.queue;
        let of = |what: &str| words::several(count, what);
        match &self.deed {
            _ if count == 0 => "Nothing was done: nothing was left to change".to_owned(),
            Deed::Pause => format!("Paused queue {queue}"),
            Deed::Resume => format!("Resumed queue {queue}"),
            Deed::Purge => format!("Purged {} of {queue}", of("message")),
            Deed::Enqueue { .. } => format!("Enqueued a message into {queue}"),
            Deed::Cancel { id } => format!("Cancelled message {id}"),
            Deed::Reschedule { id, .. } => format!("Rescheduled message {id}"),
            Deed::Replay(_) | Deed::ReplaySlowly { .. } => format!("Replayed {}", of("dead letter")),
            Deed::Discard(_) => format!("Discarded {}", of("dead letter")),
            Deed::Edit { id, .. } => format!("Replaced dead letter {id} with a new message"),
            Deed::Schedule { name, deed: OfSchedule::Pause } => format!("Paused schedule {name}"),
            Deed::Schedule { name, deed: OfSchedule::Resume } => format!("Resumed schedule {name}"),
            Deed::Schedule { name, deed: OfSchedule::Fire } => format!("Schedule {name} enqueued its message"),
        }
    }

    /// Returns the path of the page that is shown after the action.
    pub fn place(&self) -> String {
        let queue = &self.queue;
        match &self.deed {
            Deed::Replay(letters) | Deed::ReplaySlowly { letters, .. } | Deed::Discard(letters) => {
                let query = letters.of_all_groups().query();
                let query = if query.is_empty() || letters.id.is_some() { String::new() } else { format!("?{query}") };
                format!("/queues/{queue}/dead{query}")
            }
            Deed::Edit { .. } => format!("/queues/{queue}/dead"),
            Deed::Cancel { .. } => format!("/queues/{queue}/messages"),
            Deed::Reschedule { id, .. } => format!("/queues/{queue}/messages/{id}"),
            Deed::Schedule { .. } => "/schedules".to_owned(),
            _ => format!("/queues/{queue}"),
        }
    }
}

/// Returns the name of an action as pages show it.
pub fn verb(name: &str) -> &str {
    match name {
        "pause-schedule" => "pause a schedule",
        "resume-schedule" => "resume a schedule",
        "fire-schedule" => "run a schedule now",
        "reschedule" => "move",
        "edit" => "replace a dead letter",
        name => name,
    }
}

/// Returns the label of the button that confirms the action.
pub fn button(name: &str) -> &str {
    match name {
        "pause" | "pause-schedule" => "Pause",
        "resume" | "resume-schedule" => "Resume",
        "purge" => "Purge",
        "enqueue" => "Enqueue",
        "cancel" => "Cancel the message",
        "reschedule" => "Reschedule",
        "replay" => "Replay",
        "discard" => "Discard",
        "edit" => "Replace",
        "fire-schedule" => "Run now",
        name => name,
    }
}
