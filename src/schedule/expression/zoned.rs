//! Fields of cron by the clock of a time zone, which jumps ahead and is set back.
//!
//! croner finds the times of a day that fields name; at which moments a clock shows these is said
//! here. An expression that names hours has a tick for each time that it names: the first moment
//! that shows it, or the jump that leaves it out. One whose hours are all hours goes on as time
//! does: it ticks whenever the clock shows a time that fits.

use croner::Cron;
use jiff::{
    Timestamp, ToSpan,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

/// Fields, and the clock that they mean.
#[derive(Debug, Clone)]
pub(in crate::schedule) struct Fields {
    cron: Cron,
    zone: TimeZone,
    names_hours: bool,
}

impl Fields {
    pub fn new(cron: Cron, zone: TimeZone) -> Self {
        let names_hours = cron.pattern.hours.values().len() < 24;
        Self { cron, zone, names_hours }
    }

    /// The first tick after a time.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if !self.names_hours {
            return self.next_as_time_goes_on(after);
        }
        // What the clock shows later comes no earlier, so the first that comes after it is the
        // next.
        let mut shown = self.zone.to_datetime(after);
        loop {
            shown = self.cron.find_next_occurrence(&shown, false).ok()?;
            let tick = self.moment(shown)?;
            if tick > after {
                return Some(tick);
            }
        }
    }

    /// The last tick before a time.
    pub fn previous(&self, before: Timestamp) -> Option<Timestamp> {
        if !self.names_hours {
            return self.previous_as_time_goes_on(before);
        }
        let mut shown = self.zone.to_datetime(before);
        let mut inclusive = before.subsec_nanosecond() != 0;
        // In the second of two hours that look alike, what comes later in the first has been.
        if let AmbiguousOffset::Fold { before: first, after: second } = self.zone.to_ambiguous_timestamp(shown).offset()
        {
            let length = i64::from(first.seconds() - second.seconds());
            shown = shown.checked_add(length.seconds()).ok()?;
            inclusive = true;
        }
        loop {
            shown = self.cron.find_previous_occurrence(&shown, inclusive).ok()?;
            inclusive = false;
            let tick = self.moment(shown)?;
            if tick < before {
                return Some(tick);
            }
        }
    }

    /// When a named time comes: the first of two moments that show it, or the jump over it.
    fn moment(&self, shown: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(shown);
        let moment = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(shown),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(shown),
            AmbiguousOffset::Gap { after, .. } => {
                // By the clock of behind the jump it would have been before it.
                let earlier = after.to_timestamp(shown).ok()?;
                return self.zone.following(earlier).next().map(|jump| jump.timestamp());
            }
        };
        moment.ok()
    }

    fn next_as_time_goes_on(&self, after: Timestamp) -> Option<Timestamp> {
        let (mut from, mut inclusive) = (after, false);
        loop {
            let offset = self.zone.to_offset(from);
            let found = self.cron.find_next_occurrence(&offset.to_datetime(from), inclusive).ok();
            let tick = found.and_then(|shown| offset.to_timestamp(shown).ok());
            let change = self.zone.following(from).find(|change| self.is_another(offset, change.timestamp()));
            match (tick, change) {
                (Some(tick), Some(change)) if tick >= change.timestamp() => {
                    (from, inclusive) = (change.timestamp(), true);
                }
                (tick, _) => return tick,
            }
        }
    }

    fn previous_as_time_goes_on(&self, before: Timestamp) -> Option<Timestamp> {
        let mut from = before;
        loop {
            // What the clock showed last before that moment.
            let last = from.checked_sub(1.nanosecond()).ok()?;
            let offset = self.zone.to_offset(last);
            let tick = self.cron.find_previous_occurrence(&offset.to_datetime(last), true).ok();
            let tick = tick.and_then(|shown| offset.to_timestamp(shown).ok());
            let mut began = self.zone.preceding(from).map(|change| change.timestamp());
            let began = began.find(|change| {
                change.checked_sub(1.nanosecond()).is_ok_and(|last| self.zone.to_offset(last) != offset)
            });
            match (tick, began) {
                (Some(tick), Some(began)) if tick < began => from = began,
                (tick, _) => return tick,
            }
        }
    }

    /// Whether the clock differs from that moment on: what changes the name of the time alone does
    /// not matter.
    fn is_another(&self, offset: Offset, from: Timestamp) -> bool {
        self.zone.to_offset(from) != offset
    }
}

#[cfg(test)]
mod tests;
