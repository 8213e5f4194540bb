use tokio_postgres::{Client, Error, Statement};

use super::people::people;
use crate::{
    driver::{Doing, Driver},
    person::Person,
    texts,
    work::{Done, Kind, Work},
};

/// Runs each workload as one statement, with arrays that are built manually.
pub struct Arrays {
    client: Client,
    r#in: Statement,
    insert: Statement,
    append: Statement,
    upsert: Statement,
    update: Statement,
    replace: Statement,
    delete: Statement,
    left: Statement,
}

impl Driver for Arrays {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move { Ok(self.work(work).await?) })
    }
}

/// The columns of many people.
struct Columns<'a> {
    names: Vec<&'a str>,
    emails: Vec<&'a str>,
    ages: Vec<i32>,
    scores: Vec<f64>,
    active: Vec<bool>,
}

impl<'a> Columns<'a> {
    fn of(people: &'a [Person]) -> Self {
        Self {
            names: people.iter().map(|person| &*person.name).collect(),
            emails: people.iter().map(|person| &*person.email).collect(),
            ages: people.iter().map(|person| person.age).collect(),
            scores: people.iter().map(|person| person.score).collect(),
            active: people.iter().map(|person| person.active).collect(),
        }
    }
}

impl Arrays {
    pub async fn prepare(client: Client) -> Result<Self, Error> {
        Ok(Self {
            r#in: client.prepare(texts::IN).await?,
            insert: client.prepare(texts::INSERT_ARRAYS).await?,
            append: client.prepare(texts::APPEND_ARRAYS).await?,
            upsert: client.prepare(texts::UPSERT_ARRAYS).await?,
            update: client.prepare(texts::UPDATE_ARRAYS).await?,
            replace: client.prepare(texts::REPLACE_ARRAYS).await?,
            delete: client.prepare(texts::DELETE_ARRAY).await?,
            left: client.prepare(texts::LEFT).await?,
            client,
        })
    }

    async fn work(&self, work: &Work<'_>) -> Result<Option<Done>, Error> {
        let (client, rows) = (&self.client, &work.people[..work.count]);
        Ok(Some(match work.kind {
            Kind::Get => Done::people(&people(&client.query(&self.r#in, &[&work.known()]).await?)?, 0),
            Kind::Insert | Kind::InsertMany => {
                let Columns { names, emails, ages, scores, active } = Columns::of(rows);
                let ids = client.query(&self.insert, &[&names, &emails, &ages, &scores, &active]).await?;
                let ids = ids.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
                Done::touched(ids.len() as u64)
            }
            Kind::Append => {
                let (numbers, words): (Vec<i64>, Vec<&str>) = rows.iter().map(|p| (p.id, &*p.name)).unzip();
                Done::touched(client.execute(&self.append, &[&numbers, &words]).await?)
            }
            Kind::Upsert | Kind::Replace => {
                let Columns { names, emails, ages, scores, active } = Columns::of(rows);
                let ids: Vec<i64> = work.ids().collect();
                let statement = if work.kind == Kind::Upsert { &self.upsert } else { &self.replace };
                Done::touched(client.execute(statement, &[&ids, &names, &emails, &ages, &scores, &active]).await?)
            }
            Kind::Update => {
                let (ids, ages): (Vec<i64>, Vec<i32>) = work.rows().map(|(id, person)| (id, person.age)).unzip();
                Done::touched(client.execute(&self.update, &[&ids, &ages]).await?)
            }
            Kind::Delete => {
                let ids: Vec<i64> = work.others().collect();
                Done::touched(client.execute(&self.delete, &[&ids]).await?)
            }
            Kind::DeleteThenSelect => {
                let ids: Vec<i64> = work.others().collect();
                let (delete, end) = (async || client.execute(&self.delete, &[&ids]).await, work.end());
                let left = async || client.query(&self.left, &[&work.first, &end]).await;
                let (_, left) = tokio::try_join!(biased; delete(), left())?;
                Done::people(&people(&left)?, work.first)
            }
            _ => return Ok(None),
        }))
    }
}
