//! Values of Rust that the driver writes and reads.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use postgres_types::{FromSql, FromSqlOwned, ToSql};
use trunkline::Error;

use super::{answer::Answer, case::Meant, transport::Ours};

/// Types of the user's. The fields of a composite type say theirs in every value, so all transports
/// have to share them.
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

/// A value of any type that is known here.
pub trait Known: Send + Sync {
    /// Sends it with a text that answers it, and what it is meant to be, and reads both.
    fn echo<'a>(&'a self, ours: &'a Ours, text: &'a str) -> BoxFuture<'a, Result<Answer, Error>>;
}

impl<T: ToSql + FromSqlOwned + Debug + Send + Sync> Known for T {
    fn echo<'a>(&'a self, ours: &'a Ours, text: &'a str) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let (came, meant) = ours.answer::<(T, T)>(text, &[self]).await?;
            // No float that is none is equal to another, but they look alike; and the two zeros do
            // not.
            let shown = format!("{self:?}");
            assert_eq!((format!("{came:?}"), format!("{meant:?}")), (shown.clone(), shown), "{text}");
            ours.answer(text, &[self]).await
        })
    }
}

/// A value as SQL writes it, and as Rust has it.
pub fn known<T: Known + 'static>(ty: &'static str, literal: &'static str, value: T) -> Meant {
    Meant { ty, literal: Some(literal), known: Some(Box::new(value)) }
}

/// A null that Rust knows by this type.
pub fn null<T: 'static>(ty: &'static str) -> Meant
where
    Option<T>: Known,
{
    Meant { ty, literal: None, known: Some(Box::new(None::<T>)) }
}

/// A value that no type of Rust's is for here: its bytes come as they went.
pub fn as_bytes(ty: &'static str, literal: &'static str) -> Meant {
    Meant { ty, literal: Some(literal), known: None }
}
