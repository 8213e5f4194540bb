use diesel::{prelude::*, upsert::excluded};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures_util::future::try_join;
use trunkline_drivers::{Done, Kind, Person, Work};

use super::{
    each::Each,
    rows::{Found, New, Whole, done},
    tables::{account, entry, person},
};

async fn add(mut connection: &AsyncPgConnection, row: (i64, &Person)) -> QueryResult<usize> {
    diesel::insert_into(person::table).values(Whole::of(row)).execute(&mut connection).await
}

async fn upsert(mut connection: &AsyncPgConnection, row: (i64, &Person)) -> QueryResult<usize> {
    let upsert = diesel::insert_into(person::table).values(Whole::of(row)).on_conflict(person::id).do_update();
    let columns = (
        person::name.eq(excluded(person::name)),
        person::email.eq(excluded(person::email)),
        person::age.eq(excluded(person::age)),
        person::score.eq(excluded(person::score)),
        person::active.eq(excluded(person::active)),
    );
    upsert.set(columns).execute(&mut connection).await
}

async fn update(mut connection: &AsyncPgConnection, (id, row): (i64, &Person)) -> QueryResult<usize> {
    diesel::update(person::table.find(id)).set(person::age.eq(row.age)).execute(&mut connection).await
}

async fn replace(mut connection: &AsyncPgConnection, (id, row): (i64, &Person)) -> QueryResult<usize> {
    diesel::update(person::table.find(id)).set(Whole::of((id, row))).execute(&mut connection).await
}

async fn delete(mut connection: &AsyncPgConnection, id: i64) -> QueryResult<usize> {
    diesel::delete(person::table.find(id)).execute(&mut connection).await
}

/// Returns the remaining rows of a turn.
pub async fn left(mut connection: &AsyncPgConnection, first: i64, end: i64) -> QueryResult<Done> {
    let rows = person::table.filter(person::id.ge(first).and(person::id.lt(end)));
    Ok(done(&rows.load::<Found>(&mut connection).await?, first))
}

async fn moved(mut connection: &AsyncPgConnection, id: i64, sum: i64) -> QueryResult<i64> {
    let update = diesel::update(account::table.find(id)).set(account::balance.eq(account::balance + sum));
    update.returning(account::balance).get_result(&mut connection).await
}

impl Each {
    pub async fn write(&self, work: &Work<'_>) -> QueryResult<Done> {
        let connection = &self.connection;
        let touched = |rows: Vec<usize>| Done::touched(rows.into_iter().sum::<usize>() as u64);
        Ok(match work.kind {
            Kind::Insert | Kind::InsertMany => {
                let one = |row| async move {
                    let insert = diesel::insert_into(person::table).values(New::of(row)).returning(person::id);
                    insert.get_result::<i64>(&mut &*connection).await
                };
                Done::touched(self.each(work.people[..work.count].iter().map(one)).await?.len() as u64)
            }
            Kind::Append => {
                let one = |row: &Person| {
                    let insert = diesel::insert_into(entry::table)
                        .values((entry::n.eq(row.id), entry::word.eq(row.name.clone())));
                    async move { insert.execute(&mut &*connection).await }
                };
                touched(self.each(work.people[..work.count].iter().map(one)).await?)
            }
            Kind::DeleteWhere => {
                let one = |id: i64| async move {
                    let rows = person::table.filter(person::id.ge(id).and(person::id.lt(id + 3)));
                    diesel::delete(rows).execute(&mut &*connection).await
                };
                touched(self.each(work.starts().map(one)).await?)
            }
            Kind::Delete => touched(self.each(work.others().map(|id| delete(connection, id))).await?),
            Kind::DeleteThenSelect => {
                let deletes = self.each(work.others().map(|id| delete(connection, id)));
                self.then_left(deletes, work).await?
            }
            Kind::MixedThenSelect => {
                let one = |(k, row): (usize, (i64, &'_ Person))| {
                    let row = (row.0, &work.people[k]);
                    async move {
                        match k % 4 {
                            0 => add(connection, row).await,
                            1 => update(connection, row).await,
                            2 => delete(connection, row.0).await,
                            _ => upsert(connection, row).await,
                        }
                    }
                };
                self.then_left(self.each(work.rows().enumerate().map(one)), work).await?
            }
            Kind::Upsert => touched(self.each(work.rows().map(|row| upsert(connection, row))).await?),
            Kind::Replace => touched(self.each(work.rows().map(|row| replace(connection, row))).await?),
            _ => touched(self.each(work.rows().map(|row| update(connection, row))).await?),
        })
    }

    async fn then_left<T>(&self, first: impl Future<Output = QueryResult<T>>, work: &Work<'_>) -> QueryResult<Done> {
        let left = left(&self.connection, work.first, work.end());
        if self.pipelined {
            return Ok(try_join(first, left).await?.1);
        }
        first.await?;
        left.await
    }

    pub async fn transfers(&self, work: &Work<'_>) -> QueryResult<Done> {
        let mut all = Done::default();
        for (from, to, sum) in work.transfers() {
            self.begin().await?;
            let (take, give) = (moved(&self.connection, from, -sum), moved(&self.connection, to, sum));
            let (taken, given) = match self.pipelined {
                true => try_join(take, give).await?,
                false => (take.await?, give.await?),
            };
            self.commit().await?;
            all = all.and(Done::numbers([taken, given]));
        }
        Ok(all)
    }
}
