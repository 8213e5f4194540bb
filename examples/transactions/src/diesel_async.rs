//! A transaction of diesel-async 0.9.

use diesel::{
    QueryResult, QueryableByName,
    deserialize::Result as Deserialized,
    pg::{Pg, PgTypeMetadata},
    query_builder::QueryId,
    row::{Field, NamedRow, Row},
    serialize::{IsNull, Output, Result as Serialized, ToSql},
    sql_types::{HasSqlType, TypeMetadata},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use tokio::sync::Mutex;
use trunkline::{Bytes, postgres::ForeignTransaction};

use crate::{Cell, Failed};

/// A transaction of diesel-async: `InDiesel::new(connection)`, with the connection that
/// `AsyncConnection::transaction` passes to its closure.
pub struct InDiesel<'a>(Mutex<&'a mut AsyncPgConnection>);

impl<'a> InDiesel<'a> {
    pub fn new(transaction: &'a mut AsyncPgConnection) -> Self {
        Self(Mutex::new(transaction))
    }
}

impl ForeignTransaction for InDiesel<'_> {
    async fn fetch_binary(&self, statement: &str, params: &[Cell]) -> Result<Vec<Vec<Cell>>, Failed> {
        let mut query = diesel::sql_query(statement).into_boxed::<Pg>();
        for (_, value) in params {
            query = query.bind::<Inferred, _>(Binary(value.clone()));
        }
        let rows: QueryResult<Vec<Cells>> = query.load(&mut **self.0.lock().await).await;
        Ok(rows?.into_iter().map(|Cells(cells)| cells).collect())
    }
}

/// A row with its values as the server sent them.
struct Cells(Vec<Cell>);

impl QueryableByName<Pg> for Cells {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> Deserialized<Self> {
        let cell = |at| {
            let field = Row::get(row, at).ok_or("a row is shorter than it says")?;
            let value = field.value();
            // Diesel does not report the type of a null.
            Ok(value.map_or((0, None), |value| (value.get_oid().get(), Some(Bytes::copy_from_slice(value.as_bytes())))))
        };
        (0..row.field_count()).map(cell).collect::<Deserialized<_>>().map(Self)
    }
}

/// The type of a parameter that the server infers from the statement: its OID is 0.
#[derive(QueryId)]
struct Inferred;

impl HasSqlType<Inferred> for Pg {
    fn metadata(_: &mut <Self as TypeMetadata>::MetadataLookup) -> PgTypeMetadata {
        PgTypeMetadata::new(0, 0)
    }
}

/// A parameter that is already encoded.
#[derive(Debug)]
struct Binary(Option<Bytes>);

impl ToSql<Inferred, Pg> for Binary {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> Serialized {
        let Some(value) = &self.0 else { return Ok(IsNull::Yes) };
        std::io::Write::write_all(out, value)?;
        Ok(IsNull::No)
    }
}
