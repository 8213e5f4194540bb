//! The parser for the reply to a group. It finds the rows and the end of each statement's reply.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;

use super::{
    Row, WireError,
    frame::frames_at,
    group::Places,
    inbox::Came,
    reply_limit::Over,
    row::{Columns, Values},
};
use crate::error::server::ServerError;

/// The maximum number of parts for which memory is reserved in advance.
const PARTS: usize = 1 << 10;

/// The server's reply to a group, or to those statements of the group that have ended.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    chunks: Vec<Bytes>,
    parts: Vec<AnswerPart>,
}

#[derive(Debug, Clone)]
struct AnswerPart {
    /// The index of the chunk in which the part begins, and the offset in that chunk.
    start: (usize, usize),
    rows: usize,
    /// The position of the server's command tag, such as `INSERT 0 1`: a chunk and a range in it.
    tag: (usize, Range<usize>),
    /// True if the portal has more rows than the statement requested.
    suspended: bool,
    /// The columns of the rows, if they differ from the expected columns.
    columns: Option<Arc<Columns>>,
}

/// A reply that is read as it arrives. Only the last message of the reply confirms that the group
/// has taken effect.
#[derive(Debug)]
pub(super) struct Reading {
    pub reply: Reply,
    places: Places,
    script: bool,
    /// The position at which the part of the next statement starts.
    start: (usize, usize),
    rows: usize,
    /// True if the server has bound the statement whose reply arrives. A description that arrives
    /// before that belongs to another portal.
    is_bound: bool,
    /// The last described columns, if they differ from the columns that the statement was expected
    /// to have.
    changed: Option<Arc<Columns>>,
    /// The number of parts that have been forgotten.
    before: usize,
    /// The first error in the group, and whether the server had bound the statement. After an
    /// error, the server skips all messages up to the Sync.
    failed: Option<(Arc<ServerError>, bool)>,
    over: Option<Over>,
}

impl Reading {
    pub fn new(places: Places, script: bool) -> Self {
        let reply = Reply { chunks: Vec::new(), parts: Vec::with_capacity(places.len().min(PARTS)) };
        Self {
            reply,
            places,
            script,
            start: (0, 0),
            rows: 0,
            changed: None,
            is_bound: false,
            before: 0,
            failed: None,
            over: None,
        }
    }

    /// Finds the ends of statements in newly arrived messages.
    pub fn take(&mut self, came: Came) {
        self.over = came.over.or(self.over);
        for chunk in came.chunks {
            let at = self.reply.chunks.len();
            for (kind, body) in frames_at(&chunk, 0) {
                let tag = match kind {
                    b'D' => {
                        self.rows += 1;
                        continue;
                    }
                    b'C' => body.start..body.end.saturating_sub(1).max(body.start),
                    b'I' | b's' => 0..0,
                    b'2' => {
                        self.is_bound = true;
                        continue;
                    }
                    b'T' | b'n' => {
                        if let Some(expected) = self.described().filter(|_| self.is_bound) {
                            self.changed = expected.changed(&chunk[body]);
                        }
                        continue;
                    }
                    b'E' => {
                        let is_bound = self.is_bound;
                        self.failed.get_or_insert_with(|| (Arc::new(ServerError::parse(&chunk[body])), is_bound));
                        continue;
                    }
                    _ => continue,
                };
                self.is_bound = false;
                let rows = std::mem::take(&mut self.rows);
                let (start, suspended) = (self.start, kind == b's');
                let columns = self.changed.clone().filter(|_| self.described().is_some());
                self.reply.parts.push(AnswerPart { start, rows, tag: (at, tag), suspended, columns });
                self.start = (at, body.end);
            }
            self.reply.chunks.push(chunk);
        }
    }

    /// Returns the expected columns of the statement whose reply arrives, if a description of its
    /// rows was requested.
    fn described(&self) -> Option<&Arc<Columns>> {
        self.places.get(self.before + self.reply.parts.len())?.described.as_ref()
    }

    /// Returns the columns of the rows that arrive, if they differ from the expected columns.
    pub fn changed(&self) -> Option<Arc<Columns>> {
        self.changed.clone()
    }

