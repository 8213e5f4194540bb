use futures_util::TryStreamExt;
use sqlx::{Connection, PgConnection, Postgres, postgres::PgArguments, query::Query};
use tokio::sync::Mutex;
use trunkline_drivers::{Doing, Done, Driver, Kind, Person, Work, texts};

use super::found::{Found, done, left};

/// Awaits each statement. Writes form one transaction.
pub struct Sequence(pub Mutex<PgConnection>);

impl Driver for Sequence {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move {
            let connection = &mut *self.0.lock().await;
            if work.kind == Kind::Transfers {
                return Ok(Some(transfers(connection, work).await?));
            }
            if !work.kind.writes() {
                return Ok(Some(read(connection, work).await?));
            }
            let mut transaction = connection.begin().await?;
            let done = write(&mut transaction, work).await?;
            transaction.commit().await?;
            Ok(Some(done))
        })
    }
}

/// Binds all columns, including the id.
fn row<'q>(text: &'static str, (id, person): (i64, &'q Person)) -> Query<'q, Postgres, PgArguments> {
    columns(sqlx::query(text).bind(id), person)
}

fn columns<'q>(query: Query<'q, Postgres, PgArguments>, person: &'q Person) -> Query<'q, Postgres, PgArguments> {
    query.bind(&*person.name).bind(&*person.email).bind(person.age).bind(person.score).bind(person.active)
}

async fn read(connection: &mut PgConnection, work: &Work<'_>) -> Result<Done, sqlx::Error> {
    let mut all = Done::default();
    match work.kind {
        Kind::Select => {
            for id in work.ids() {
                let number: i64 = sqlx::query_scalar(texts::SELECT).bind(id).fetch_one(&mut *connection).await?;
                all = all.and(Done::numbers([number - work.first]));
            }
        }
        Kind::Get => {
            for id in work.known() {
                let found: Found = sqlx::query_as(texts::GET).bind(id).fetch_one(&mut *connection).await?;
                all = all.and(done(&[found], 0));
            }
        }
        Kind::In => {
            for ids in work.lists() {
                let found: Vec<Found> = sqlx::query_as(texts::IN).bind(ids).fetch_all(&mut *connection).await?;
                all = all.and(done(&found, 0));
            }
        }
        Kind::List => {
            for team in work.teams() {
                let found: Vec<Found> = sqlx::query_as(texts::LIST).bind(team).fetch_all(&mut *connection).await?;
                all = all.and(done(&found, 0));
            }
        }
        Kind::Results => {
            let found: Vec<Found> = sqlx::query_as(texts::RESULTS).fetch_all(connection).await?;
            all = done(&found, 0);
        }
        Kind::Stream => {
            let mut rows = sqlx::query_as::<_, Found>(texts::STREAM).fetch(connection);
            while let Some(found) = rows.try_next().await? {
                all = all.and(done(&[found], 0));
            }
        }
        Kind::ManyParameters => {
            let query = sqlx::query(texts::MANY_PARAMETERS.as_str());
            let query = work.many().iter().fold(query, |query, person| columns(query.bind(person.id), person));
            all = Done::touched(u64::from(query.fetch_optional(connection).await?.is_some()));
        }
        _ => {
            for person in work.rows() {
                let none = row(texts::PARAMETERS, person).fetch_optional(&mut *connection).await?;
                all = all.and(Done::touched(u64::from(none.is_some())));
            }
        }
    }
    Ok(all)
}

async fn write(connection: &mut PgConnection, work: &Work<'_>) -> Result<Done, sqlx::Error> {
    let mut affected = 0;
    match work.kind {
        Kind::Insert | Kind::InsertMany => {
            for person in &work.people[..work.count] {
                let query = sqlx::query_scalar::<_, i64>(texts::INSERT).bind(&*person.name).bind(&*person.email);
                let query = query.bind(person.age).bind(person.score).bind(person.active);
                query.fetch_one(&mut *connection).await?;
                affected += 1;
            }
        }
        Kind::Append => {
            for person in &work.people[..work.count] {
                let query = sqlx::query(texts::APPEND).bind(person.id).bind(&*person.name);
                affected += query.execute(&mut *connection).await?.rows_affected();
            }
        }
        Kind::Delete | Kind::DeleteThenSelect => {
            for id in work.others() {
                affected += sqlx::query(texts::DELETE).bind(id).execute(&mut *connection).await?.rows_affected();
            }
            if work.kind == Kind::Delete {
                return Ok(Done::touched(affected));
            }
            return left(connection, work).await;
        }
        Kind::MixedThenSelect => {
            for (k, (id, person)) in work.rows().enumerate() {
                let query = match k % 4 {
                    0 => row(texts::ADD, (id, person)),
                    1 => sqlx::query(texts::UPDATE).bind(id).bind(person.age),
                    2 => sqlx::query(texts::DELETE).bind(id),
                    _ => row(texts::UPSERT, (id, person)),
                };
                query.execute(&mut *connection).await?;
            }
            return left(connection, work).await;
        }
        Kind::DeleteWhere => {
            for id in work.starts() {
                let query = sqlx::query(texts::DELETE_WHERE).bind(id).bind(id + 3);
                affected += query.execute(&mut *connection).await?.rows_affected();
            }
        }
        kind => {
            for (id, person) in work.rows() {
                let query = match kind {
                    Kind::Upsert => row(texts::UPSERT, (id, person)),
                    Kind::Replace => row(texts::REPLACE, (id, person)),
                    _ => sqlx::query(texts::UPDATE).bind(id).bind(person.age),
                };
                affected += query.execute(&mut *connection).await?.rows_affected();
            }
        }
    }
    Ok(Done::touched(affected))
}

async fn transfers(connection: &mut PgConnection, work: &Work<'_>) -> Result<Done, sqlx::Error> {
    let mut all = Done::default();
    for (from, to, sum) in work.transfers() {
        let mut transaction = connection.begin().await?;
        let taken: i64 = sqlx::query_scalar(texts::TAKE).bind(from).bind(sum).fetch_one(&mut *transaction).await?;
        let given: i64 = sqlx::query_scalar(texts::GIVE).bind(to).bind(sum).fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        all = all.and(Done::numbers([taken, given]));
    }
    Ok(all)
}
