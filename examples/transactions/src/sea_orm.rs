//! A transaction of sea-orm 1.1, which binds values of its own types only: bytes, text, integers,
//! floating-point numbers, booleans and UUIDs, and arrays of them without nulls. An array with nulls
//! is bound as text and cast. JSON is, too, because sea-orm's own type rounds long numbers. A queue
//! with a payload of any other type returns an error.

use postgres_types::{FromSql, Type};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, Statement, Value,
    prelude::{DateTimeUtc, Uuid},
    sea_query::{Nullable, ValueType},
    sqlx::{Row, ValueRef, postgres::PgRow},
};
use trunkline::{Bytes, postgres::ForeignTransaction};

use crate::{Cell, Failed};

/// A transaction of sea-orm: `InSeaOrm(&transaction)`.
pub struct InSeaOrm<'a>(pub &'a DatabaseTransaction);

impl ForeignTransaction for InSeaOrm<'_> {
    async fn fetch_binary(&self, statement: &str, params: &[Cell]) -> Result<Vec<Vec<Cell>>, Failed> {
        let (mut values, mut casts) = (Vec::new(), Vec::new());
        for param in params {
            let (value, cast) = value(param)?;
            values.push(value);
            casts.push(cast);
        }
        let statement = with_casts(statement, &casts);
        let statement = Statement::from_sql_and_values(self.0.get_database_backend(), statement, values);
        let rows = self.0.query_all(statement).await?;
        rows.iter().map(|row| cells(row.try_as_pg_row().ok_or("this is no PostgreSQL")?)).collect()
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

/// A value of sea-orm, and the type to which the statement casts it if it is bound as text.
type Bound = (Value, Option<Type>);

/// Converts a parameter to a value of sea-orm.
fn value((oid, value): &Cell) -> Result<Bound, Failed> {
    let Some(ty) = Type::from_oid(*oid) else { return Err(unknown(&oid.to_string())) };
    let value = value.as_deref();
    match ty {
        Type::BOOL => one::<bool>(&ty, value),
        Type::INT2 => one::<i16>(&ty, value),
        Type::INT4 => one::<i32>(&ty, value),
        Type::INT8 => one::<i64>(&ty, value),
        Type::FLOAT8 => one::<f64>(&ty, value),
        Type::TEXT => one::<String>(&ty, value),
        Type::JSONB => {
            let json = Option::<JsonText>::from_sql_nullable(&ty, value)?;
            Ok((json.map(|json| json.0).into(), Some(ty)))
        }
        Type::UUID => one::<Uuid>(&ty, value),
        Type::TIMESTAMPTZ => time(&ty, value),
        Type::BOOL_ARRAY => many::<bool>(ty, value),
        Type::INT2_ARRAY => many::<i16>(ty, value),
        Type::INT4_ARRAY => many::<i32>(ty, value),
        Type::INT8_ARRAY => many::<i64>(ty, value),
        Type::FLOAT8_ARRAY => many::<f64>(ty, value),
        Type::TEXT_ARRAY => many::<String>(ty, value),
        Type::JSONB_ARRAY => {
            let all = Option::<Vec<Option<JsonText>>>::from_sql_nullable(&ty, value)?;
            let texts = all.map(|all| array(all.into_iter().map(|json| json.map(|json| json.0))));
            Ok((texts.into(), Some(ty)))
        }
        Type::UUID_ARRAY => many::<Uuid>(ty, value),
        Type::BYTEA_ARRAY => Ok((Option::<Vec<Vec<u8>>>::from_sql_nullable(&ty, value)?.into(), None)),
        _ => Err(unknown(ty.name())),
    }
}

fn one<'a, T: FromSql<'a> + Into<Value> + Nullable>(ty: &Type, value: Option<&'a [u8]>) -> Result<Bound, Failed> {
    Ok((Option::<T>::from_sql_nullable(ty, value)?.into(), None))
}

/// Converts a time. The library passes -infinity as the lower limit of a search. Sea-orm has no
/// infinity, so the start of the year 1 replaces it.
fn time(ty: &Type, value: Option<&[u8]>) -> Result<Bound, Failed> {
    match value {
        Some(value) if value == i64::MIN.to_be_bytes() => {
            Ok(("0001-01-01T00:00:00Z".parse::<DateTimeUtc>()?.into(), None))
        }
        _ => one::<DateTimeUtc>(ty, value),
    }
}

fn many<'a, T>(ty: Type, value: Option<&'a [u8]>) -> Result<Bound, Failed>
where
    T: FromSql<'a> + Into<Value> + ValueType + ToString,
{
    let Some(value) = value else { return Ok((Value::Array(T::array_type(), None), None)) };
    let all = Vec::<Option<T>>::from_sql(&ty, value)?;
    if all.iter().any(Option::is_none) {
        return Ok((array(all.into_iter().map(|value| value.map(|value| value.to_string()))).into(), Some(ty)));
    }
    let all = all.into_iter().flatten().map(Into::into).collect();
    Ok((Value::Array(T::array_type(), Some(Box::new(all))), None))
}

/// Returns an array in PostgreSQL's text format.
fn array(values: impl Iterator<Item = Option<String>>) -> String {
    let quoted = |text: String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let texts = values.map(|value| value.map_or("null".to_owned(), quoted));
    format!("{{{}}}", texts.collect::<Vec<_>>().join(","))
}

/// The text of a `jsonb`, which follows its version in the binary format.
struct JsonText(String);

impl<'a> FromSql<'a> for JsonText {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Failed> {
        match raw.split_first() {
            Some((1, text)) => Ok(Self(String::from_sql(&Type::TEXT, text)?)),
            _ => Err(format!("unknown format of {ty}").into()),
        }
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }
}

/// Casts the parameters that are bound as text: for example, `$3` becomes `$3::text::int4[]`.
fn with_casts(statement: &str, casts: &[Option<Type>]) -> String {
    let mut parts = statement.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let number = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let cast = part[..number].parse().ok().and_then(|nr: usize| casts.get(nr.checked_sub(1)?)?.as_ref());
        let cast = cast.map(|ty| match ty.name().strip_prefix('_') {
            Some(element) => format!("::text::{element}[]"),
            None => format!("::text::{}", ty.name()),
        });
        let cast = cast.unwrap_or_default();
        text = format!("{text}${}{cast}{}", &part[..number], &part[number..]);
    }
    text
}

fn unknown(ty: &str) -> Failed {
    format!("sea-orm cannot bind the type {ty}: use a queue of bytea, text, jsonb, uuid, bool, float8 or an integer")
        .into()
}
