use futures_util::{TryStreamExt, future::try_join_all};
use tokio_postgres::{Client, Error};

use super::{
    people::{people, person},
    statements::Statements,
};
use crate::{
    driver::{Doing, Driver},
    person::Person,
    texts,
    work::{Done, Kind, Work},
};

/// Runs prepared statements, with a Sync after each.
pub struct Binary {
    pub client: Client,
    pub statements: Statements,
    /// Set to send all statements before the first answer is awaited. Otherwise each answer is
    /// awaited before the next statement.
    pub pipelined: bool,
    /// Set to run a workload that writes in one transaction.
    pub together: bool,
}

impl Driver for Binary {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move {
            if self.together {
                Ok(self.writing(work).await?)
            } else if let Some(read) = self.reading(work).await? {
                Ok(Some(read))
            } else if work.kind == Kind::Transfers {
                Ok(None) // omits transfers, which need a transaction
            } else {
                Ok(self.written(work).await?)
            }
        })
    }
}

impl Binary {
    async fn each<T>(
        &self,
        all: impl Iterator<Item = impl Future<Output = Result<T, Error>>>,
    ) -> Result<Vec<T>, Error> {
        if self.pipelined {
            return try_join_all(all).await;
        }
        let mut answers = Vec::new();
        for one in all {
            answers.push(one.await?);
        }
        Ok(answers)
    }

    async fn one_then<T, U>(
        &self,
        one: impl Future<Output = Result<T, Error>>,
        then: impl Future<Output = Result<U, Error>>,
    ) -> Result<(T, U), Error> {
        match self.pipelined {
            true => tokio::try_join!(biased; one, then),
            false => Ok((one.await?, then.await?)),
        }
    }

    /// Reads rows through a cursor, in chunks.
    async fn cursor(&self, chunk: usize) -> Result<Done, Error> {
        self.client.batch_execute("begin").await?;
        self.client.batch_execute(texts::CURSOR).await?;
        let (fetch, mut done) = (format!("fetch {chunk} from rows"), Done::default());
        loop {
            let chunk = self.client.query_typed(&fetch, &[]).await?;
            if chunk.is_empty() {
                break;
            }
            done = done.and(Done::people(&people(&chunk)?, 0));
        }
        self.client.batch_execute("rollback").await?;
        Ok(done)
    }

    /// Reads rows as they arrive.
    async fn raw(&self) -> Result<Done, Error> {
        let rows = self.client.query_raw(&self.statements.stream, Vec::<i64>::new()).await?;
        let one = async |done: Done, row| Ok(done.and(Done::people(&[person(&row)?], 0)));
        rows.try_fold(Done::default(), one).await
    }

    /// Writes the rows between `begin` and `commit`.
    async fn writing(&self, work: &Work<'_>) -> Result<Option<Done>, Error> {
        let (begin, commit) = (self.client.batch_execute("begin"), self.client.batch_execute("commit"));
        if work.kind == Kind::Transfers {
            return self.transfers(work).await.map(Some);
        }
        if work.kind == Kind::Stream && !self.pipelined {
            return self.cursor(work.count).await.map(Some);
        }
        if !work.kind.writes() {
            return Ok(None);
        }
        if self.pipelined {
            return Ok(tokio::try_join!(biased; begin, self.written(work), commit)?.1);
        }
        begin.await?;
        let written = self.written(work).await?;
        commit.await?;
        Ok(written)
    }

