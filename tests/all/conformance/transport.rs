//! The transports: libpq, and the library's own.

use std::sync::Arc;

use postgres_types::ToSql;
use tokio::task::block_in_place;
use trunkline::{
    Db, Error,
    postgres::{Pending, Rows, Statement},
};
use trunkline_embedded::Cluster;
use trunkline_libpq::{Connection, Library, Outcome, State};

use super::{
    answer::{Answer, Value},
    case::{Call, Case, End, Meant, Step, Way, values},
};

/// The answers, by step and group.
pub type Told = Vec<Vec<Vec<Answer>>>;

pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Returns the address with a transport's own schema for tables, and `public` for the types that
/// all transports share. A timeout limits every statement.
fn place(cluster: &Cluster, schema: &str) -> String {
    let options = format!("-c search_path={schema},public -c statement_timeout=60s -c lc_messages=C");
    format!("{} options='{options}' target_session_attrs=any connect_timeout=10", cluster.url("conformance"))
}

pub struct Libpq(Connection);

impl Libpq {
    pub fn open(cluster: &Cluster, library: &Arc<Library>) -> Self {
        let url = format!("{} client_encoding=UTF8", place(cluster, "libpq"));
        let mut opened = Self(block_in_place(|| Connection::open(library, &url)).expect("libpq connects"));
        opened.one("create schema libpq", &[]);
        opened
    }

    pub fn notices(&self) -> usize {
        self.0.notices()
    }

    pub fn run(&mut self, case: &Case) -> Told {
        block_in_place(|| case.steps.iter().map(|step| self.step(step)).collect())
    }

    fn step(&mut self, step: &Step) -> Vec<Vec<Answer>> {
        let answers = match step {
            Step::Run(call) => vec![vec![self.one(&call.text, &call.bytes())]],
            Step::Transaction(groups, end) => self.transaction(groups, *end),
            Step::Value(meant) => vec![self.value(meant)],
        };
        if !self.0.is_alive() {
            self.0.reset().expect("libpq connects again when it is asked to");
        }
        assert_eq!(self.0.state(), State::Idle, "nothing stays open");
        answers
    }

    fn one(&mut self, text: &str, params: &[Option<&[u8]>]) -> Answer {
        Answer::of_libpq(self.0.run(text, params))
    }

    fn transaction(&mut self, groups: &[Vec<Call>], end: End) -> Vec<Vec<Answer>> {
        self.one("begin", &[]);
        assert_eq!(self.0.state(), State::Open);
        let mut told = Vec::new();
        for group in groups {
            let mut answers = Vec::new();
            for call in group {
                let answer = self.one(&call.text, &call.bytes());
                let state = if answer.is_failure() { State::Failed } else { State::Open };
                assert_eq!(self.0.state(), state, "{}: {answer:?}", call.text);
                answers.push(answer);
            }
            told.push(answers);
        }
        let ended = self.0.run(if end == End::Commit { "commit" } else { "rollback" }, &[]);
        told.push(vec![match ended {
            Outcome::Done(answer) if answer.tag == "COMMIT" => Answer::Committed,
            Outcome::Done(answer) if answer.tag == "ROLLBACK" => Answer::RolledBack,
            other => Answer::of_libpq(other),
        }]);
        told
    }

    fn value(&mut self, meant: &Meant) -> Vec<Answer> {
        let [literal, echo] = meant.texts();
        let meant = self.one(&literal, &[]);
        let Some(value) = values(&meant).next().cloned() else { return vec![meant] };
        let echoed = self.one(&echo, &[value.as_ref().map(|value| &value.0[..])]);
        vec![meant, echoed]
    }
}

pub struct Ours {
    db: Db,
    pub way: Way,
}

impl Ours {
    pub async fn open(cluster: &Cluster, way: Way) -> Self {
        let statements = if way.prepared { "on" } else { "off" };
        let url = format!("{} prepared_statements={statements}", place(cluster, way.name()));
        let db = Db::connect(&url).await.expect("the library connects");
        let opened = Self { db, way };
        opened.answer::<()>(&format!("create schema {}", way.name()), &[]).await.expect("created");
        opened
    }

