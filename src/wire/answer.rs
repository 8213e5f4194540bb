use std::sync::Arc;

use bytes::Bytes;

use super::{
    Failure, Named, Row,
    frame::{frames, owned},
    row::Columns,
};
use crate::server_error::ServerError;

/// What the server answered to one group, as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    chunks: Vec<Bytes>,
    /// How each statement ended, in the server's words: `INSERT 0 1`.
    tags: Vec<Bytes>,
}

impl Answer {
    /// Reads how it ended: nothing has happened before the last message says so, whatever was answered to single statements.
    pub(super) fn read(chunks: Vec<Bytes>, statements: &[Option<Arc<Named>>], script: bool) -> Result<Self, Failure> {
        let (mut tags, mut failed) = (Vec::with_capacity(statements.len()), None);
        for (kind, body) in chunks.iter().flat_map(owned) {
            match kind {
                b'C' => tags.push(body.slice(..body.len().saturating_sub(1))),
                b'I' | b's' => tags.push(Bytes::new()),
                // The first error is the group's: the server skips everything behind it, up to the Sync.
                b'E' if failed.is_none() => failed = Some((tags.len(), ServerError::parse(&body))),
                _ => {}
            }
        }
        let Some((statement, error)) = failed else {
            return match script || tags.len() == statements.len() {
                true => Ok(Self { chunks, tags }),
                false => Err(Failure::Protocol("an answer has not as many ends as there were statements")),
            };
        };
        // A statement that could not be prepared is unknown here; what was wrong with it was said before.
        let unprepared = statements.get(statement).and_then(Option::as_ref).and_then(|named| named.failure());
        Err(match unprepared {
            Some(Failure::Server { error, .. }) => Failure::Server { statement, error },
            _ => Failure::Server { statement, error: Arc::new(error) },
        })
    }

    /// The rows of the statement of that place.
    pub fn rows(&self, place: usize, columns: &Arc<Columns>) -> Vec<Row> {
        let mut statement = 0;
        let mut rows = Vec::new();
        for (kind, body) in self.chunks.iter().flat_map(owned) {
            match kind {
                b'D' if statement == place => {
                    rows.push(Row { columns: columns.clone(), values: body.slice(2.min(body.len())..) });
                }
                b'C' | b'I' | b's' => statement += 1,
                _ => {}
            }
        }
        rows
    }

    /// How many rows the statement of that place touched.
    pub fn affected(&self, place: usize) -> u64 {
        let words = self.tags.get(place).and_then(|tag| std::str::from_utf8(tag).ok());
        words.and_then(|words| words.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    }

    /// In the server's words, how the statement of that place ended.
    pub fn tag(&self, place: usize) -> &str {
        self.tags.get(place).and_then(|tag| std::str::from_utf8(tag).ok()).unwrap_or_default()
    }

    /// Whether a transaction is open, or failed, behind it.
    pub fn status(&self) -> u8 {
        let last = self.chunks.iter().flat_map(|chunk| frames(chunk)).last();
        last.filter(|(kind, _)| *kind == b'Z').and_then(|(_, body)| body.first().copied()).unwrap_or(b'I')
    }
}
