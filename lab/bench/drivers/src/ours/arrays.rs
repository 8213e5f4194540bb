use trunkline::{
    Db,
    postgres::{Insert, Statement},
};

use crate::{
    Failure,
    driver::{Doing, Driver},
    person::Person,
    texts,
    work::{Done, Kind, Work},
};

type New<'a> = (&'a str, &'a str, i32, f64, bool);
type Row<'a> = (i64, &'a str, &'a str, i32, f64, bool);
type Columns<'a> = (Vec<i64>, Vec<&'a str>, Vec<&'a str>, Vec<i32>, Vec<f64>, Vec<bool>);

static IN: Statement<(Vec<i64>,), Vec<Person>> = Statement::new(texts::IN);
static INSERT: Insert<New<'_>, Vec<(i64,)>> =
    Insert::into("person", &["name", "email", "age", "score", "active"]).ending("returning id");
static APPEND: Insert<(i64, &str)> = Insert::into("entry", &["n", "word"]);
static UPSERT: Insert<Row<'_>> = Insert::into("person", &["id", "name", "email", "age", "score", "active"]).ending(
    "on conflict (id) do update set name = excluded.name, email = excluded.email, age = excluded.age,
        score = excluded.score, active = excluded.active",
);
static UPDATE: Statement<(Vec<i64>, Vec<i32>), u64> = Statement::new(texts::UPDATE_ARRAYS);
static REPLACE: Statement<Columns<'_>, u64> = Statement::new(texts::REPLACE_ARRAYS);
static DELETE: Statement<(Vec<i64>,), u64> = Statement::new(texts::DELETE_ARRAY);
static LEFT: Statement<(i64, i64), Vec<Person>> = Statement::new(texts::LEFT);

/// Runs each workload as one statement with arrays, if one statement can do the work.
pub struct Arrays(pub Db);

impl Driver for Arrays {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(self.work(work))
    }
}

impl Arrays {
    async fn work(&self, work: &Work<'_>) -> Result<Option<Done>, Failure> {
        let (db, people) = (&self.0, &work.people[..work.count]);
        Ok(Some(match work.kind {
            Kind::Get => Done::people(&db.run(&IN, (work.known(),)).await?, 0),
            Kind::Insert => {
                let rows = people.iter().map(|p| (&*p.name, &*p.email, p.age, p.score, p.active));
                Done::touched(db.insert_many(&INSERT, rows).await?.len() as u64)
            }
            Kind::Append => Done::touched(db.insert_many(&APPEND, people.iter().map(|p| (p.id, &*p.name))).await?),
            Kind::Upsert => {
                let rows = work.rows().map(|(id, p)| (id, &*p.name, &*p.email, p.age, p.score, p.active));
                Done::touched(db.insert_many(&UPSERT, rows).await?)
            }
            Kind::Update => {
                let ages = work.rows().map(|(id, person)| (id, person.age)).unzip();
                Done::touched(db.run(&UPDATE, ages).await?)
            }
            Kind::Replace => Done::touched(db.run(&REPLACE, columns(work)).await?),
            Kind::Delete => Done::touched(db.run(&DELETE, (work.others().collect(),)).await?),
            Kind::DeleteThenSelect => {
                let transaction = db.begin().await?;
                transaction.send(&DELETE, (work.others().collect(),)).await?;
                let left = transaction.send(&LEFT, (work.first, work.end())).await?;
                transaction.commit().await?;
                Done::people(&left.await?, work.first)
            }
            _ => return Ok(None),
        }))
    }
}

fn columns<'a>(work: &Work<'a>) -> Columns<'a> {
    let people = || work.rows().map(|(_, person)| person);
    (
        work.ids().collect(),
        people().map(|person| &*person.name).collect(),
        people().map(|person| &*person.email).collect(),
        people().map(|person| person.age).collect(),
        people().map(|person| person.score).collect(),
        people().map(|person| person.active).collect(),
    )
}
