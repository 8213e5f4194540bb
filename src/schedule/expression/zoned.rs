//! Cron fields in the clock of a time zone, which may jump ahead or be set back.
//!
//! croner finds the times of day that match the fields; this module finds the timestamps at which a
//! clock shows these times. An expression that names hours has one tick for each named time: at the
//! first timestamp that shows the time, or at the jump that skips it. An expression for all hours
//! ticks whenever the clock shows a matching time.

use croner::Cron;
use jiff::{
    Timestamp, ToSpan,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

/// Fields, with the clock that they refer to.
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

    /// Returns the first tick after a time.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if !self.names_hours {
            return self.next_as_time_goes_on(after);
        }
        // A later time on the clock never has an earlier timestamp. So the first match after
        // `after` is the next tick.
        let mut shown = self.zone.to_datetime(after);
        loop {
            shown = self.cron.find_next_occurrence(&shown, false).ok()?;
            let tick = self.moment(shown)?;
            if tick > after {
                return Some(tick);
            }
        }
    }

    /// Returns the last tick before a time.
    pub fn previous(&self, before: Timestamp) -> Option<Timestamp> {
        if !self.names_hours {
            return self.previous_as_time_goes_on(before);
        }
        let mut shown = self.zone.to_datetime(before);
        let mut inclusive = before.subsec_nanosecond() != 0;
        // When the clock shows an hour for the second time, all times of the first pass are over.
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

    /// Returns the timestamp of a local time: the earlier one if the clock shows the time twice,
    /// and the jump itself if the clock skips it.
    fn moment(&self, shown: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(shown);
        let moment = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(shown),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(shown),
            AmbiguousOffset::Gap { after, .. } => {
                // With the offset after the jump, the skipped time gives a timestamp before the
                // jump.
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
            // The last timestamp before `from`.
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

    /// Returns true if the clock's offset changes at `from`. A change of only the offset's name
    /// does not count.
    fn is_another(&self, offset: Offset, from: Timestamp) -> bool {
        self.zone.to_offset(from) != offset
    }
}

#[cfg(test)]
mod tests;
