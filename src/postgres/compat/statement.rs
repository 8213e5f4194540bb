//! Prepared statements.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use postgres_types::Type;

use super::session::ClientSession;
use crate::postgres::wire::{Columns, Group, Prepared};

/// A column of a statement.
#[derive(Debug, Clone)]
pub struct Column {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) table: Option<u32>,
    pub(super) number: Option<i16>,
    pub(super) modifier: i32,
}

impl Column {
    /// Returns the name of the column.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the column.
    #[must_use]
    pub fn type_(&self) -> &Type {
        &self.ty
    }

    /// Returns the OID of the column's table, if the column comes from a table.
    #[must_use]
    pub fn table_oid(&self) -> Option<u32> {
        self.table
    }

    /// Returns the number of the column in its table, if the column comes from a table.
    #[must_use]
    pub fn column_id(&self) -> Option<i16> {
        self.number
    }

    /// Returns the modifier of the type, for example the length of a `varchar`, or -1 if there is
    /// none.
    #[must_use]
    pub fn type_modifier(&self) -> i32 {
        self.modifier
    }
}

/// A prepared statement of one client. It is closed when its last clone is dropped.
#[derive(Clone)]
pub struct Statement(Arc<Parts>);

struct Parts {
    prepared: Prepared,
    columns: Vec<Column>,
    /// The client, if the statement must be closed when it is dropped. The client itself closes
    /// statements that it prepared from texts.
    client: Weak<ClientSession>,
    is_kept: bool,
}

impl Statement {
    /// Creates a statement that is closed when its last clone is dropped.
    pub(super) fn owned(prepared: Prepared, client: &Arc<ClientSession>) -> Self {
        Self::new(prepared, Arc::downgrade(client), false)
    }

    /// Creates a statement that is in the client's cache, or that has no name.
    pub(super) fn kept(prepared: Prepared) -> Self {
        Self::new(prepared, Weak::new(), true)
    }

    fn new(prepared: Prepared, client: Weak<ClientSession>, is_kept: bool) -> Self {
        let facts = prepared.columns.facts.iter().map(Some).chain(std::iter::repeat(None));
        let column = |((name, ty), facts): (&(String, Type), Option<&crate::postgres::wire::ColumnFacts>)| Column {
            name: name.clone(),
            ty: ty.clone(),
            table: facts.map(|facts| facts.table).filter(|table| *table != 0),
            number: facts.map(|facts| facts.number).filter(|number| *number != 0),
            modifier: facts.map_or(-1, |facts| facts.modifier),
        };
        let columns = prepared.columns.columns.iter().zip(facts).map(column).collect();
        Self(Arc::new(Parts { prepared, columns, client, is_kept }))
    }

    /// Returns the statement of rows that have other columns than the statement had when it was
    /// described.
    pub(super) fn with_columns(&self, columns: Arc<Columns>) -> Self {
        Self::kept(Prepared { text: self.0.prepared.text.clone(), named: None, columns })
    }

    /// Returns true if the other value is a clone of this one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn prepared(&self) -> &Prepared {
        &self.0.prepared
    }

    /// Returns true if the client may prepare the text again.
    pub(super) fn is_kept(&self) -> bool {
        self.0.is_kept
    }

    /// Returns the types of the parameters.
    #[must_use]
    pub fn params(&self) -> &[Type] {
        &self.0.prepared.columns.parameters
    }

    /// Returns the columns of the statement's rows.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.0.columns
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Statement").field("text", &self.0.prepared.text).finish_non_exhaustive()
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let (Some(client), Some(named)) = (self.client.upgrade(), &self.prepared.named) {
            let mut group = Group::new();
            if group.close_statement(&named.name).is_ok() {
                drop(client.connection.send(group));
            }
        }
    }
}

/// A prepared statement, or a text that the client prepares once and caches.
pub trait ToStatement: sealed::Sealed + Send + Sync {}

pub(super) mod sealed {
    use super::Statement;

    pub trait Sealed {
        fn form(&self) -> Form<'_>;
    }

    #[derive(Clone, Copy)]
    pub enum Form<'a> {
        Prepared(&'a Statement),
        Text(&'a str),
    }
}

use self::sealed::Form;

impl sealed::Sealed for Statement {
    fn form(&self) -> Form<'_> {
        Form::Prepared(self)
    }
}

impl sealed::Sealed for str {
    fn form(&self) -> Form<'_> {
        Form::Text(self)
    }
}

impl sealed::Sealed for String {
    fn form(&self) -> Form<'_> {
        Form::Text(self)
    }
}

impl ToStatement for Statement {}
impl ToStatement for str {}
impl ToStatement for String {}
