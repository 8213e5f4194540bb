use sqlx::{Connection, PgConnection};
use tokio::sync::Mutex;
use trunkline_drivers::{Doing, Done, Driver, Kind, Work, texts};

use super::found::{Found, done, left};

/// Runs one statement for all rows, with `unnest` and `any`, as sqlx's FAQ recommends.
pub struct Arrays(pub Mutex<PgConnection>);

impl Driver for Arrays {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move {
            let connection = &mut *self.0.lock().await;
            if work.kind == Kind::DeleteThenSelect {
                let mut transaction = connection.begin().await?;
                let ids: Vec<i64> = work.others().collect();
                sqlx::query(texts::DELETE_ARRAY).bind(ids).execute(&mut *transaction).await?;
                let left = left(&mut transaction, work).await?;
                transaction.commit().await?;
                return Ok(Some(left));
            }
            Ok(all(connection, work).await?)
        })
    }
}

async fn all(connection: &mut PgConnection, work: &Work<'_>) -> Result<Option<Done>, sqlx::Error> {
    let people = &work.people[..work.count];
    let ids = || work.ids().collect::<Vec<i64>>();
    let names = || people.iter().map(|person| &*person.name).collect::<Vec<&str>>();
    let emails = || people.iter().map(|person| &*person.email).collect::<Vec<&str>>();
    let ages = || people.iter().map(|person| person.age).collect::<Vec<i32>>();
    let scores = || people.iter().map(|person| person.score).collect::<Vec<f64>>();
    let active = || people.iter().map(|person| person.active).collect::<Vec<bool>>();
    Ok(Some(match work.kind {
        Kind::Get => {
            let found: Vec<Found> = sqlx::query_as(texts::IN).bind(work.known()).fetch_all(connection).await?;
            done(&found, 0)
        }
        Kind::Insert | Kind::InsertMany => {
            let query = sqlx::query_scalar::<_, i64>(texts::INSERT_ARRAYS).bind(names()).bind(emails());
            let query = query.bind(ages()).bind(scores()).bind(active());
            Done::touched(query.fetch_all(connection).await?.len() as u64)
        }
        Kind::Append => {
            let numbers: Vec<i64> = people.iter().map(|person| person.id).collect();
            let query = sqlx::query(texts::APPEND_ARRAYS).bind(numbers).bind(names());
            Done::touched(query.execute(connection).await?.rows_affected())
        }
        Kind::Upsert | Kind::Replace => {
            let text = if work.kind == Kind::Upsert { texts::UPSERT_ARRAYS } else { texts::REPLACE_ARRAYS };
            let query = sqlx::query(text).bind(ids()).bind(names()).bind(emails());
            let query = query.bind(ages()).bind(scores()).bind(active());
            Done::touched(query.execute(connection).await?.rows_affected())
        }
        Kind::Update => {
            let query = sqlx::query(texts::UPDATE_ARRAYS).bind(ids()).bind(ages());
            Done::touched(query.execute(connection).await?.rows_affected())
        }
        Kind::Delete => {
            let query = sqlx::query(texts::DELETE_ARRAY).bind(work.others().collect::<Vec<i64>>());
            Done::touched(query.execute(connection).await?.rows_affected())
        }
        _ => return Ok(None),
    }))
}
