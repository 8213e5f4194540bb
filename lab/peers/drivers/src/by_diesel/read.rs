use diesel::{
    prelude::*,
    sql_types::{BigInt, Bool, Double, Integer, Text},
};
use diesel_async::RunQueryDsl;
use futures_util::TryStreamExt;
use trunkline_drivers::{Done, Kind, Person, Work};

use super::{
    all_null::AllNull,
    each::Each,
    rows::{Found, done},
    tables::roster,
};

type Columns = (roster::id, roster::name, roster::email, roster::age, roster::score, roster::active);
const COLUMNS: Columns = (roster::id, roster::name, roster::email, roster::age, roster::score, roster::active);

impl Each {
    pub async fn read(&self, work: &Work<'_>) -> QueryResult<Option<Done>> {
        let connection = &self.connection;
        Ok(Some(match work.kind {
            Kind::Select => {
                let one = |id: i64| async move {
                    diesel::select(id.into_sql::<BigInt>()).get_result::<i64>(&mut &*connection).await
                };
                Done::numbers(self.each(work.ids().map(one)).await?.into_iter().map(|n| n - work.first))
            }
            Kind::Get => {
                let one = |id: i64| async move {
                    roster::table.find(id).select(COLUMNS).first::<Found>(&mut &*connection).await
                };
                done(&self.each(work.known().into_iter().map(one)).await?, 0)
            }
            Kind::In => {
                let one = |ids: Vec<i64>| async move {
                    let rows = roster::table.filter(roster::id.eq_any(ids)).select(COLUMNS);
                    rows.load::<Found>(&mut &*connection).await
                };
                done(self.each(work.lists().into_iter().map(one)).await?.iter().flatten(), 0)
            }
            Kind::List => {
                let one = |team: i32| async move {
                    let rows = roster::table.filter(roster::team.eq(team)).select(COLUMNS);
                    rows.load::<Found>(&mut &*connection).await
                };
                done(self.each(work.teams().map(one)).await?.iter().flatten(), 0)
            }
            Kind::Results if !self.pipelined => {
                done(&roster::table.select(COLUMNS).load::<Found>(&mut &*connection).await?, 0)
            }
            Kind::Stream if !self.pipelined => {
                let rows = roster::table.filter(roster::id.le(1000)).select(COLUMNS);
                let rows = rows.load_stream::<Found>(&mut &*connection).await?;
                rows.try_fold(Done::default(), async |all, found| Ok(all.and(done(&[found], 0)))).await?
            }
            Kind::Parameters => {
                let one = |(id, p): (i64, &'_ Person)| {
                    let is_null = id.into_sql::<BigInt>().is_null().and(p.name.clone().into_sql::<Text>().is_null());
                    let is_null = is_null.and(p.email.clone().into_sql::<Text>().is_null());
                    let is_null = is_null.and(p.age.into_sql::<Integer>().is_null());
                    let is_null = is_null.and(p.score.into_sql::<Double>().is_null());
                    let is_null = is_null.and(p.active.into_sql::<Bool>().is_null());
                    let none = diesel::select(1.into_sql::<Integer>()).filter(is_null);
                    async move { none.get_result::<i32>(&mut &*connection).await.optional() }
                };
                Done::touched(self.each(work.rows().map(one)).await?.into_iter().flatten().count() as u64)
            }
            Kind::ManyParameters if !self.pipelined => {
                let none = diesel::select(1.into_sql::<Integer>()).filter(AllNull(work.many()));
                let none = none.get_result::<i32>(&mut &*connection).await.optional()?;
                Done::touched(u64::from(none.is_some()))
            }
            _ => return Ok(None),
        }))
    }
}
