//! Groups of statements, encoded as Parse, Bind, Execute and Sync messages.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::{
    IsNull,
    message::frontend::{self, BindError},
};
use postgres_types::{BorrowToSql, IsNull as TypesIsNull, ToSql, Type};

use super::{
    Bound, CachedStatement, InFlight, WireError,
    bind::{checked_length, parse},
    failure::BEGIN,
    row::Columns,
};

/// The statements of a group, which ends with a Sync.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(super) bytes: BytesMut,
    pub(super) places: Places,
    /// True if the group is one text of several statements in the simple protocol, without a Sync.
    pub(super) script: bool,
    /// True if a statement is a copy and the group includes its data.
    pub(super) copies: bool,
    /// True if a statement may change session state beyond the end of its transaction.
    pub(super) soils: bool,
    /// The limits on the reply. A correct reply never exceeds them.
    pub bound: Bound,
    pub mode: ReplyMode,
    /// Counts the group as load until its reply arrives.
    pub load: Option<InFlight>,
}

/// The way in which the caller receives a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    /// The caller receives the reply when it is complete.
    #[default]
    Whole,
    /// The caller reads the reply to each statement as it arrives.
    InParts,
    /// The caller reads rows as they arrive. If too many rows are unread, the driver stops reading
    /// from the server.
    Streamed,
}

/// The statements of a group, in order. Consecutive equal statements are stored once.
#[derive(Debug, Default)]
pub(super) struct Places {
    count: usize,
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    /// The number of statements in the group before this one.
    before: usize,
    statement: GroupStatement,
}

#[derive(Debug)]
pub(super) struct GroupStatement {
    pub text: Arc<str>,
    pub named: Option<Arc<CachedStatement>>,
    /// The expected columns, if the group requests a description of the statement's rows.
    pub described: Option<Arc<Columns>>,
}

impl Places {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn get(&self, place: usize) -> Option<&GroupStatement> {
        let after = self.runs.partition_point(|run| run.before <= place);
        let run = self.runs.get(after.checked_sub(1)?)?;
        (place < self.count).then_some(&run.statement)
    }

    fn push(&mut self, text: &Arc<str>, named: Option<&Arc<CachedStatement>>, described: Option<&Arc<Columns>>) {
        let same = self.runs.last().is_some_and(|Run { statement, .. }| {
            Arc::ptr_eq(&statement.text, text)
                && statement.named.as_ref().map(Arc::as_ptr) == named.map(Arc::as_ptr)
                && statement.described.as_ref().map(Arc::as_ptr) == described.map(Arc::as_ptr)
        });
        if !same {
            let statement = GroupStatement { text: text.clone(), named: named.cloned(), described: described.cloned() };
            self.runs.push(Run { before: self.count, statement });
        }
        self.count += 1;
    }
}

/// A statement with the types of its parameters and columns. It can be bound without a round trip.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub text: Arc<str>,
    /// The prepared statement on this connection, or `None` if the connection keeps no statements.
    pub named: Option<Arc<CachedStatement>>,
    pub columns: Arc<Columns>,
}

/// A portal, and the maximum number of rows to send. Further rows remain in the portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portal<'a> {
    pub name: &'a str,
    pub most: i32,
}

/// The unnamed portal, with a request for all rows.
const ALL: Portal<'_> = Portal { name: "", most: 0 };