    /// Returns the indexes of the statements that have ended and have not been forgotten. The range
    /// is empty if the reply is too large, because its rows were discarded.
    pub fn ended(&self) -> Range<usize> {
        self.before..self.before + self.over.map_or(self.reply.parts.len(), |_| 0)
    }

    pub fn forget(&mut self) {
        self.before += self.reply.parts.len();
        self.reply.parts.clear();
        let (at, offset) = self.start;
        let read = self.reply.chunks.get(at).is_some_and(|chunk| chunk.len() <= offset);
        self.reply.chunks.drain(..(at + usize::from(read)).min(self.reply.chunks.len()));
        self.start = (0, if read { 0 } else { offset });
    }

    /// Forgets all rows, including the rows of a statement that has not ended. Does not forget that
    /// statements have ended.
    pub fn forget_rows(&mut self) {
        for part in &mut self.reply.parts {
            let suspended = part.suspended;
            *part = AnswerPart { start: (0, 0), rows: 0, tag: (usize::MAX, 0..0), suspended, columns: None };
        }
        self.reply.chunks.clear();
        (self.start, self.rows) = ((0, 0), 0);
    }

    /// Returns the reply without the forgotten parts. All messages must have arrived.
    pub fn end(self) -> Result<Reply, WireError> {
        let count = self.before + self.reply.parts.len();
        let Some((error, is_bound)) = self.failed else {
            return match self.over {
                _ if !self.script && count != self.places.len() => {
                    Err(WireError::Protocol("an answer has not as many ends as there were statements"))
                }
                Some(Over::Bytes(limit)) => Err(WireError::TooLarge(limit)),
                Some(Over::Rows(most)) => Err(WireError::TooManyRows(most)),
                None => Ok(self.reply),
            };
        };
        // Prefers the error of the preparation, which arrived earlier. If a statement could not be
        // prepared, binding it fails because its name is unknown.
        let place = self.places.get(count);
        let unprepared = place.and_then(|place| place.named.as_ref()).and_then(|named| named.failure());
        let text = place.map(|place| place.text.clone());
        let before_bind = place.is_some() && !is_bound;
        Err(match unprepared {
            Some(WireError::Server { error, .. }) => WireError::Server { statement: count, text, error, before_bind },
            _ => WireError::Server { statement: count, text, error, before_bind },
        })
    }
}

impl Reply {
    pub fn rows(&self, place: usize, columns: &Arc<Columns>) -> Vec<Row> {
        let columns = self.changed(place).unwrap_or(columns);
        let row =
            |(chunk, values): (&Bytes, Range<usize>)| Row { columns: columns.clone(), values: chunk.slice(values) };
        self.values(place).map(row).collect()
    }

    /// Returns an iterator over the rows of the statement at index `place`. Does not copy the rows.
    pub fn each<'a>(&'a self, place: usize, columns: &'a Arc<Columns>) -> impl ExactSizeIterator<Item = Values<'a>> {
        let columns = self.changed(place).unwrap_or(columns);
        let mut rows = self.values(place);
        let count = self.parts.get(place).map_or(0, |part| part.rows);
        (0..count).map(move |_| {
            let values = rows.next().map_or(&[][..], |(chunk, values)| &chunk[values]);
            Values::new(columns, values)
        })
    }

    /// Returns the columns of the statement at index `place`, if they differ from the columns that
    /// it was expected to have.
    pub fn changed(&self, place: usize) -> Option<&Arc<Columns>> {
        self.parts.get(place)?.columns.as_ref()
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

    pub fn affected(&self, place: usize) -> u64 {
        self.tag(place).rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    pub fn tag(&self, place: usize) -> &str {
        let words = self
            .parts
            .get(place)
            .and_then(|AnswerPart { tag: (at, words), .. }| self.chunks.get(*at)?.get(words.clone()));
        words.and_then(|words| std::str::from_utf8(words).ok()).unwrap_or_default()
    }

    pub fn has_more(&self, place: usize) -> bool {
        self.parts.get(place).is_some_and(|part| part.suspended)
    }

    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }
}
