use std::{
    ffi::CStr,
    sync::{Mutex, PoisonError},
};

use trunkline_drivers::{Doing, Done, Driver, Failure, Kind, Person, Work, texts};

use super::{answer::Answer, connection::Connection, parameters::Parameters};

/// The name and text of every statement.
const STATEMENTS: &[(&CStr, &str)] = &[
    (c"select", texts::SELECT),
    (c"get", texts::GET),
    (c"in", texts::IN),
    (c"list", texts::LIST),
    (c"results", texts::RESULTS),
    (c"stream", texts::STREAM),
    (c"insert", texts::INSERT),
    (c"append", texts::APPEND),
    (c"add", texts::ADD),
    (c"upsert", texts::UPSERT),
    (c"update", texts::UPDATE),
    (c"replace", texts::REPLACE),
    (c"delete", texts::DELETE),
    (c"delete_where", texts::DELETE_WHERE),
    (c"left", texts::LEFT),
    (c"parameters", texts::PARAMETERS),
    (c"begin", "begin"),
    (c"take", texts::TAKE),
    (c"give", texts::GIVE),
    (c"commit", "commit"),
];

pub fn prepare(connection: &mut Connection) -> Result<(), Failure> {
    STATEMENTS.iter().try_for_each(|(name, text)| connection.prepare(name, text))?;
    connection.prepare(c"many_parameters", &texts::MANY_PARAMETERS)
}

/// Sends all statements with one Sync, and then reads the answers.
pub struct Pipelined(pub Mutex<Connection>);

impl Driver for Pipelined {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move {
            let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Turn { connection: &mut connection, parameters: Parameters::default() }.run(work).map(Some)
        })
    }
}

struct Turn<'a> {
    connection: &'a mut Connection,
    parameters: Parameters,
}

