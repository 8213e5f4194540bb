use sqlx::{FromRow, PgConnection, Row, postgres::PgRow};
use trunkline_drivers::{Done, Person, Work, texts};

/// A person that the server returned.
pub struct Found(pub Person);

impl FromRow<'_, PgRow> for Found {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self(Person {
            id: row.try_get(0)?,
            name: row.try_get(1)?,
            email: row.try_get(2)?,
            age: row.try_get(3)?,
            score: row.try_get(4)?,
            active: row.try_get(5)?,
        }))
    }
}

pub fn done(found: &[Found], first: i64) -> Done {
    Done::people(found.iter().map(|found| &found.0), first)
}

/// Returns the remaining rows of a turn.
pub async fn left(connection: &mut PgConnection, work: &Work<'_>) -> Result<Done, sqlx::Error> {
    let query = sqlx::query_as::<_, Found>(texts::LEFT).bind(work.first).bind(work.end());
    Ok(done(&query.fetch_all(connection).await?, work.first))
}
