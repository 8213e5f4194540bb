//! Tests the types that the guide lists. A value without a Rust type causes an error that names a
//! remedy, and the remedies work.

use std::error::Error;

use postgres_types::{FromSql, Type};
use trunkline::{Db, postgres::Statement};

use crate::fixture::db;

/// An anonymous record, which the caller's own type decodes.
#[derive(Debug, PartialEq)]
struct Entry(i32, String);

impl FromSql<'_> for Entry {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        // The record starts with the number of fields. Each field has a type, a length and bytes.
        let (_, fields) = raw.split_first_chunk::<12>().ok_or("the record ends early")?;
        let (number, rest) = fields.split_first_chunk::<4>().ok_or("the number ends early")?;
        let word = rest.get(8..).ok_or("the record ends early")?;
        Ok(Self(i32::from_be_bytes(*number), String::from_utf8(word.to_vec())?))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::RECORD
    }
}

async fn as_text(db: &Db, expression: &str) -> Result<String, String> {
    let statement = Statement::<(), (String,)>::of(format!("select {expression} as c"));
    db.run(&statement, ()).await.map(|(text,)| text).map_err(|error| error.to_string())
}

#[tokio::test]
async fn value_without_a_rust_type_is_an_error_with_a_remedy() {
    let db = db().await;
    for (expression, ty, text) in [
        ("'{[1,3),[5,7)}'::int4multirange", "int4multirange", "{[1,3),[5,7)}"),
        ("row(1, 'a b')", "record", "(1,\"a b\")"),
        ("1.50::numeric", "numeric", "1.50"),
        ("'[1,3)'::int4range", "int4range", "[1,3)"),
    ] {
        let error = as_text(&db, expression).await.expect_err("a text is not expected");
        assert!(
            error.contains("column \"c\": ") && error.contains(&format!("`{ty}`; cast it in the statement")),
            "{error}"
        );
        assert_eq!(as_text(&db, &format!("({expression})::text")).await.as_deref(), Ok(text));
    }
    let given = Statement::<(&str,), (String,)>::new("select lower($1::int4multirange)::text");
    let error = db.run(&given, ("{[1,3)}",)).await.expect_err("a text is not accepted").to_string();
    assert!(error.contains("pass a text and cast it in the statement"), "{error}");
    let cast = Statement::<(&str,), (String,)>::new("select lower($1::text::int4multirange)::text");
    assert_eq!(db.run(&cast, ("{[1,3)}",)).await.expect("read").0, "1");
    let record = Statement::<(), (Entry,)>::new("select row(7, 'seven'::text)");
    assert_eq!(db.run(&record, ()).await.expect("read").0, Entry(7, "seven".to_owned()));
}
