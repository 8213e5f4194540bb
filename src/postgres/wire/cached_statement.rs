//! Statements that a connection has prepared, with their descriptions.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use postgres_types::{Kind, Oid, Type};
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
        let (text, columns) = known.get_key_value(text).filter(|(_, columns)| !columns.is_outdated())?;
        Some((text.clone(), columns.clone()))
    }

    pub fn insert(&self, text: Arc<str>, columns: Arc<Columns>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::KEPT {
            known.clear();
        }
        known.insert(text, columns);
    }

    pub fn forget(&self, text: &str) {
        if let Some(columns) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(text) {
            columns.set_outdated();
        }
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

    /// Returns true if the statement may have other types now, so that it must be prepared again.
    pub fn is_outdated(&self) -> bool {
        self.typed.get().is_some_and(|columns| columns.is_outdated())
    }

    pub fn set_outdated(&self) {
        if let Some(columns) = self.typed.get() {
            columns.set_outdated();
        }
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
                    return Err(WireError::Server { statement: 0, text: None, error, before_bind: true });
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

/// Parses the columns.
fn columns(body: &[u8]) -> Option<Vec<((String, Oid), ColumnFacts)>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut next = || {
        let (name, oid, facts, after) = column(rest)?;
        rest = after;
        Some(((name.into_owned(), oid), facts))
    };
    (0..u16::from_be_bytes(*count)).map(|_| next()).collect()
}

/// Parses a column: a name and 18 bytes, which are the table's OID, the column's number, the OID,
/// length and modifier of its type, and the format. Returns it with the rest of the bytes.
fn column(bytes: &[u8]) -> Option<(Cow<'_, str>, Oid, ColumnFacts, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let name = String::from_utf8_lossy(&bytes[..end]);
    let (facts, rest) = bytes[end + 1..].split_first_chunk::<18>()?;
    let other = ColumnFacts {
        table: u32::from_be_bytes([facts[0], facts[1], facts[2], facts[3]]),
        number: i16::from_be_bytes([facts[4], facts[5]]),
        modifier: i32::from_be_bytes([facts[12], facts[13], facts[14], facts[15]]),
    };
    Some((name, u32::from_be_bytes([facts[6], facts[7], facts[8], facts[9]]), other, rest))
}

impl Columns {
    /// Compares these columns with a description in a reply, which is the body of a
    /// `RowDescription` message, or empty if there are no rows. Returns the columns of the reply if
    /// their names or types differ, and marks these columns as outdated.
    ///
    /// A type that is neither built in nor among these columns is not looked up, so its values
    /// cannot be read. The next use of the statement looks it up.
    pub fn changed(&self, description: &[u8]) -> Option<Arc<Self>> {
        if self.are_in(description) {
            return None;
        }
        self.set_outdated();
        let known = |oid| self.columns.iter().map(|(_, ty)| ty).find(|ty| ty.oid() == oid).cloned();
        let unknown = |oid| Type::new(format!("of OID {oid}"), oid, Kind::Simple, "pg_catalog".to_owned());
        let typed = |((name, oid), facts): ((String, Oid), ColumnFacts)| {
            ((name, Type::from_oid(oid).or_else(|| known(oid)).unwrap_or_else(|| unknown(oid))), facts)
        };
        let (described, facts) = columns(description).unwrap_or_default().into_iter().map(typed).unzip();
        let mut changed = Self::new(self.parameters.clone(), described);
        changed.facts = facts;
        Some(Arc::new(changed))
    }

    /// Returns the columns of a reply that describes them, if they differ from these columns.
    pub fn changed_in(&self, chunks: &[bytes::Bytes]) -> Option<Arc<Self>> {
        let mut messages = chunks.iter().flat_map(|chunk| super::frame::frames(chunk));
        let (_, description) = messages.find(|(kind, _)| matches!(kind, b'T' | b'n'))?;
        self.changed(description)
    }

    /// Returns true if a description has the same names and types.
    fn are_in(&self, description: &[u8]) -> bool {
        let (count, mut rest) = description.split_first_chunk::<2>().unwrap_or((&[0, 0], &[]));
        usize::from(u16::from_be_bytes(*count)) == self.columns.len()
            && self.columns.iter().all(|(name, ty)| {
                let Some((other, oid, _, after)) = column(rest) else { return false };
                rest = after;
                other == **name && oid == ty.oid()
            })
    }
}