impl Group {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.len() == 0
    }

    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a statement. If this method returns an error, the group is unchanged.
    pub fn push(&mut self, prepared: &Prepared, parameters: &[&(dyn ToSql + Sync)]) -> Result<(), WireError> {
        self.push_rows(prepared, parameters, ALL)
    }

    /// Adds a statement like [`Group::push`], but requests only the first rows.
    /// [`Group::push_more`] requests the next rows in the same transaction.
    pub fn push_rows<P: BorrowToSql>(
        &mut self,
        prepared: &Prepared,
        parameters: &[P],
        portal: Portal<'_>,
    ) -> Result<(), WireError> {
        let Prepared { text, named, columns } = prepared;
        let added = match named {
            Some(named) => self.bind_named(named, &columns.parameters, parameters, portal).map(|()| {
                self.soils |= named.soils;
                self.places.push(text, Some(named), None);
            }),
            None => self.parse_and_bind(text, &columns.parameters, parameters, portal, Some(columns)),
        };
        added.inspect_err(|failure| columns.doubt_after(failure))
    }

    /// Adds a statement like [`Group::push`]. The parameters may be values or references.
    pub fn push_borrowed<P: BorrowToSql>(&mut self, prepared: &Prepared, parameters: &[P]) -> Result<(), WireError> {
        self.push_rows(prepared, parameters, ALL)
    }

    /// Adds a statement that the server parses with these types, describes and runs, but forgets.
    pub fn push_described<P: BorrowToSql>(
        &mut self,
        text: &Arc<str>,
        types: &[Type],
        parameters: &[P],
    ) -> Result<(), WireError> {
        parse("", text, types, &mut self.bytes)?;
        self.bind_portal("", "", types, parameters)?;
        frontend::describe(b'P', "", &mut self.bytes).map_err(WireError::encode)?;
        frontend::execute("", 0, &mut self.bytes).map_err(WireError::encode)?;
        self.places.push(text, None, None);
        Ok(())
    }

    /// Creates a group that prepares a statement under a name. `types` are the types of its first
    /// parameters.
    pub fn prepare(name: &str, text: &str, types: &[Type]) -> Result<Self, WireError> {
        let mut group = Self::new();
        parse(name, text, types, &mut group.bytes)?;
        frontend::describe(b'S', name, &mut group.bytes).map_err(WireError::encode)?;
        Ok(group)
    }

    /// Opens a portal without running it. The portal does not count as a statement of the group. If
    /// the statement has no name, the reply contains a description of the portal's rows.
    pub fn open_portal<P: BorrowToSql>(
        &mut self,
        portal: &str,
        prepared: &Prepared,
        parameters: &[P],
    ) -> Result<(), WireError> {
        let types = &prepared.columns.parameters;
        if let Some(named) = &prepared.named {
            return self.bind_portal(portal, &named.name, types, parameters);
        }
        parse("", &prepared.text, types, &mut self.bytes)?;
        self.bind_portal(portal, "", types, parameters)?;
        frontend::describe(b'P', portal, &mut self.bytes).map_err(WireError::encode)
    }

    /// Closes a prepared statement. The close does not count as a statement of the group.
    pub fn close_statement(&mut self, name: &str) -> Result<(), WireError> {
        frontend::close(b'S', name, &mut self.bytes).map_err(WireError::encode)
    }

    /// Adds a statement that begins a transaction, and opens a portal that shows that the
    /// transaction is open.
    pub fn push_begin(&mut self, text: &Arc<str>) -> Result<(), WireError> {
        self.parse_and_bind(text, &[], &[] as &[&(dyn ToSql + Sync)], Portal { name: BEGIN, most: 0 }, None)
    }

    /// Makes the server skip the following statements of the group unless the transaction of
    /// [`Group::push_begin`] is open. Does not count as a statement of the group.
    pub fn expect_begun(&mut self) -> Result<(), WireError> {
        frontend::describe(b'P', BEGIN, &mut self.bytes).map_err(WireError::encode)
    }

    pub fn push_more(&mut self, text: &Arc<str>, portal: Portal<'_>) -> Result<(), WireError> {
        frontend::execute(portal.name, portal.most, &mut self.bytes).map_err(WireError::encode)?;
        self.places.push(text, None, None);
        Ok(())
    }

    /// Closes a portal. The close does not count as a statement of the group, and the server's
    /// `CloseComplete` is ignored.
    pub fn close(&mut self, portal: &str) -> Result<(), WireError> {
        frontend::close(b'P', portal, &mut self.bytes).map_err(WireError::encode)
    }

    /// Adds a statement that the server parses within the group and does not keep. A pooler may use
    /// a different server connection for every transaction, so a statement must be parsed and bound
    /// before the same Sync.
    pub fn push_unnamed(
        &mut self,
        text: &Arc<str>,
        types: &[Type],
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<(), WireError> {
        self.parse_and_bind(text, types, parameters, ALL, None)
    }

    /// Adds a statement that the server parses within the group. If columns are expected, also
    /// requests a description of the rows: its table may have changed since its text was described.
    fn parse_and_bind<P: BorrowToSql>(
        &mut self,
        text: &Arc<str>,
        types: &[Type],
        parameters: &[P],
        portal: Portal<'_>,
        described: Option<&Arc<Columns>>,
    ) -> Result<(), WireError> {
        let before = self.bytes.len();
        let added = parse("", text, types, &mut self.bytes)
            .and_then(|()| self.bind_portal(portal.name, "", types, parameters))
            .and_then(|()| match described {
                Some(_) => frontend::describe(b'P', portal.name, &mut self.bytes).map_err(WireError::encode),
                None => Ok(()),
            })
            .and_then(|()| frontend::execute(portal.name, portal.most, &mut self.bytes).map_err(WireError::encode));
        if let Err(failure) = added {
            self.bytes.truncate(before);
            return Err(failure);
        }
        self.places.push(text, None, described);
        Ok(())
    }

    /// Creates a group that requests the types of a statement without running it.
    pub fn describe(text: &str) -> Result<Self, WireError> {
        let mut group = Self::new();
        parse("", text, &[], &mut group.bytes)?;
        frontend::describe(b'S', "", &mut group.bytes).map_err(WireError::encode)?;
        Ok(group)
    }

    /// Adds `copy … from stdin` and its data, without waiting for the server in between. The group
    /// has only one Sync, after the data.
    pub fn push_copy(&mut self, text: &Arc<str>, data: &[u8]) -> Result<(), WireError> {
        const PART: usize = 64 << 10;
        self.push_unnamed(text, &[], &[])?;
        for part in data.chunks(PART) {
            frontend::CopyData::new(part).map_err(WireError::encode)?.write(&mut self.bytes);
        }
        frontend::copy_done(&mut self.bytes);
        self.copies = true;
        Ok(())
    }

    /// Makes the group a text of several statements in the simple protocol.
    pub fn script(&mut self, text: &str) -> Result<(), WireError> {
        self.script = true;
        checked_length(text.len())?;
        frontend::query(text, &mut self.bytes).map_err(WireError::encode)
    }

    fn bind_named<P: BorrowToSql>(
        &mut self,
        named: &CachedStatement,
        types: &[Type],
        parameters: &[P],
        portal: Portal<'_>,
    ) -> Result<(), WireError> {
        if portal == ALL
            && types.len() == parameters.len()
            && let Some(head) = named.bind_head(types.len())
        {
            let before = self.bytes.len();
            return head.write(types, parameters, &mut self.bytes).inspect_err(|_| self.bytes.truncate(before));
        }
        self.bind(&named.name, types, parameters, portal)
    }

    fn bind<P: BorrowToSql>(
        &mut self,
        name: &str,
        types: &[Type],
        parameters: &[P],
        portal: Portal<'_>,
    ) -> Result<(), WireError> {
        let before = self.bytes.len();
        let sent = self
            .bind_portal(portal.name, name, types, parameters)
            .and_then(|()| frontend::execute(portal.name, portal.most, &mut self.bytes).map_err(WireError::encode));
        if sent.is_err() {
            self.bytes.truncate(before);
        }
        sent
    }

    fn bind_portal<P: BorrowToSql>(
        &mut self,
        portal: &str,
        name: &str,
        types: &[Type],
        parameters: &[P],
    ) -> Result<(), WireError> {
        if types.len() != parameters.len() {
            let text = format!("the statement has {} parameters, not {}", types.len(), parameters.len());
            return Err(WireError::encode(text));
        }
        let write = |(parameter, ty): (&P, &Type), out: &mut BytesMut| {
            Ok(match parameter.borrow_to_sql().to_sql_checked(ty, out)? {
                TypesIsNull::Yes => IsNull::Yes,
                TypesIsNull::No => IsNull::No,
            })
        };
        // Writes one format code for all parameters. Without parameters, none is allowed.
        let formats = (!parameters.is_empty()).then_some(1);
        let (parameters, before) = (parameters.iter().zip(types), self.bytes.len());
        match frontend::bind(portal, name, formats, parameters, write, Some(1), &mut self.bytes) {
            Ok(()) => checked_length(self.bytes.len() - before - 1).map(drop),
            Err(BindError::Conversion(cause)) => Err(WireError::encode(cause)),
            Err(BindError::Serialization(cause)) => Err(WireError::encode(cause)),
        }
    }
}
