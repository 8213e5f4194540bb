//! Compares the last id of a stream with the position.
//!
//! `XREAD` after an id that the stream has not reached waits without an error. So it skips the
//! entries of a stream that was deleted and begins again with lower ids.

use std::{collections::HashMap, time::Duration};

use redis::{RedisError, RedisResult, Value, aio::ConnectionManager, from_redis_value};
use tokio::time::Instant;

/// The minimum interval between two queries while no entries arrive.
const EACH: Duration = Duration::from_secs(5);
/// The minimum interval between two queries, as a multiple of the time that the first one took. An
/// answer that is too slow still arrives after the timeout, and delays the next read.
const SHARE: u32 = 100;
/// The time for which the last id is lower than the position before that is a gap. A replica may be
/// behind, or may still receive the stream.
const GRACE: Duration = Duration::from_secs(5);

/// The commands that run the script. Redis has the first one from version 7 on. The second one then
/// also needs the right to write to the stream.
const RUN: [&str; 2] = ["EVAL_RO", "EVAL"];
/// The script that returns the last id of a stream. `XINFO STREAM` also returns the first and the
/// last entry, and no other command returns this id without an entry. `XREVRANGE` knows no entries
/// that were removed.
const SCRIPT: &str = "
local said = redis.pcall('XINFO', 'STREAM', KEYS[1])
if said.err then return said end
for at = 1, #said, 2 do
    if said[at] == 'last-generated-id' then return said[at + 1] end
end
";

/// The parts of an entry's id: a time in milliseconds, and a number.
type EntryId = (u64, u64);

#[derive(Default)]
pub(super) struct LastId {
    /// The earliest time of the next query.
    next: Option<Instant>,
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
    pub async fn lower_than(&mut self, position: &str, connection: ConnectionManager, stream: &str) -> Option<String> {
        let position = parse(position)?; // Redis refuses other positions itself
        let began = Instant::now();
        if self.lower.is_none() && self.next.is_some_and(|next| began < next) {
            return None;
        }
        let (last, is_whole) = last_id(connection, stream).await;
        self.next = Some(Instant::now() + if is_whole { pause(began.elapsed()) } else { EACH });
        let Some(last) = last.and_then(|last| parse(&last)).filter(|last| *last < position) else {
            self.lower = None;
            return None;
        };
        let (since, (time, number)) = *self.lower.get_or_insert((Instant::now(), last));
        (since.elapsed() >= GRACE).then(|| format!("{time}-{number}"))
    }
}

/// Returns the time until the next query, after a query for whole entries that took a time.
fn pause(took: Duration) -> Duration {
    EACH.max(took.saturating_mul(SHARE))
}

/// Queries the last id of a stream. Also returns true if the query was for whole entries. Ignores
/// errors: there may be no stream yet, or this user may not query it.
async fn last_id(mut connection: ConnectionManager, stream: &str) -> (Option<String>, bool) {
    for command in RUN {
        let mut run = redis::cmd(command);
        let said: RedisResult<Option<String>> = run.arg(SCRIPT).arg(1).arg(stream).query_async(&mut connection).await;
        match said {
            Ok(last) => return (last, false),
            Err(error) if is_refused(&error) => {}
            Err(_) => return (None, false),
        }
    }
    let mut info = redis::cmd("XINFO");
    let said: RedisResult<HashMap<String, Value>> = info.arg("STREAM").arg(stream).query_async(&mut connection).await;
    let last = said.ok().and_then(|mut said| said.remove("last-generated-id"));
    (last.and_then(|last| from_redis_value(last).ok()), true)
}

/// Returns true if the server does not have the command, or does not run it for this user.
fn is_refused(error: &RedisError) -> bool {
    matches!(error.code(), Some("ERR" | "NOPERM")) && error.detail() != Some("no such key")
}

fn parse(id: &str) -> Option<EntryId> {
    let (time, number) = id.split_once('-').unwrap_or((id, "0"));
    Some((time.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_compared_as_numbers() {
        assert!(parse("9-10") < parse("10-9") && parse("9-9") < parse("9-10"));
        assert_eq!((parse("7"), parse("$"), parse("7-")), (Some((7, 0)), None, None));
    }

    #[test]
    fn slow_query_is_repeated_rarely() {
        let seconds = Duration::from_secs;
        assert_eq!((pause(seconds(0)), pause(Duration::from_millis(49))), (EACH, EACH));
        assert_eq!((pause(seconds(1)), pause(seconds(6))), (seconds(100), seconds(600)));
    }
}
