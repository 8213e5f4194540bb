use diesel::{
    backend::Backend,
    deserialize::{self, FromStaticSqlRow, Queryable},
    prelude::*,
    sql_types::BigInt,
    sql_types::{Bool, Double, Integer, Text},
};
use trunkline_drivers::{Done, Person};

use super::tables::person;

type Columns = (BigInt, Text, Text, Integer, Double, Bool);
type Values = (i64, String, String, i32, f64, bool);

/// A person that the server returned.
pub struct Found(pub Person);

impl<DB: Backend> Queryable<Columns, DB> for Found
where
    Values: FromStaticSqlRow<Columns, DB>,
{
    type Row = Values;

    fn build((id, name, email, age, score, active): Values) -> deserialize::Result<Self> {
        Ok(Self(Person { id, name, email, age, score, active }))
    }
}

pub fn done<'a>(found: impl IntoIterator<Item = &'a Found>, first: i64) -> Done {
    Done::people(found.into_iter().map(|found| &found.0), first)
}

/// A row whose id the server assigns.
#[derive(Insertable)]
// Passes every column, because diesel does not keep a statement prepared if its columns may be left
// to their defaults.
#[diesel(table_name = person, treat_none_as_default_value = false)]
pub struct New<'a> {
    name: &'a str,
    email: &'a str,
    age: i32,
    score: f64,
    active: bool,
}

impl<'a> New<'a> {
    pub fn of(person: &'a Person) -> Self {
        let Person { name, email, age, score, active, .. } = person;
        Self { name, email, age: *age, score: *score, active: *active }
    }
}

/// A row whose id the client assigns.
#[derive(Insertable, AsChangeset)]
// Passes every column, because diesel does not keep a statement prepared if its columns may be left
// to their defaults.
#[diesel(table_name = person, treat_none_as_default_value = false)]
pub struct Whole<'a> {
    id: i64,
    name: &'a str,
    email: &'a str,
    age: i32,
    score: f64,
    active: bool,
}

impl<'a> Whole<'a> {
    pub fn of((id, person): (i64, &'a Person)) -> Self {
        let Person { name, email, age, score, active, .. } = person;
        Self { id, name, email, age: *age, score: *score, active: *active }
    }
}
