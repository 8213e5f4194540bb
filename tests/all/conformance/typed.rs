//! Rust values that the driver encodes and decodes.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use postgres_types::{FromSql, FromSqlOwned, ToSql};
use trunkline::Error;

use super::{answer::Answer, case::Meant, transport::Ours};

/// User-defined types. A composite value contains the oids of its fields, so all transports must
/// share these types.
pub const TYPES: &str = "
    create type mood as enum ('glad', 'very_sad', 'so lala');
    create domain email as text check (value ~ '@');
    create domain small as int2 check (value < 100);
    create type pair as (first int4, second mood[]);
    create type contact as (who text, mail email, pairs pair[], age small);
";

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
    /// Sends the value with a statement that returns it next to the expected one, and decodes both.
    fn echo<'a>(&'a self, ours: &'a Ours, text: &'a str) -> BoxFuture<'a, Result<Answer, Error>>;
}

impl<T: ToSql + FromSqlOwned + Debug + Send + Sync> Known for T {
    fn echo<'a>(&'a self, ours: &'a Ours, text: &'a str) -> BoxFuture<'a, Result<Answer, Error>> {
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

/// Describes a value that has no Rust type here: its bytes must come back unchanged.
pub fn as_bytes(ty: &'static str, literal: &'static str) -> Meant {
    Meant { ty, literal: Some(literal), known: None }
}
