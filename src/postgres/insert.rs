//! Inserts of many rows with one statement. The statement sends one array per column, and the
//! server unnests the arrays.

use std::{borrow::Borrow, fmt::Write, marker::PhantomData};

use bytes::{BufMut, BytesMut};
use postgres_types::{IsNull, Kind as TypeKind, ToSql, Type};

use crate::{
    error::{Error, Result},
    postgres::{
        array::Elements,
        db::{Class, Db, Session, told_to_user},
        params::Params,
        rows::Rows,
        run::read,
        sql::quote,
        statement::Statement,
        transaction::{Pending, Transaction},
        wire::{Columns, Group, Prepared, WireError},
    },
};

/// An `insert` statement for any number of rows of type `P`, with a result of type `R`. The result
/// is the number of rows (`u64`), unless a `returning` clause returns rows.
///
/// ```
/// use trunkline::postgres::Insert;
///
/// static ACCOUNTS: Insert<(i64, &str)> = Insert::into("account", &["id", "owner"]);
/// static UPSERT: Insert<(i64, &str), Vec<(i64,)>> = Insert::into("account", &["id", "owner"])
///     .ending("on conflict (id) do update set owner = excluded.owner returning id");
/// ```
///
/// The rows are sent as one array per column (`insert into … select * from unnest($1::int8[], …)`).
/// The server handles this statement several times faster than one statement per row. A column
/// whose own type is an array cannot be sent in this way. For a table with such a column, use
/// [`Db::run_many`].
#[derive(Debug)]
pub struct Insert<P, R = u64> {
    table: &'static str,
    columns: &'static [&'static str],
    ending: &'static str,
    shape: PhantomData<fn() -> (P, R)>,
}

