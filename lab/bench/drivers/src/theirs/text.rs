use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use crate::{
    Failure,
    driver::{Doing, Driver},
    person::Person,
    work::{Done, Kind, Work},
};

/// Writes the values into the text of the statements, parses the answers from text, and awaits each
/// statement. Workloads that write run in one transaction. Older drivers work this way, so it is
/// the baseline for all gains.
pub struct Text(pub Client);

impl Driver for Text {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move {
            if !work.kind.writes() {
                return self.read(work).await;
            }
            if work.kind == Kind::Transfers {
                return Ok(None); // omits transfers, which are not measured in this way
            }
            self.0.batch_execute("begin").await?;
            let done = self.write(work).await?;
            self.0.batch_execute("commit").await?;
            Ok(done)
        })
    }
}

const COLUMNS: &str = "id, name, email, age, score, active";

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Formats every column except the id.
fn values(person: &Person) -> String {
    let Person { name, email, age, score, active, .. } = person;
    format!("{}, {}, {age}, {score}, {active}", quoted(name), quoted(email))
}

fn person(row: &SimpleQueryRow) -> Result<Person, Failure> {
    let text = |at| row.get(at).ok_or("a column is null");
    Ok(Person {
        id: text(0)?.parse()?,
        name: text(1)?.to_owned(),
        email: text(2)?.to_owned(),
        age: text(3)?.parse()?,
        score: text(4)?.parse()?,
        active: text(5)? == "t",
    })
}

impl Text {
    /// Returns the rows of an answer, and the number of rows that were returned or changed.
    async fn query(&self, text: &str) -> Result<(Vec<SimpleQueryRow>, u64), Failure> {
        let (mut rows, mut affected) = (Vec::new(), 0);
        for message in self.0.simple_query(text).await? {
            match message {
                SimpleQueryMessage::Row(row) => rows.push(row),
                SimpleQueryMessage::CommandComplete(count) => affected = count,
                _ => {}
            }
        }
        Ok((rows, affected))
    }

    async fn people(&self, from: &str) -> Result<Vec<Person>, Failure> {
        self.query(&format!("select {COLUMNS} from {from}")).await?.0.iter().map(person).collect()
    }

    async fn read(&self, work: &Work<'_>) -> Result<Option<Done>, Failure> {
        let mut done = Done::default();
        match work.kind {
            Kind::Select => {
                for id in work.ids() {
                    let (rows, _) = self.query(&format!("select {id}::int8")).await?;
                    let number: i64 = rows.first().and_then(|row| row.get(0)).ok_or("no number")?.parse()?;
                    done = done.and(Done::numbers([number - work.first]));
                }
            }
            Kind::Get => {
                for id in work.known() {
                    done = done.and(Done::people(&self.people(&format!("roster where id = {id}")).await?, 0));
                }
            }
            Kind::In => {
                for ids in work.lists() {
                    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
                    let list = format!("roster where id in ({})", ids.join(", "));
                    done = done.and(Done::people(&self.people(&list).await?, 0));
                }
            }
            Kind::List => {
                for team in work.teams() {
                    done = done.and(Done::people(&self.people(&format!("roster where team = {team}")).await?, 0));
                }
            }
            Kind::Results => done = Done::people(&self.people("roster").await?, 0),
            Kind::Parameters => {
                for (id, person) in work.rows() {
                    let (rows, _) = self.query(&format!("select 1 where ({id}, {}) is null", values(person))).await?;
                    done = done.and(Done::touched(rows.len() as u64));
                }
            }
            Kind::ManyParameters => {
                let null = |person: &Person| format!("({}, {}) is null", person.id, values(person));
                let nulls: Vec<String> = work.many().iter().map(null).collect();
                let (rows, _) = self.query(&format!("select 1 where {}", nulls.join(" and "))).await?;
                done = Done::touched(rows.len() as u64);
            }
            _ => return Ok(None),
        }
        Ok(Some(done))
    }

    async fn write(&self, work: &Work<'_>) -> Result<Option<Done>, Failure> {
        let new = |person| format!("insert into person (name, email, age, score, active) values ({})", values(person));
        let add = |(id, person)| format!("insert into person ({COLUMNS}) values ({id}, {})", values(person));
        let upsert = |row| {
            let then = "name = excluded.name, email = excluded.email, age = excluded.age, score = excluded.score";
            format!("{} on conflict (id) do update set {then}, active = excluded.active", add(row))
        };
        let update = |(id, person): (i64, &Person)| format!("update person set age = {} where id = {id}", person.age);
        let replace = |(id, person): (i64, &Person)| {
            format!("update person set (name, email, age, score, active) = ({}) where id = {id}", values(person))
        };
        let delete = |id| format!("delete from person where id = {id}");
        let mixed = |(k, row): (usize, (i64, _))| match k % 4 {
            0 => add(row),
            1 => update(row),
            2 => delete(row.0),
            _ => upsert(row),
        };
        let texts: Vec<String> = match work.kind {
            Kind::Insert | Kind::InsertMany => {
                work.rows().map(|(_, person)| format!("{} returning id", new(person))).collect()
            }
            Kind::Append => {
                let append = |(_, p): (i64, &Person)| {
                    format!("insert into entry (n, word) values ({}, {})", p.id, quoted(&p.name))
                };
                work.rows().map(append).collect()
            }
            Kind::Upsert => work.rows().map(upsert).collect(),
            Kind::Update => work.rows().map(update).collect(),
            Kind::Replace => work.rows().map(replace).collect(),
            Kind::DeleteWhere => {
                let range = |id| format!("delete from person where id >= {id} and id < {}", id + 3);
                work.starts().map(range).collect()
            }
            Kind::Delete | Kind::DeleteThenSelect => work.others().map(delete).collect(),
            Kind::MixedThenSelect => work.rows().enumerate().map(mixed).collect(),
            _ => return Ok(None),
        };
        let mut affected = 0;
        for text in texts {
            affected += self.query(&text).await?.1;
        }
        if matches!(work.kind, Kind::DeleteThenSelect | Kind::MixedThenSelect) {
            let (first, end) = (work.first, work.end());
            let left = self.people(&format!("person where id >= {first} and id < {end}")).await?;
            return Ok(Some(Done::people(&left, first)));
        }
        Ok(Some(Done::touched(affected)))
    }
}
