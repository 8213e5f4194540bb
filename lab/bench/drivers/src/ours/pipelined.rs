use std::sync::LazyLock;

use tokio_postgres::types::ToSql;
use trunkline::{
    Db,
    postgres::{Insert, Statement},
};

use super::transfers::transfers;
use crate::{
    Failure,
    driver::{Doing, Driver},
    person::Person,
    texts,
    work::{Done, Kind, Work},
};

static SELECT: Statement<(i64,), (i64,)> = Statement::new(texts::SELECT);
static GET: Statement<(i64,), Person> = Statement::new(texts::GET);
static IN: Statement<(Vec<i64>,), Vec<Person>> = Statement::new(texts::IN);
static LIST: Statement<(i32,), Vec<Person>> = Statement::new(texts::LIST);
static RESULTS: Statement<(), Vec<Person>> = Statement::new(texts::RESULTS);
static STREAM: Statement<(), Vec<Person>> = Statement::new(texts::STREAM);
static INSERT: Statement<New<'_>, (i64,)> = Statement::new(texts::INSERT);
static MANY: Insert<New<'_>, Vec<(i64,)>> =
    Insert::into("person", &["name", "email", "age", "score", "active"]).ending("returning id");
static APPEND: Statement<(i64, &str), u64> = Statement::new(texts::APPEND);
static ADD: Statement<Row<'_>, u64> = Statement::new(texts::ADD);
static UPSERT: Statement<Row<'_>, u64> = Statement::new(texts::UPSERT);
static UPDATE: Statement<(i64, i32), u64> = Statement::new(texts::UPDATE);
static REPLACE: Statement<Row<'_>, u64> = Statement::new(texts::REPLACE);
static DELETE: Statement<(i64,), u64> = Statement::new(texts::DELETE);
static DELETE_WHERE: Statement<(i64, i64), u64> = Statement::new(texts::DELETE_WHERE);
static LEFT: Statement<(i64, i64), Vec<Person>> = Statement::new(texts::LEFT);
static PARAMETERS: Statement<Row<'_>, Option<(i32,)>> = Statement::new(texts::PARAMETERS);
static MANY_PARAMETERS: LazyLock<Statement<Parameters<'_>, Option<(i32,)>>> =
    LazyLock::new(|| Statement::of(&*texts::MANY_PARAMETERS));

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];
type New<'a> = (&'a str, &'a str, i32, f64, bool);
type Row<'a> = (i64, &'a str, &'a str, i32, f64, bool);

fn new(person: &Person) -> New<'_> {
    (&person.name, &person.email, person.age, person.score, person.active)
}

fn row((id, person): (i64, &Person)) -> Row<'_> {
    (id, &person.name, &person.email, person.age, person.score, person.active)
}

/// Sends many statements before one Sync.
pub struct Pipelined(pub Db);

impl Driver for Pipelined {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move { self.work(work).await.map(Some) })
    }
}

impl Pipelined {
    async fn work(&self, work: &Work<'_>) -> Result<Done, Failure> {
        let (db, people) = (&self.0, &work.people[..work.count]);
        let affected = |rows: Vec<u64>| Done::touched(rows.into_iter().sum());
        Ok(match work.kind {
            Kind::Select => Done::numbers(
                db.run_many(&SELECT, work.ids().map(|id| (id,))).await?.into_iter().map(|(n,)| n - work.first),
            ),
            Kind::Get => {
                let people = db.run_many(&GET, work.known().into_iter().map(|id| (id,))).await?;
                Done::people(&people, 0)
            }
            Kind::In => {
                let lists = db.run_many(&IN, work.lists().into_iter().map(|ids| (ids,))).await?;
                Done::people(lists.iter().flatten(), 0)
            }
            Kind::List => {
                let lists = db.run_many(&LIST, work.teams().map(|team| (team,))).await?;
                Done::people(lists.iter().flatten(), 0)
            }
            Kind::Results => Done::people(&db.run(&RESULTS, ()).await?, 0),
            Kind::Stream => self.stream(work.count).await?,
            Kind::Insert => Done::touched(db.run_many(&INSERT, people.iter().map(new)).await?.len() as u64),
            Kind::InsertMany => Done::touched(db.insert_many(&MANY, people.iter().map(new)).await?.len() as u64),
            Kind::Append => affected(db.run_many(&APPEND, people.iter().map(|p| (p.id, &*p.name))).await?),
            Kind::Upsert => affected(db.run_many(&UPSERT, work.rows().map(row)).await?),
            Kind::Update => affected(db.run_many(&UPDATE, work.rows().map(|(id, person)| (id, person.age))).await?),
            Kind::Replace => affected(db.run_many(&REPLACE, work.rows().map(row)).await?),
            Kind::DeleteWhere => affected(db.run_many(&DELETE_WHERE, work.starts().map(|id| (id, id + 3))).await?),
            Kind::Parameters => {
                let none = db.run_many(&PARAMETERS, work.rows().map(row)).await?;
                Done::touched(none.into_iter().flatten().count() as u64)
            }
            Kind::ManyParameters => {
                let parameters: Vec<_> = work.many().iter().flat_map(Person::parameters).collect();
                Done::touched(u64::from(db.run(&*MANY_PARAMETERS, &*parameters).await?.is_some()))
            }
            Kind::Delete => affected(db.run_many(&DELETE, work.others().map(|id| (id,))).await?),
            Kind::DeleteThenSelect => self.delete_then_select(work).await?,
            Kind::MixedThenSelect => self.mixed_then_select(work).await?,
            Kind::Transfers => transfers(db, work).await?,
        })
    }

    async fn stream(&self, chunk: usize) -> Result<Done, Failure> {
        let transaction = self.0.begin().await?;
        let (mut rows, mut done) = (transaction.stream(&STREAM, (), chunk).await?, Done::default());
        while let Some(chunk) = rows.next_chunk().await? {
            done = done.and(Done::people(&chunk, 0));
        }
        Ok(done)
    }

    async fn delete_then_select(&self, work: &Work<'_>) -> Result<Done, Failure> {
        let transaction = self.0.begin().await?;
        for id in work.others() {
            transaction.send(&DELETE, (id,)).await?;
        }
        let left = transaction.send(&LEFT, (work.first, work.end())).await?;
        transaction.commit().await?;
        Ok(Done::people(&left.await?, work.first))
    }

    async fn mixed_then_select(&self, work: &Work<'_>) -> Result<Done, Failure> {
        let transaction = self.0.begin().await?;
        for (k, (id, person)) in work.rows().enumerate() {
            match k % 4 {
                0 => drop(transaction.send(&ADD, row((id, person))).await?),
                1 => drop(transaction.send(&UPDATE, (id, person.age)).await?),
                2 => drop(transaction.send(&DELETE, (id,)).await?),
                _ => drop(transaction.send(&UPSERT, row((id, person))).await?),
            }
        }
        let left = transaction.send(&LEFT, (work.first, work.end())).await?;
        transaction.commit().await?;
        Ok(Done::people(&left.await?, work.first))
    }
}