impl<P, R> Insert<P, R> {
    /// Creates an insert into these columns of a table. The names are written as in SQL.
    #[must_use]
    pub const fn into(table: &'static str, columns: &'static [&'static str]) -> Self {
        Self { table, columns, ending: "", shape: PhantomData }
    }

    /// Adds the clauses that follow the rows, for example `on conflict …` or `returning …`.
    #[must_use]
    pub const fn ending(self, ending: &'static str) -> Self {
        Self { ending, ..self }
    }

    /// Returns a statement that the server describes but does not run. The description contains the
    /// types of the table's columns.
    fn probe(&self) -> String {
        format!("select {} from {}", self.columns.join(", "), self.table)
    }

    fn text(&self, types: &Columns) -> std::result::Result<String, WireError> {
        let mut arrays = String::new();
        for (at, (name, ty)) in types.columns.iter().enumerate() {
            if let TypeKind::Array(_) = ty.kind() {
                let text = format!("column {name:?} is an array; insert_many takes plain columns, use run_many");
                return Err(WireError::encode(text));
            }
            let separator = if at == 0 { "" } else { ", " };
            let (schema, ty) = (quote(ty.schema()), quote(ty.name()));
            let _ = write!(arrays, "{separator}pg_catalog.unnest(${}::{schema}.{ty}[])", at + 1);
        }
        let Self { table, columns, ending, .. } = self;
        Ok(format!("insert into {table} ({}) select * from rows from ({arrays}) {ending}", columns.join(", ")))
    }
}

impl<P: Params, R> Insert<P, R> {
    /// Returns the text of the statement and its parameters. `probe` is the description of the
    /// statement that [`Insert::probe`] returns.
    fn filled(&self, probe: &Prepared, rows: impl IntoIterator<Item = impl Borrow<P>>) -> Result<Filled<R>> {
        let text = self.text(&probe.columns).map_err(|failure| {
            probe.columns.doubt();
            told_to_user(0, &probe.text, failure)
        })?;
        let mut arrays = Arrays::of(&probe.columns);
        arrays.extend::<P>(rows).map_err(|failure| {
            probe.columns.doubt_after(&failure);
            told_to_user(0, &text, failure)
        })?;
        Ok(Filled { text, arrays, shape: PhantomData })
    }
}

impl<R: Rows> Filled<R> {
    /// Runs the statement. If its failure may be one of the types, marks them as outdated, and
    /// returns true with the error: no row was inserted.
    async fn run(self, session: &Session, types: &Columns) -> std::result::Result<R, (Error, bool)> {
        let Self { text, arrays, .. } = self;
        let gather = |prepared: &[Prepared]| {
            let mut group = Group::new();
            arrays.with(|params| group.push(&prepared[0], params)).map(|()| group)
        };
        let outcome = session.together(std::iter::once(&*text), gather).await;
        let (answer, prepared) = outcome.map_err(|failure| {
            let is_of_types = failure.may_be_of_types();
            if is_of_types {
                types.set_outdated();
            }
            (told_to_user(0, &text, failure), is_of_types)
        })?;
        read(&answer, 0, &prepared[0].columns, &text).map_err(|error| (error, false))
    }
}

/// Describes the statement that [`Insert::probe`] returns.
async fn described(session: &Session, probe: &str) -> Result<Prepared> {
    let types = session.connection().prepare(probe).await;
    types.map_err(|failure| told_to_user(0, probe, failure.of_statement(0, probe)))
}

impl Db {
    /// Inserts rows, in order, with one statement in one round trip.
    ///
    /// All rows are in memory at the same time, and twice: as Rust values and in the form that is
    /// sent. The values may take at most 1 GiB together, which is PostgreSQL's limit for one
    /// message. [`Transaction::insert_many`] holds them once.
    ///
    /// # Errors
    /// The errors of [`Db::run`]. If an error occurs, no row is inserted.
    pub async fn insert_many<P: Params, R: Rows>(
        &self,
        insert: &Insert<P, R>,
        rows: impl IntoIterator<Item = P>,
    ) -> Result<R> {
        let rows: Vec<P> = rows.into_iter().collect();
        let (session, probe) = (self.session(Class::Run).await?, insert.probe());
        let was_known = session.connection().prepared(&probe).is_some();
        let types = described(&session, &probe).await?;
        match insert.filled(&types, &rows)?.run(&session, &types.columns).await {
            // Tries again, because no row was inserted: the type of a column no longer exists.
            // Boxed, so that other calls have no room for this.
            Err((_, true)) if was_known => {
                let types = described(&session, &probe).await?;
                let again = Box::pin(insert.filled(&types, &rows)?.run(&session, &types.columns)).await;
                again.map_err(|(error, _)| error)
            }
            outcome => outcome.map_err(|(error, _)| error),
        }
    }
}

impl Transaction {
    /// Inserts rows like [`Db::insert_many`], within this transaction. The statement is queued as
    /// by [`Transaction::send`].
    ///
    /// # Errors
    /// The errors of [`Transaction::send`].
    pub async fn insert_many<P: Params, R: Rows>(
        &self,
        insert: &Insert<P, R>,
        rows: impl IntoIterator<Item = P>,
    ) -> Result<Pending<R>> {
        let types = self.prepared(&insert.probe()).await?;
        let Filled { text, arrays, .. } = insert.filled(&types, rows)?;
        let prepared = self.prepared(&text).await.inspect_err(|_| types.columns.set_outdated())?;
        prepared.columns.names_types_of(types.columns); // if it fails later, they are described again
        self.send(&Statement::of(text), arrays).await
    }
}

/// The text of an insert, and its parameters.
struct Filled<R> {
    text: String,
    arrays: Arrays,
    shape: PhantomData<fn() -> R>,
}

struct Arrays(Vec<Array>);

struct Array {
    element: Type,
    count: i32,
    nulls: bool,
    values: BytesMut,
}

impl Arrays {
    fn of(columns: &Columns) -> Self {
        let array = |ty: &Type| Array { element: ty.clone(), count: 0, nulls: false, values: BytesMut::new() };
        Self(columns.columns.iter().map(|(_, ty)| array(ty)).collect())
    }

    fn extend<P: Params>(
        &mut self,
        rows: impl IntoIterator<Item = impl Borrow<P>>,
    ) -> std::result::Result<(), WireError> {
        for row in rows {
            let row: &P = row.borrow();
            row.with(|values| {
                if values.len() != self.0.len() {
                    let text = format!("a row has {} values for {} columns", values.len(), self.0.len());
                    return Err(WireError::encode(text));
                }
                self.0.iter_mut().zip(values).try_for_each(|(array, value)| array.push(*value))
            })?;
        }
        Ok(())
    }
}

impl Array {
    fn elements(&self) -> Elements<'_> {
        Elements { element: self.element.oid(), count: self.count, nulls: self.nulls, values: &self.values }
    }

    fn push(&mut self, value: &(dyn ToSql + Sync)) -> std::result::Result<(), WireError> {
        let start = self.values.len();
        self.values.put_i32(-1);
        match value.to_sql_checked(&self.element, &mut self.values).map_err(WireError::encode)? {
            IsNull::Yes => self.nulls = true,
            IsNull::No => {
                let length = i32::try_from(self.values.len() - start - 4).map_err(WireError::encode)?;
                self.values[start..start + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        self.count = self.count.checked_add(1).ok_or_else(|| WireError::encode("too many rows"))?;
        Ok(())
    }
}

impl Params for Arrays {
    fn with<R>(&self, write: impl FnOnce(&[&(dyn ToSql + Sync)]) -> R) -> R {
        let columns: Vec<Elements<'_>> = self.0.iter().map(Array::elements).collect();
        let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| column as _).collect();
        write(&columns)
    }
}
