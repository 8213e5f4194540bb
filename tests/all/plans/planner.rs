//! The plans that PostgreSQL makes for a call.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::node::Node;

/// The result of planning one call.
#[derive(Debug, Default)]
pub struct Planned {
    /// The plans that touch any of the relations.
    pub plans: Vec<Node>,
    /// The oids of all functions in all plans.
    pub calls: BTreeSet<u32>,
}

/// A new connection that prints its plans.
pub struct Planner {
    client: Client,
    plans: mpsc::UnboundedReceiver<String>,
}

impl Planner {
    /// Opens a connection with `cache` as its `plan_cache_mode`. The mode is fixed, because
    /// PostgreSQL otherwise switches from custom to generic plans by itself.
    pub async fn connect(url: &str, cache: &str) -> Self {
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
        Self { client, plans }
    }

    /// Plans one call in a transaction that is rolled back.
    pub async fn plan(mut self, call: &str, relations: &BTreeSet<u32>) -> Planned {
        self.client.batch_execute("begin").await.expect("begun");
        match self.client.batch_execute(call).await {
            Err(error) if error.code().is_some_and(|code| code.code() == "TL001") => {} // a message does not exist
            done => done.unwrap_or_else(|error| panic!("{call}: {error:?}")),
        }
        self.client.batch_execute("rollback").await.expect("rolled back");
        drop(self.client);
        let mut planned = Planned::default();
        while let Some(plan) = self.plans.recv().await {
            planned.calls.extend(oids(&plan, ":funcid "));
            if oids(&plan, ":relid ").any(|oid| relations.contains(&oid)) {
                planned.plans.push(Node::parse(&plan));
            }
        }
        planned
    }
}

/// Returns the numbers after a field's name.
fn oids<'a>(plan: &'a str, field: &'a str) -> impl Iterator<Item = u32> + 'a {
    let behind = plan.split(field).skip(1);
    behind.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
}
