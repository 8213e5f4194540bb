//! Changes queues while they are in use.

use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;
use trunkline::{Changes, Db};

use super::strike::Scene;
use crate::{
    plan::{self, LEASE},
    random::Random,
};

/// The errors of a mutant's compaction, which takes no lock before it copies.
const OF_MUTANTS: [&SqlState; 2] = [&SqlState::LOCK_NOT_AVAILABLE, &SqlState::T_R_DEADLOCK_DETECTED];

impl Scene {
    /// Connects as the role that owns the schema, without the proxy.
    async fn owner(&self) -> Result<Db, String> {
        let url = format!("{} user=torture", self.ground.direct());
        Db::connect(&url).await.map_err(|error| error.to_string())
    }

    pub(super) async fn alter(&mut self, random: &mut Random, lasts: u64) -> Result<String, String> {
        let (db, until) = (self.owner().await?, Instant::now() + Duration::from_millis(lasts));
        let mut altered = Vec::new();
        while Instant::now() < until {
            let (queue, max_batch) = (*random.among(&plan::QUEUES), *random.among(&[1, 3, 16, 100, 1024]));
            // Never sets a lease that is shorter than the checker assumes.
            let lease = LEASE + Duration::from_millis(random.below(1000));
            let changes = Changes::new().max_batch(max_batch).lease(lease);
            db.alter_queue(queue, &changes).await.map_err(|error| error.to_string())?;
            altered.push(format!("{queue} to {max_batch}"));
            self.pass(random.within(50, 400)).await?;
        }
        let lanes = self.more_lanes(&db).await.map_err(|error| error.to_string())?;
        altered.push(format!("{} to {lanes} lanes", plan::KEYED));
        Ok(altered.join(", "))
    }

    /// Doubles the number of partitions, up to a limit above the number of keys.
    async fn more_lanes(&self, db: &Db) -> trunkline::Result<u32> {
        let mut lanes = db.describe_queue(plan::KEYED).await?.partitions;
        if lanes < plan::MOST_LANES {
            lanes *= 2;
            // The change locks out all other sessions, and the server may cancel it because of a
            // deadlock.
            while let Err(error) = db.alter_queue(plan::KEYED, &Changes::new().partitions(lanes)).await {
                if error.sqlstate() != Some(&SqlState::T_R_DEADLOCK_DETECTED) {
                    return Err(error);
                }
            }
        }
        Ok(lanes)
    }

    pub(super) async fn compact(&mut self, lasts: u64) -> Result<String, String> {
        let (until, mut times, mut in_vain) = (Instant::now() + Duration::from_millis(lasts), 0, 0);
        while Instant::now() < until {
            for queue in plan::QUEUES {
                // Requires a negative gain, so that even a compaction that frees nothing takes
                // place.
                let text = "select refused is null from trunkline.compact($1, -1000000000)";
                match self.client().await?.query_one(text, &[&queue]).await {
                    Ok(row) if row.get(0) => times += 1,
                    Ok(_) => in_vain += 1,
                    Err(error) if error.code().is_some_and(|code| OF_MUTANTS.contains(&code)) => in_vain += 1,
                    Err(error) => return Err(error.to_string()),
                }
            }
            self.pass(20).await?;
        }
        Ok(format!("{times} times, {in_vain} without effect"))
    }

    pub(super) async fn migrate(&mut self, lasts: u64) -> Result<String, String> {
        let (db, until, mut times) = (self.owner().await?, Instant::now() + Duration::from_millis(lasts), 0);
        while Instant::now() < until {
            // Pretends that another version has migrated the schema.
            let client = self.client().await?;
            let text = "update trunkline.version set functions = 'of another version'";
            client.batch_execute(text).await.map_err(|error| error.to_string())?;
            db.migrate().await.map_err(|error| error.to_string())?;
            times += 1;
            self.pass(300).await?;
        }
        Ok(format!("{times} times"))
    }
}