    pub async fn run(&self, case: &Case) -> Told {
        let mut told = Vec::new();
        for step in &case.steps {
            told.push(match step {
                Step::Run(call) => vec![vec![self.one(&call.text, &call.params).await]],
                Step::Transaction(groups, end) => self.transaction(groups, *end).await,
                Step::Value(meant) => vec![self.value(meant).await],
            });
        }
        told
    }

    /// Runs a statement alone, or between two other statements that are sent with it.
    pub async fn answer<R: Rows>(&self, text: &str, params: Params<'_>) -> Result<R, Error> {
        static MARK: Statement<(i32,), (i32,)> = Statement::new("select $1::int4");
        let statement = Statement::<Params<'_>, R>::of(text);
        if !self.way.together {
            return self.db.run(&statement, params).await;
        }
        let transaction = self.db.begin().await?;
        let before = transaction.send(&MARK, (1,)).await?;
        let answer = transaction.send(&statement, params).await?;
        let after = transaction.send(&MARK, (2,)).await;
        match answer.await {
            Ok(answer) => {
                assert_eq!(before.await?, (1,));
                assert_eq!(after?.await?, (2,));
                transaction.commit().await.map(|()| answer)
            }
            Err(error) => {
                let after = match after {
                    Ok(after) => after.await.expect_err("it is behind one that failed"),
                    Err(refused) => refused,
                };
                assert_eq!(Answer::of_error(&after), Answer::of_error(&error), "the reason is told");
                Err(error)
            }
        }
    }

    async fn one(&self, text: &str, params: &[Value]) -> Answer {
        self.answer(text, &dynamic(params)).await.unwrap_or_else(|error| Answer::of_error(&error))
    }

    async fn transaction(&self, groups: &[Vec<Call>], end: End) -> Vec<Vec<Answer>> {
        if self.way.together {
            self.prepare(groups.iter().flatten()).await;
        }
        let transaction = self.db.begin().await.expect("begun");
        let mut told = Vec::new();
        for group in groups {
            let (mut sent, mut answers) = (Vec::new(), Vec::new());
            for call in group {
                sent.push(transaction.send(&Statement::of(&*call.text), &dynamic(&call.params)[..]).await);
                if !self.way.together {
                    answers.push(awaited(sent.remove(0)).await);
                }
            }
            for sent in sent {
                answers.push(awaited(sent).await);
            }
            told.push(answers);
        }
        let (ended, good) = match end {
            End::Commit => (transaction.commit().await, Answer::Committed),
            End::Rollback => (transaction.rollback().await, Answer::RolledBack),
        };
        told.push(vec![ended.map_or_else(|error| Answer::of_error(&error), |()| good)]);
        told
    }

    /// Prepares statements in advance, because a preparation in the middle of a group would split
    /// the group.
    async fn prepare(&self, calls: impl Iterator<Item = &Call>) {
        for call in calls {
            let transaction = self.db.begin().await.expect("begun");
            let sent = transaction.send::<_, ()>(&Statement::of(&*call.text), &dynamic(&call.params)[..]).await;
            drop(sent); // a statement that cannot be prepared fails again in its group
            transaction.rollback().await.expect("nothing of it was sent");
        }
    }

    async fn value(&self, meant: &Meant) -> Vec<Answer> {
        let [literal, echo] = meant.texts();
        let from_server = self.one(&literal, &[]).await;
        let Some(value) = values(&from_server).next().cloned() else { return vec![from_server] };
        let echoed = self.one(&echo, &[value]).await;
        if let Some(known) = &meant.known {
            let typed = known.echo(self, &echo).await.unwrap_or_else(|error| Answer::of_error(&error));
            assert_eq!(typed, echoed, "{echo}");
        }
        vec![from_server, echoed]
    }
}

fn dynamic(params: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| param as _).collect()
}

async fn awaited(sent: Result<Pending<Answer>, Error>) -> Answer {
    let answer = match sent {
        Ok(pending) => pending.await,
        Err(refused) => Err(refused),
    };
    answer.unwrap_or_else(|error| Answer::of_error(&error))
}
