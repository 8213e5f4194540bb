//! Rust values that the driver encodes and decodes.

use std::{error::Error, fmt::Debug};

use bytes::{BufMut, BytesMut};
use futures_util::future::BoxFuture;
use postgres_types::{FromSql, FromSqlOwned, IsNull, ToSql, Type, to_sql_checked};

use super::{answer::Answer, case::Meant, transport::Ours};

/// User-defined types. A composite value contains the oids of its fields, so all transports must
/// share these types.
pub const TYPES: &str = "
    create type mood as enum ('glad', 'very_sad', 'so lala');
    create domain email as text check (value ~ '@');
    create domain small as int2 check (value < 100);
    create type pair as (first int4, second mood[]);
    create type contact as (who text, mail email, pairs pair[], age small);
    create extension hstore;
    create extension citext;
    create extension ltree;
    create type vector;
    create function vector_in(cstring) returns vector language internal immutable strict as 'byteain';
    create function vector_out(vector) returns cstring language internal immutable strict as 'byteaout';
    create function vector_recv(internal) returns vector language internal immutable strict as 'bytearecv';
    create function vector_send(vector) returns bytea language internal immutable strict as 'byteasend';
    create type vector (input = vector_in, output = vector_out, receive = vector_recv, send = vector_send);
";

/// A value of pgvector's type. pgvector itself is not part of PostgreSQL. So the tests have their
/// own type `vector`, with the same binary form and the text form of `bytea`.
#[derive(Debug)]
pub struct Embedding(pub Vec<f32>);

impl ToSql for Embedding {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Wrong> {
        out.put_u16(self.0.len().try_into()?);
        out.put_u16(0);
        self.0.iter().for_each(|number| out.put_f32(*number));
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        ty.name() == "vector"
    }

    to_sql_checked!();
}

impl FromSql<'_> for Embedding {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Wrong> {
        let numbers = raw.get(4..).ok_or("a vector begins with four bytes")?;
        let number = |bytes: &[u8]| Ok(f32::from_be_bytes(bytes.try_into()?));
        numbers.chunks(4).map(number).collect::<Result<_, Wrong>>().map(Self)
    }

    fn accepts(ty: &Type) -> bool {
        ty.name() == "vector"
    }
}

type Wrong = Box<dyn Error + Send + Sync>;

#[derive(Debug, Clone, ToSql, FromSql)]
#[postgres(name = "mood", rename_all = "snake_case")]
pub enum Mood {
    Glad,
    VerySad,
    #[postgres(name = "so lala")]
    SoLala,
}

#[derive(Debug, ToSql, FromSql)]
#[postgres(name = "pair")]
pub struct Pair {
    pub first: Option<i32>,
    pub second: Vec<Option<Mood>>,
}

#[derive(Debug, ToSql, FromSql)]
#[postgres(name = "email")]
pub struct Email(pub String);

#[derive(Debug, ToSql, FromSql)]
#[postgres(name = "small")]
pub struct Small(pub i16);

#[derive(Debug, ToSql, FromSql)]
#[postgres(name = "contact")]
pub struct Contact {
    pub who: String,
    pub mail: Option<Email>,
    pub pairs: Vec<Pair>,
    pub age: Small,
}

/// A Rust value of any type that the driver supports here.
pub trait Known: Send + Sync {
    /// Sends the value with a statement that returns it next to the expected value, and decodes
    /// both.
    fn echo<'a>(&'a self, ours: &'a Ours, text: &'a str) -> BoxFuture<'a, Result<Answer, trunkline::Error>>;
}

impl<T: ToSql + FromSqlOwned + Debug + Send + Sync> Known for T {
    fn echo<'a>(&'a self, ours: &'a Ours, text: &'a str) -> BoxFuture<'a, Result<Answer, trunkline::Error>> {
        Box::pin(async move {
            let (came, meant) = ours.answer::<(T, T)>(text, &[self]).await?;
            // Compares the printed forms. NaN is not equal to itself but prints identically, and
            // the two zeros print differently.
            let shown = format!("{self:?}");
            assert_eq!((format!("{came:?}"), format!("{meant:?}")), (shown.clone(), shown), "{text}");
            ours.answer(text, &[self]).await
        })
    }
}

/// Describes a value as SQL writes it, and as a Rust value.
pub fn known<T: Known + 'static>(ty: &'static str, literal: &'static str, value: T) -> Meant {
    Meant { ty, literal: Some(literal), known: Some(Box::new(value)) }
}

/// Describes a null of this Rust type.
pub fn null<T: 'static>(ty: &'static str) -> Meant
where
    Option<T>: Known,
{
    Meant { ty, literal: None, known: Some(Box::new(None::<T>)) }
}

/// Describes a value without a Rust type here. Its bytes must come back unchanged.
pub fn as_bytes(ty: &'static str, literal: &'static str) -> Meant {
    Meant { ty, literal: Some(literal), known: None }
}
