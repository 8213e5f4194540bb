//! The plans that PostgreSQL makes for a call.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    rc::Rc,
};

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::node::Node;
use crate::fixture::superuser;

/// The result of planning one call.
#[derive(Debug, Default)]
pub struct Planned {
    /// The plans that touch any of the relations.
    pub plans: Vec<Rc<Node>>,
    /// The oids of all functions in all plans.
    pub calls: BTreeSet<u32>,
}

/// A connection that prints its plans.
pub struct Planner {
    client: Client,
    plans: mpsc::UnboundedReceiver<String>,
    relations: BTreeSet<u32>,
    /// The plans that were read before, by the hashes of their texts. Many calls have plans in
    /// common.
    known: HashMap<u64, Printed>,
}

/// A printed plan.
#[derive(Debug)]
struct Printed {
    calls: BTreeSet<u32>,
    /// The plan, if it touches any of the relations.
    root: Option<Rc<Node>>,
}

/// Keeps the plans of later connections out of the server's log, which only a superuser may do.
pub async fn without_log(url: &str) {
    let silence = "do $$ begin
        execute format('alter database %I set log_min_messages = fatal', current_database());
    end $$";
    superuser(url).await.batch_execute(silence).await.expect("set");
}

impl Planner {
    /// Opens a connection with `cache` as its `plan_cache_mode`, for plans that touch any of the
    /// relations. The mode is fixed, because PostgreSQL otherwise switches from custom to generic
    /// plans by itself.
    pub async fn connect(url: &str, cache: &str, relations: BTreeSet<u32>) -> Self {
        let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
        let (sender, plans) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && let Some(plan) = notice.detail().filter(|detail| detail.starts_with("{PLANNEDSTMT"))
                {
                    let _ = sender.send(plan.replace('\n', " ")); // fails only when the test is over
                }
            }
        });
        let tell = "set debug_print_plan = on; set debug_pretty_print = off; set client_min_messages = log";
        client.batch_execute(&format!("{tell}; set plan_cache_mode = {cache}")).await.expect("set");
        Self { client, plans, relations, known: HashMap::new() }
    }

    /// Plans one call in a transaction that is rolled back. Earlier plans are forgotten first, so
    /// that all plans of the call are made and printed again.
    pub async fn plan(&mut self, call: &str) -> Planned {
        self.client.batch_execute("deallocate all; discard plans; begin").await.expect("begun");
        while self.plans.try_recv().is_ok() {}
        match self.client.batch_execute(call).await {
            Err(error) if error.code().is_some_and(|code| code.code() == "TL001") => {} // a message does not exist
            done => done.unwrap_or_else(|error| panic!("{call}: {error:?}")),
        }
        self.client.batch_execute("rollback").await.expect("rolled back");
        let mut planned = Planned::default();
        // The connection has passed on all plans before it passed on the answer to the rollback.
        while let Ok(plan) = self.plans.try_recv() {
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&plan);
            let printed = self.known.entry(hash).or_insert_with(|| Printed::parse(&plan, &self.relations));
            planned.calls.extend(&printed.calls);
            planned.plans.extend(printed.root.clone());
        }
        planned
    }
}

impl Printed {
    fn parse(plan: &str, relations: &BTreeSet<u32>) -> Self {
        let touches = oids(plan, ":relid ").any(|oid| relations.contains(&oid));
        Self { calls: oids(plan, ":funcid ").collect(), root: touches.then(|| Rc::new(Node::parse(plan))) }
    }
}

/// Returns the numbers after a field's name.
fn oids<'a>(plan: &'a str, field: &'a str) -> impl Iterator<Item = u32> + 'a {
    let behind = plan.split(field).skip(1);
    behind.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
}
