use std::{ops::Range, sync::Arc};

use bytes::Bytes;

use super::{
    Row, WireError,
    frame::frames_at,
    group::GroupStatement,
    row::{Columns, Values},
};
use crate::error::server::ServerError;

/// The server's reply to one group, as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    chunks: Vec<Bytes>,
    parts: Vec<Part>,
}

/// One statement's part of an answer.
#[derive(Debug, Clone)]
struct Part {
    /// The chunk that it begins in, and where.
    start: (usize, usize),
    rows: usize,
    /// How it ended, in the server's words: `INSERT 0 1`.
    tag: Bytes,
    /// The portal has more rows than were asked for.
    suspended: bool,
}

impl Reply {
    /// Reads how it ended: nothing has happened before the last message says so, whatever was answered to single statements.
    pub(super) fn read(chunks: Vec<Bytes>, places: &[GroupStatement], script: bool) -> Result<Self, WireError> {
        let (mut parts, mut failed) = (Vec::with_capacity(places.len()), None);
        let (mut start, mut rows) = ((0, 0), 0);
        for (at, chunk) in chunks.iter().enumerate() {
            for (kind, body) in frames_at(chunk, 0) {
                let tag = match kind {
                    b'D' => {
                        rows += 1;
                        continue;
                    }
                    b'C' => chunk.slice(body.start..body.end.saturating_sub(1).max(body.start)),
                    b'I' | b's' => Bytes::new(),
                    // The first error is the group's: the server skips everything behind it, up to the Sync.
                    b'E' if failed.is_none() => {
                        failed = Some((parts.len(), ServerError::parse(&chunk[body])));
                        continue;
                    }
                    _ => continue,
                };
                parts.push(Part { start, rows, tag, suspended: kind == b's' });
                (start, rows) = ((at, body.end), 0);
            }
        }
        let Some((statement, error)) = failed else {
            return match script || parts.len() == places.len() {
                true => Ok(Self { chunks, parts }),
                false => Err(WireError::Protocol("an answer has not as many ends as there were statements")),
            };
        };
        // A statement that could not be prepared is unknown here; its own error was reported before.
        let place = places.get(statement);
        let unprepared = place.and_then(|place| place.named.as_ref()).and_then(|named| named.failure());
        let text = place.map(|place| place.text.clone());
        Err(match unprepared {
            Some(WireError::Server { error, .. }) => WireError::Server { statement, text, error },
            _ => WireError::Server { statement, text, error: Arc::new(error) },
        })
    }

    /// The rows of the statement of that place.
    pub fn rows(&self, place: usize, columns: &Arc<Columns>) -> Vec<Row> {
        let row =
            |(chunk, values): (&Bytes, Range<usize>)| Row { columns: columns.clone(), values: chunk.slice(values) };
        self.values(place).map(row).collect()
    }

    /// Reads the rows of the statement of that place where they are.
    pub fn each<'a>(&'a self, place: usize, columns: &'a Arc<Columns>) -> impl ExactSizeIterator<Item = Values<'a>> {
        let mut rows = self.values(place);
        let count = self.parts.get(place).map_or(0, |part| part.rows);
        (0..count).map(move |_| {
            let values = rows.next().map_or(&[][..], |(chunk, values)| &chunk[values]);
            Values::new(columns, values)
        })
    }

    fn values(&self, place: usize) -> impl Iterator<Item = (&Bytes, Range<usize>)> {
        let part = self.parts.get(place);
        let ((first, offset), rows) = part.map_or(((self.chunks.len(), 0), 0), |part| (part.start, part.rows));
        let chunks = self.chunks.get(first..).unwrap_or_default().iter().enumerate();
        chunks
            .flat_map(move |(at, chunk)| {
                frames_at(chunk, if at == 0 { offset } else { 0 }).map(move |(kind, body)| (chunk, kind, body))
            })
            .filter(|(_, kind, _)| *kind == b'D')
            .map(|(chunk, _, body)| (chunk, (body.start + 2).min(body.end)..body.end))
            .take(rows)
    }

    /// How many rows the statement of that place touched.
    pub fn affected(&self, place: usize) -> u64 {
        self.tag(place).rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// In the server's words, how the statement of that place ended.
    pub fn tag(&self, place: usize) -> &str {
        self.parts.get(place).and_then(|part| std::str::from_utf8(&part.tag).ok()).unwrap_or_default()
    }

    /// Whether the portal of that place has more rows.
    pub fn has_more(&self, place: usize) -> bool {
        self.parts.get(place).is_some_and(|part| part.suspended)
    }

    /// The messages, as they came.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }
}