    async fn reading(&self, work: &Work<'_>) -> Result<Option<Done>, Error> {
        let (client, statements) = (&self.client, &self.statements);
        Ok(Some(match work.kind {
            Kind::Select => {
                let one = async |id: i64| client.query_one(&statements.select, &[&id]).await?.try_get::<_, i64>(0);
                Done::numbers(self.each(work.ids().map(one)).await?.into_iter().map(|n| n - work.first))
            }
            Kind::Get => {
                let one = async |id: i64| person(&client.query_one(&statements.get, &[&id]).await?);
                Done::people(&self.each(work.known().into_iter().map(one)).await?, 0)
            }
            Kind::In => {
                let one = async |ids: Vec<i64>| people(&client.query(&statements.r#in, &[&ids]).await?);
                Done::people(self.each(work.lists().into_iter().map(one)).await?.iter().flatten(), 0)
            }
            Kind::List => {
                let one = async |team: i32| people(&client.query(&statements.list, &[&team]).await?);
                Done::people(self.each(work.teams().map(one)).await?.iter().flatten(), 0)
            }
            Kind::Results if !self.pipelined => {
                Done::people(&people(&client.query(&statements.results, &[]).await?)?, 0)
            }
            Kind::Stream if !self.pipelined => self.raw().await?,
            Kind::Parameters => {
                let one = async |(id, p): (i64, &Person)| {
                    let row = (&id, &p.name, &p.email, &p.age, &p.score, &p.active);
                    client.query_opt(&statements.parameters, &[row.0, row.1, row.2, row.3, row.4, row.5]).await
                };
                Done::touched(self.each(work.rows().map(one)).await?.into_iter().flatten().count() as u64)
            }
            Kind::ManyParameters if !self.pipelined => {
                let parameters: Vec<_> = work.many().iter().flat_map(Person::parameters).collect();
                let none = client.query_opt(&statements.many_parameters, &parameters).await?;
                Done::touched(u64::from(none.is_some()))
            }
            _ => return Ok(None),
        }))
    }

    async fn written(&self, work: &Work<'_>) -> Result<Option<Done>, Error> {
        let (client, statements) = (&self.client, &self.statements);
        let add = async |(id, p): (i64, &Person)| {
            client.execute(&statements.add, &[&id, &p.name, &p.email, &p.age, &p.score, &p.active]).await
        };
        let upsert = async |(id, p): (i64, &Person)| {
            client.execute(&statements.upsert, &[&id, &p.name, &p.email, &p.age, &p.score, &p.active]).await
        };
        let update = async |(id, p): (i64, &Person)| client.execute(&statements.update, &[&id, &p.age]).await;
        let delete = async |id: i64| client.execute(&statements.delete, &[&id]).await;
        let left = async || people(&client.query(&statements.left, &[&work.first, &work.end()]).await?);
        let affected = |rows: Vec<u64>| Some(Done::touched(rows.into_iter().sum()));
        Ok(match work.kind {
            Kind::Insert | Kind::InsertMany => {
                let one = async |p: &Person| {
                    client
                        .query_one(&statements.insert, &[&p.name, &p.email, &p.age, &p.score, &p.active])
                        .await?
                        .try_get::<_, i64>(0)
                };
                Some(Done::touched(self.each(work.people[..work.count].iter().map(one)).await?.len() as u64))
            }
            Kind::Append => {
                let one = async |p: &Person| client.execute(&statements.append, &[&p.id, &p.name]).await;
                affected(self.each(work.people[..work.count].iter().map(one)).await?)
            }
            Kind::Upsert => affected(self.each(work.rows().map(upsert)).await?),
            Kind::Update => affected(self.each(work.rows().map(update)).await?),
            Kind::Replace => {
                let one = async |(id, p): (i64, &Person)| {
                    client.execute(&statements.replace, &[&id, &p.name, &p.email, &p.age, &p.score, &p.active]).await
                };
                affected(self.each(work.rows().map(one)).await?)
            }
            Kind::DeleteWhere => {
                let one = async |id: i64| client.execute(&statements.delete_where, &[&id, &(id + 3)]).await;
                affected(self.each(work.starts().map(one)).await?)
            }
            Kind::Delete => affected(self.each(work.others().map(delete)).await?),
            Kind::DeleteThenSelect => {
                let (_, left) = self.one_then(self.each(work.others().map(delete)), left()).await?;
                Some(Done::people(&left, work.first))
            }
            Kind::MixedThenSelect => {
                let one = async |(k, row): (usize, (i64, &Person))| match k % 4 {
                    0 => add(row).await,
                    1 => update(row).await,
                    2 => delete(row.0).await,
                    _ => upsert(row).await,
                };
                let (_, left) = self.one_then(self.each(work.rows().enumerate().map(one)), left()).await?;
                Some(Done::people(&left, work.first))
            }
            _ => None,
        })
    }

    /// Runs each transfer as a transaction, and awaits each statement.
    async fn transfers(&self, work: &Work<'_>) -> Result<Done, Error> {
        let client = &self.client;
        let mut done = Done::default();
        for (from, to, sum) in work.transfers() {
            let (begin, commit) = (client.batch_execute("begin"), client.batch_execute("commit"));
            let take = async || client.query_one(&self.statements.take, &[&from, &sum]).await?.try_get::<_, i64>(0);
            let give = async || client.query_one(&self.statements.give, &[&to, &sum]).await?.try_get::<_, i64>(0);
            let (taken, given) = if self.pipelined {
                let ((), taken, given, ()) = tokio::try_join!(biased; begin, take(), give(), commit)?;
                (taken, given)
            } else {
                begin.await?;
                let both = (take().await?, give().await?);
                commit.await?;
                both
            };
            done = done.and(Done::numbers([taken, given]));
        }
        Ok(done)
    }
}
