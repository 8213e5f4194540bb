use tokio_postgres::{Error, Row};

use crate::person::Person;

pub fn person(row: &Row) -> Result<Person, Error> {
    Ok(Person {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        email: row.try_get(2)?,
        age: row.try_get(3)?,
        score: row.try_get(4)?,
        active: row.try_get(5)?,
    })
}

pub fn people(rows: &[Row]) -> Result<Vec<Person>, Error> {
    rows.iter().map(person).collect()
}
