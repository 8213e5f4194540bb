//! The console's pages over HTTP: their numbers match SQL, and only authorized visitors can run
//! actions, which are audited.

mod pages;
mod deeds;
mod once;
mod bounds;
mod history;
mod late;
mod waits;
mod other_schema;
mod outage;
mod states;
mod unread;
mod prefix;
mod standby;
mod entry;
mod of_queue;
mod connections;
mod search;
mod sizes;

use std::{net::SocketAddr, time::Duration};

use tokio::{net::TcpListener, sync::oneshot};
use tokio_postgres::{Client, NoTls};
use trunkline::Db;
use trunkline_console::web::Console;

/// The time after which another sample of a few queues is due, even on a busy machine.
pub const SAMPLE: Duration = Duration::from_secs(120);

/// A console with a database of its own, and a session that checks its numbers.
pub struct Site {
    pub address: SocketAddr,
    pub url: String,
    pub db: Db,
    pub sql: Client,
    end: Option<oneshot::Sender<()>>,
    ended: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Site {
    pub async fn new() -> Self {
        Self::with(|console| console).await
    }

    pub async fn with(change: impl FnOnce(Console) -> Console) -> Self {
        let url = crate::migrated_database().await;
        let db = Db::connect(&url).await.expect("connected");
        let sql = connect(&url).await;
        Self::of(url, db, sql, change).await
    }

    pub async fn of(url: String, db: Db, sql: Client, change: impl FnOnce(Console) -> Console) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (end, asked) = oneshot::channel();
        let console = change(Console::new(db.clone()));
        let ended = tokio::spawn(console.serve(listener, async { drop(asked.await) }));
        Self { address, url, db, sql, end: Some(end), ended }
    }

    /// Starts another console instead. When it answers, it has sampled all queues that are there
    /// now.
    pub async fn restarted(mut self, change: impl FnOnce(Console) -> Console) -> Self {
        drop(self.end.take());
        self.ended.await.expect("no panic").expect("an orderly end");
        Self::of(self.url, self.db, self.sql, change).await
    }

    pub async fn number(&self, question: &str) -> i64 {
        self.sql.query_one(question, &[]).await.expect(question).get(0)
    }

    /// Asks the console to shut down, and waits for its end.
    pub async fn end(mut self) {
        drop(self.end.take());
        self.ended.await.expect("no panic").expect("an orderly end");
    }
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    client
}
