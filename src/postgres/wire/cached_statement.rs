//! Statements that a connection has prepared, with their descriptions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use postgres_types::Oid;
use tokio::sync::watch;

use super::{
    WireError,
    bind::BindHead,
    row::{ColumnFacts, Columns},
    soil::soils,
};

/// A statement that the connection has prepared or is about to prepare.
#[derive(Debug)]
pub(crate) struct CachedStatement {
    /// The name of the statement on this connection, which contains a counter. A name is never
    /// reused, so it always refers to the same statement.
    pub name: String,
    pub text: Arc<str>,
    /// True if the statement may change session state beyond the end of its transaction.
    pub soils: bool,
    /// The server's reply to the preparation of the statement.
    answer: watch::Sender<Option<Result<Arc<Signature>, WireError>>>,
    /// The types of the statement. Set after types that are not built in have been looked up.
    pub typed: OnceLock<Arc<Columns>>,
    /// The start of each Bind message, once the statement has been bound.
    bind: OnceLock<Option<BindHead>>,
}

#[derive(Debug, Default)]
pub(crate) struct Signature {
    pub parameters: Vec<Oid>,
    pub columns: Vec<(String, Oid)>,
    pub facts: Vec<ColumnFacts>,
}

/// A cache of statement descriptions by text, for a connection that keeps no prepared statements.
#[derive(Debug, Default)]
pub(super) struct Descriptions(Mutex<HashMap<Arc<str>, Arc<Columns>>>);

impl Descriptions {
    /// The maximum number of cached descriptions. Other connections keep the same number of
    /// prepared statements.
    const KEPT: usize = 1000;

    pub fn get(&self, text: &str) -> Option<(Arc<str>, Arc<Columns>)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_key_value(text).map(|(text, columns)| (text.clone(), columns.clone()))
    }

    pub fn insert(&self, text: Arc<str>, columns: Arc<Columns>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::KEPT {
            known.clear();
        }
        known.insert(text, columns);
    }

    pub fn forget(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(text);
    }
}

impl CachedStatement {
    pub fn new(name: String, text: Arc<str>) -> Self {
        let answer = watch::Sender::new(None);
        Self { name, soils: soils(&text), text, answer, typed: OnceLock::new(), bind: OnceLock::new() }
    }

    /// Returns the start of a Bind message for this number of parameters, which is the same at each
    /// use.
    pub(super) fn bind_head(&self, parameters: usize) -> Option<&BindHead> {
        self.bind.get_or_init(|| BindHead::new(&self.name, parameters)).as_ref()
    }

    pub fn answered(&self, answer: Result<Arc<Signature>, WireError>) {
        self.answer.send_replace(Some(answer));
    }

    /// Returns the error of the preparation, if the preparation is known to have failed.
    pub fn failure(&self) -> Option<WireError> {
        self.answer.borrow().as_ref().and_then(|answer| answer.as_ref().err().cloned())
    }

    pub async fn described(&self) -> Result<Arc<Signature>, WireError> {
        let mut answer = self.answer.subscribe();
        let answer = answer.wait_for(Option::is_some).await.map_err(|_| WireError::Lost(None))?;
        answer.clone().unwrap_or(Err(WireError::Lost(None)))
    }
}

impl Signature {
    /// Parses the reply to Parse and Describe.
    pub fn read(chunks: &[bytes::Bytes]) -> Result<Self, WireError> {
        let mut described = Self::default();
        for (kind, body) in chunks.iter().flat_map(|chunk| super::frame::frames(chunk)) {
            match kind {
                b'E' => {
                    let error = Arc::new(crate::error::server::ServerError::parse(body));
                    return Err(WireError::Server { statement: 0, text: None, error });
                }
                b't' => {
                    described.parameters =
                        parameters(body).ok_or(WireError::Protocol("the description of a statement is truncated"))?;
                }
                b'T' => {
                    let columns =
                        columns(body).ok_or(WireError::Protocol("the description of a statement is truncated"))?;
                    (described.columns, described.facts) = columns.into_iter().unzip();
                }
                _ => {}
            }
        }
        Ok(described)
    }
}

fn parameters(body: &[u8]) -> Option<Vec<Oid>> {
    let (count, rest) = body.split_first_chunk::<2>()?;
    let oids: Vec<Oid> = rest.chunks_exact(4).map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]])).collect();
    (oids.len() == usize::from(u16::from_be_bytes(*count))).then_some(oids)
}

/// Parses the columns. A column consists of a name and 18 bytes: the table's OID, the column's
/// number, the OID, length and modifier of its type, and the format.
fn columns(body: &[u8]) -> Option<Vec<((String, Oid), ColumnFacts)>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    (0..u16::from_be_bytes(*count))
        .map(|_| {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let name = String::from_utf8_lossy(&rest[..end]).into_owned();
            let (facts, after) = rest[end + 1..].split_first_chunk::<18>()?;
            rest = after;
            let other = ColumnFacts {
                table: u32::from_be_bytes([facts[0], facts[1], facts[2], facts[3]]),
                number: i16::from_be_bytes([facts[4], facts[5]]),
                modifier: i32::from_be_bytes([facts[12], facts[13], facts[14], facts[15]]),
            };
            Some(((name, u32::from_be_bytes([facts[6], facts[7], facts[8], facts[9]])), other))
        })
        .collect()
}
