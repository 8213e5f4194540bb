//! Compares the last id of a stream with the position.
//!
//! `XREAD` after an id that the stream has not reached waits without an error. So it skips the
//! entries of a stream that was deleted and begins again with lower ids.

use std::{collections::HashMap, time::Duration};

use redis::{RedisResult, Value, aio::ConnectionManager, from_redis_value};
use tokio::time::Instant;

/// The interval between two queries while no entries arrive.
const EACH: Duration = Duration::from_secs(5);
/// The time for which the last id is lower than the position before that is a gap. A replica may be
/// behind, or may still receive the stream.
const GRACE: Duration = Duration::from_secs(5);

/// The parts of an entry's id: a time in milliseconds, and a number.
type EntryId = (u64, u64);

#[derive(Default)]
pub(super) struct LastId {
    asked: Option<Instant>,
    /// The last id that was lower than the position for the first time, and the time of that query.
    lower: Option<(Instant, EntryId)>,
}

impl LastId {
    /// Records that the position is not behind the last id.
    pub fn goes_on(&mut self) {
        self.lower = None;
    }

    /// Queries the last id at intervals. Returns it if it stays lower than a position: the id of
    /// the first query that found it lower.
    pub async fn lower_than(
        &mut self,
        position: &str,
        mut connection: ConnectionManager,
        stream: &str,
    ) -> Option<String> {
        let position = parse(position)?; // Redis refuses other positions itself
        if self.lower.is_none() && self.asked.is_some_and(|asked| asked.elapsed() < EACH) {
            return None;
        }
        self.asked = Some(Instant::now());
        let mut info = redis::cmd("XINFO");
        let said: RedisResult<HashMap<String, Value>> =
            info.arg("STREAM").arg(stream).query_async(&mut connection).await;
        // Ignores errors: there may be no stream yet, or this user may not query it.
        let last = said.ok().and_then(|mut info| from_redis_value::<String>(info.remove("last-generated-id")?).ok());
        let Some(last) = last.and_then(|last| parse(&last)).filter(|last| *last < position) else {
            self.lower = None;
            return None;
        };
        let (since, (time, number)) = *self.lower.get_or_insert((Instant::now(), last));
        (since.elapsed() >= GRACE).then(|| format!("{time}-{number}"))
    }
}

fn parse(id: &str) -> Option<EntryId> {
    let (time, number) = id.split_once('-').unwrap_or((id, "0"));
    Some((time.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ids_are_compared_as_numbers() {
        assert!(parse("9-10") < parse("10-9") && parse("9-9") < parse("9-10"));
        assert_eq!((parse("7"), parse("$"), parse("7-")), (Some((7, 0)), None, None));
    }
}
