//! A transaction of sqlx 0.9.

use sqlx::{
    AssertSqlSafe, Encode, PgConnection, Postgres, Row, Type, ValueRef,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgRow, PgTypeInfo, types::Oid},
};
use tokio::sync::Mutex;
use trunkline::{Bytes, postgres::ForeignTransaction};

use crate::{Cell, Failed};

/// A transaction of sqlx: `InSqlx::new(&mut transaction)`.
pub struct InSqlx<'a>(Mutex<&'a mut PgConnection>);

impl<'a> InSqlx<'a> {
    pub fn new(transaction: &'a mut PgConnection) -> Self {
        Self(Mutex::new(transaction))
    }
}

impl ForeignTransaction for InSqlx<'_> {
    async fn fetch_binary(&self, statement: &str, params: &[Cell]) -> Result<Vec<Vec<Cell>>, Failed> {
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for (oid, value) in params {
            query = query.bind(Binary { oid: *oid, value: value.clone() });
        }
        let rows = query.fetch_all(&mut **self.0.lock().await).await?;
        rows.iter().map(cells).collect()
    }
}

fn cells(row: &PgRow) -> Result<Vec<Cell>, Failed> {
    (0..row.len())
        .map(|at| {
            let value = row.try_get_raw(at)?;
            let oid = value.type_info().oid().map_or(0, |oid| oid.0);
            let bytes = if value.is_null() { None } else { Some(Bytes::copy_from_slice(value.as_bytes()?)) };
            Ok((oid, bytes))
        })
        .collect()
}

/// A parameter that is already encoded.
struct Binary {
    oid: u32,
    value: Option<Bytes>,
}

impl Type<Postgres> for Binary {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0)) // each value names its own type
    }
}

impl Encode<'_, Postgres> for Binary {
    fn encode_by_ref(&self, out: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let Some(value) = &self.value else { return Ok(IsNull::Yes) };
        out.extend_from_slice(value);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.oid)))
    }
}
