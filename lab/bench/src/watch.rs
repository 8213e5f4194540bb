//! Samples the wait states of the contender's sessions while the clock runs.

use std::{collections::BTreeMap, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle};
use tokio_postgres::{Client, Error};

use crate::Failure;

const EVERY: Duration = Duration::from_millis(50);
/// Counts the sessions in each state. The runner's own session is in another database.
const LOOK: &str =
    "select case when wait_event is null then 'running' else wait_event_type || ':' || wait_event end, count(*)
    from pg_stat_activity where datname = $1 and backend_type = 'client backend' and state <> 'idle' group by 1";

/// A session that samples the states of other sessions.
pub struct Watch {
    over: oneshot::Sender<()>,
    looking: JoinHandle<Result<BTreeMap<String, f64>, Error>>,
}

impl Watch {
    pub fn start(client: Client, database: &str) -> Self {
        let (over, ends) = oneshot::channel();
        Self { over, looking: tokio::spawn(look(client, database.to_owned(), ends)) }
    }

    /// Returns the average number of sessions in each state. Idle sessions are not counted.
    pub async fn end(self) -> Result<BTreeMap<String, f64>, Failure> {
        // Ignores a failure: if the sampling failed, its task has already ended, and the error is
        // returned below.
        let _ = self.over.send(());
        Ok(self.looking.await??)
    }
}

async fn look(
    client: Client,
    database: String,
    mut ends: oneshot::Receiver<()>,
) -> Result<BTreeMap<String, f64>, Error> {
    let statement = client.prepare(LOOK).await?;
    let (mut sessions, mut looks) = (BTreeMap::<String, i64>::new(), 0_u32);
    while tokio::time::timeout(EVERY, &mut ends).await.is_err() {
        for row in client.query(&statement, &[&database]).await? {
            *sessions.entry(row.get(0)).or_default() += row.get::<_, i64>(1);
        }
        looks += 1;
    }
    let average = |(what, count): (String, i64)| (what, count as f64 / f64::from(looks.max(1)));
    Ok(sessions.into_iter().map(average).collect())
}
