use tokio_postgres::types::ToSql;
use trunkline::postgres::{FromRow, Values};

/// A row that the workloads read and write.
#[derive(Debug, Clone, PartialEq)]
pub struct Person {
    /// The row's id.
    pub id: i64,
    /// A text of about 20 bytes.
    pub name: String,
    /// A text of about 30 bytes.
    pub email: String,
    /// The age in years.
    pub age: i32,
    /// A number with a fractional part.
    pub score: f64,
    /// A flag that is true for every third person.
    pub active: bool,
}

impl FromRow for Person {
    fn from_row(row: &mut Values<'_>) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self {
            id: row.read()?,
            name: row.read()?,
            email: row.read()?,
            age: row.read()?,
            score: row.read()?,
            active: row.read()?,
        })
    }
}

impl Person {
    /// Returns `count` people with ids from 0. They are the same in every run.
    #[must_use]
    pub fn all(count: usize) -> Vec<Self> {
        let person = |k: usize| Self {
            id: k as i64,
            name: format!("Ada Lovelace the {k}th"),
            email: format!("ada.lovelace.{k}@example.org"),
            age: 20 + (k % 60) as i32,
            score: k as f64 / 7.0,
            active: k.is_multiple_of(3),
        };
        (0..count).map(person).collect()
    }

    /// Returns the columns as parameters.
    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.id, &self.name, &self.email, &self.age, &self.score, &self.active]
    }

    /// Returns a number that depends on every column, so that every column has to be decoded.
    #[must_use]
    pub fn sum(&self) -> i64 {
        let lengths = self.name.len() + self.email.len();
        self.id + lengths as i64 + i64::from(self.age) + self.score as i64 + i64::from(self.active)
    }
}