impl Turn<'_> {
    fn run(&mut self, work: &Work<'_>) -> Result<Done, Failure> {
        let people = &work.people[..work.count];
        match work.kind {
            Kind::Select => {
                let numbers = self.each(c"select", work.ids(), |p, id| _ = p.int8(id), |a| a.int8(0, 0))?;
                Ok(Done::numbers(numbers.into_iter().map(|number| number - work.first)))
            }
            Kind::Get => {
                let people = self.each(c"get", work.known().into_iter(), |p, id| _ = p.int8(id), |a| a.person(0))?;
                Ok(Done::people(&people, 0))
            }
            Kind::In => {
                let lists = self.each(c"in", work.lists().into_iter(), |p, ids| _ = p.int8s(&ids), Answer::people)?;
                Ok(Done::people(lists.iter().flatten(), 0))
            }
            Kind::List => {
                let lists = self.each(c"list", work.teams(), |p, team| _ = p.int4(team), Answer::people)?;
                Ok(Done::people(lists.iter().flatten(), 0))
            }
            Kind::Results => {
                let lists = self.each(c"results", std::iter::once(()), |_, ()| (), Answer::people)?;
                Ok(Done::people(lists.iter().flatten(), 0))
            }
            Kind::Parameters => {
                let rows = self.each(c"parameters", work.rows(), person, |a| Ok(a.rows()))?;
                Ok(Done::touched(rows.into_iter().map(|count| count as u64).sum()))
            }
            Kind::ManyParameters => {
                let all = |p: &mut Parameters, people: &[Person]| {
                    people.iter().for_each(|one| _ = p.int8(one.id).person(one));
                };
                let rows = self.each(c"many_parameters", std::iter::once(work.many()), all, |a| Ok(a.rows()))?;
                Ok(Done::touched(rows.into_iter().map(|count| count as u64).sum()))
            }
            Kind::Stream => self.stream(work.count),
            Kind::Insert | Kind::InsertMany => {
                let new = |p: &mut Parameters, one: &Person| _ = p.person(one);
                let ids = self.each(c"insert", people.iter(), new, |a| a.int8(0, 0))?;
                Ok(Done::touched(ids.len() as u64))
            }
            Kind::Append => {
                let new = |p: &mut Parameters, one: &Person| _ = p.int8(one.id).bytes(one.name.as_bytes());
                self.touch(c"append", people.iter(), new)
            }
            Kind::Upsert => self.touch(c"upsert", work.rows(), person),
            Kind::Update => self.touch(c"update", work.rows(), age),
            Kind::Replace => self.touch(c"replace", work.rows(), person),
            Kind::Delete => self.touch(c"delete", work.others(), |p, id| _ = p.int8(id)),
            Kind::DeleteWhere => self.touch(c"delete_where", work.starts(), |p, id| _ = p.int8(id).int8(id + 3)),
            Kind::DeleteThenSelect => {
                self.send(c"begin", |_| ())?;
                work.others().try_for_each(|id| self.send(c"delete", |p| _ = p.int8(id)))?;
                self.left(work, work.count)
            }
            Kind::MixedThenSelect => {
                self.send(c"begin", |_| ())?;
                for (at, row) in work.rows().enumerate() {
                    match at % 4 {
                        0 => self.send(c"add", |p| person(p, row))?,
                        1 => self.send(c"update", |p| age(p, row))?,
                        2 => self.send(c"delete", |p| _ = p.int8(row.0))?,
                        _ => self.send(c"upsert", |p| person(p, row))?,
                    }
                }
                self.left(work, work.count)
            }
            Kind::Transfers => self.transfers(work),
        }
    }

    fn send(&mut self, name: &CStr, write: impl FnOnce(&mut Parameters)) -> Result<(), Failure> {
        write(self.parameters.clear());
        self.connection.send(name, &mut self.parameters)
    }

    /// Runs one statement for each value, and returns the answers.
    fn each<V, T>(
        &mut self,
        name: &CStr,
        values: impl Iterator<Item = V>,
        mut write: impl FnMut(&mut Parameters, V),
        read: impl Fn(&Answer) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut count = 0;
        for value in values {
            self.send(name, |parameters| write(parameters, value))?;
            count += 1;
        }
        self.connection.sync()?;
        let mut answers = Vec::with_capacity(count);
        for _ in 0..count {
            answers.push(read(&self.connection.answer()?)?);
        }
        self.connection.synced()?;
        Ok(answers)
    }

    /// Runs one statement for each value, and returns the number of rows.
    fn touch<V>(
        &mut self,
        name: &CStr,
        values: impl Iterator<Item = V>,
        write: impl FnMut(&mut Parameters, V),
    ) -> Result<Done, Failure> {
        Ok(Done::touched(self.each(name, values, write, |answer| Ok(answer.affected()))?.into_iter().sum()))
    }

    /// Reads rows as they arrive, in chunks.
    fn stream(&mut self, chunk: usize) -> Result<Done, Failure> {
        self.send(c"stream", |_| ())?;
        self.connection.sync()?;
        self.connection.answer_in_chunks(chunk)?;
        let mut done = Done::default();
        while let Some(rows) = self.connection.chunk()? {
            done = done.and(Done::people(&rows.people()?, 0));
        }
        self.connection.synced()?;
        Ok(done)
    }

    /// Commits a turn that has written `before` statements after `begin`, and reads the remaining
    /// rows.
    fn left(&mut self, work: &Work<'_>, before: usize) -> Result<Done, Failure> {
        self.send(c"left", |p| _ = p.int8(work.first).int8(work.end()))?;
        self.send(c"commit", |_| ())?;
        self.connection.sync()?;
        for _ in 0..=before {
            self.connection.answer()?;
        }
        let left = self.connection.answer()?.people()?;
        self.connection.answer()?;
        self.connection.synced()?;
        Ok(Done::people(&left, work.first))
    }

    /// Runs each transfer as a separate transaction, and awaits it.
    fn transfers(&mut self, work: &Work<'_>) -> Result<Done, Failure> {
        let mut done = Done::default();
        for (from, to, sum) in work.transfers() {
            self.send(c"begin", |_| ())?;
            self.send(c"take", |p| _ = p.int8(from).int8(sum))?;
            self.send(c"give", |p| _ = p.int8(to).int8(sum))?;
            self.send(c"commit", |_| ())?;
            self.connection.sync()?;
            self.connection.answer()?;
            let balances = [self.connection.answer()?.int8(0, 0)?, self.connection.answer()?.int8(0, 0)?];
            self.connection.answer()?;
            self.connection.synced()?;
            done = done.and(Done::numbers(balances));
        }
        Ok(done)
    }
}

fn person(parameters: &mut Parameters, (id, person): (i64, &Person)) {
    parameters.int8(id).person(person);
}

fn age(parameters: &mut Parameters, (id, person): (i64, &Person)) {
    parameters.int8(id).int4(person.age);
}
