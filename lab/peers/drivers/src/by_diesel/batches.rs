use diesel::{prelude::*, upsert::excluded};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use trunkline_drivers::{Doing, Done, Driver, Kind, Work};

use super::{
    rows::{Found, New, Whole, done},
    tables::{entry, person, roster},
    write::left,
};

/// Runs one statement for all rows: diesel's batch inserts (`values (…), (…)`) and `eq_any`.
pub struct Batches(pub AsyncPgConnection);

impl Driver for Batches {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move { Ok(self.work(work).await?) })
    }
}

impl Batches {
    async fn work(&self, work: &Work<'_>) -> QueryResult<Option<Done>> {
        let mut connection = &self.0;
        Ok(Some(match work.kind {
            Kind::Get => {
                let columns = (roster::id, roster::name, roster::email, roster::age, roster::score, roster::active);
                let rows = roster::table.filter(roster::id.eq_any(work.known())).select(columns);
                done(&rows.load::<Found>(&mut connection).await?, 0)
            }
            Kind::Insert | Kind::InsertMany => {
                let rows: Vec<New<'_>> = work.people[..work.count].iter().map(New::of).collect();
                let insert = diesel::insert_into(person::table).values(rows).returning(person::id);
                Done::touched(insert.get_results::<i64>(&mut connection).await?.len() as u64)
            }
            Kind::Append => {
                let rows = work.people[..work.count].iter().map(|row| (entry::n.eq(row.id), entry::word.eq(&row.name)));
                let insert = diesel::insert_into(entry::table).values(rows.collect::<Vec<_>>());
                Done::touched(insert.execute(&mut connection).await? as u64)
            }
            Kind::Upsert => {
                let rows: Vec<Whole<'_>> = work.rows().map(Whole::of).collect();
                let upsert = diesel::insert_into(person::table).values(rows).on_conflict(person::id).do_update();
                let columns = (
                    person::name.eq(excluded(person::name)),
                    person::email.eq(excluded(person::email)),
                    person::age.eq(excluded(person::age)),
                    person::score.eq(excluded(person::score)),
                    person::active.eq(excluded(person::active)),
                );
                Done::touched(upsert.set(columns).execute(&mut connection).await? as u64)
            }
            Kind::Delete => {
                let ids: Vec<i64> = work.others().collect();
                let delete = diesel::delete(person::table.filter(person::id.eq_any(ids)));
                Done::touched(delete.execute(&mut connection).await? as u64)
            }
            Kind::DeleteThenSelect => {
                let ids: Vec<i64> = work.others().collect();
                connection.batch_execute("BEGIN").await?;
                diesel::delete(person::table.filter(person::id.eq_any(ids))).execute(&mut connection).await?;
                let left = left(connection, work.first, work.end()).await?;
                connection.batch_execute("COMMIT").await?;
                left
            }
            _ => return Ok(None),
        }))
    }
}
