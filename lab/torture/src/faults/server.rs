//! Faults of the server, and of its backends.

use tokio_postgres::NoTls;
use trunkline_embedded::Stop;

use super::strike::Scene;
use crate::{ground, random::Random};

impl Scene {
    pub(super) async fn terminate(&mut self, random: &mut Random) -> Result<String, String> {
        let most = random.within(1, 12) as i64;
        let text = "select count(pg_terminate_backend(a.pid)) from (
                        select pid from pg_stat_activity where usename = 'torture' order by random() limit $1) a";
        let row = self.client().await?.query_one(text, &[&most]).await.map_err(|error| error.to_string())?;
        Ok(format!("{} backends", row.get::<_, i64>(0)))
    }

    pub(super) fn crash(&mut self) -> Result<String, String> {
        self.ground.cluster.restart(Stop::Immediate).map_err(|error| error.to_string())?;
        Ok("immediate, then a recovery".to_owned())
    }

    /// Holds a snapshot, so that no vacuum can remove rows that die in the meantime.
    pub(super) async fn snapshot(&mut self, lasts: u64) -> Result<String, String> {
        let held = ground::client(&self.ground.direct()).await?;
        let begin = "begin isolation level repeatable read; select count(*) from ledger";
        held.batch_execute(begin).await.map_err(|error| error.to_string())?;
        self.pass(lasts).await?;
        drop(held);
        Ok(format!("held for {lasts} ms"))
    }

    pub(super) async fn autovacuum(&mut self, lasts: u64) -> Result<String, String> {
        let set = async |scene: &mut Self, text: &str| {
            let client = scene.client().await?;
            for text in [text, "select pg_reload_conf()"] {
                client.batch_execute(text).await.map_err(|error| error.to_string())?;
            }
            Ok::<(), String>(())
        };
        set(self, "alter system set autovacuum = off").await?;
        self.pass(lasts).await?;
        set(self, "alter system reset autovacuum").await?;
        Ok(format!("off for {lasts} ms"))
    }

    /// Uses up all connections and ends the sessions of the processes, so that each process needs
    /// new connections.
    pub(super) async fn connections(&mut self, lasts: u64) -> Result<String, String> {
        let url = format!("{} user=torture application_name=crowd", self.ground.direct());
        let mut crowd = Vec::new();
        while let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await {
            crowd.push((client, tokio::spawn(connection)));
            if crowd.len() > 500 {
                return Err("500 connections were no crowd".to_owned());
            }
        }
        let text = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'torture' and application_name <> 'crowd'";
        self.client().await?.batch_execute(text).await.map_err(|error| error.to_string())?;
        while let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await {
            crowd.push((client, tokio::spawn(connection)));
        }
        self.pass(lasts).await?;
        Ok(format!("{} taken for {lasts} ms, the processes' own ended", crowd.len()))
    }
}
