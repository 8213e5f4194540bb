//! Faults of the machine on which the server runs: its disk and its clock.

use std::time::Duration;

use super::strike::Scene;
use crate::random::Random;

const ABSENT: &str = "it was not prepared";

impl Scene {
    pub(super) async fn slow_disk(&mut self, random: &mut Random, lasts: u64) -> Result<String, String> {
        let millis = random.within(5, 300);
        let set = |scene: &Self, millis| {
            let disk = scene.ground.disk.as_ref().ok_or(ABSENT)?;
            disk.fsync_takes(Duration::from_millis(millis)).map_err(|error| error.to_string())
        };
        set(self, millis)?;
        self.pass(lasts).await?;
        set(self, 0)?;
        Ok(format!("{millis} ms an fsync"))
    }

    /// Fills the disk for the tables only, or also for the log. A full log may end the server.
    pub(super) async fn full_disk(&mut self, random: &mut Random, lasts: u64) -> Result<String, String> {
        let data = self.ground.cluster.data_dir();
        let (folder, full) = if random.chance(50) { (data.join("base"), "tables") } else { (data, "everything") };
        let set = |scene: &Self, folder| {
            let disk = scene.ground.disk.as_ref().ok_or(ABSENT)?;
            disk.is_full_below(folder).map_err(|error| error.to_string())
        };
        set(self, Some(&*folder))?;
        self.pass(lasts).await?;
        set(self, None)?;
        // Starts the server again if it has ended: without room for its log it exits, and it can
        // start only once there is room.
        for _ in 0..50 {
            if self.client().await.is_ok() {
                return Ok(full.to_owned());
            }
            if self.ground.cluster.pid().is_none() {
                self.ground.cluster.start_again().map_err(|error| error.to_string())?;
                return Ok(format!("{full}; the server had ended"));
            }
            self.pass(100).await?;
        }
        Err("the server did not come back when there was room again".to_owned())
    }

    pub(super) async fn clock(&mut self, random: &mut Random, lasts: u64) -> Result<String, String> {
        let by = random.within(500, 9_000) as i64 * if random.chance(50) { 1 } else { -1 };
        let set = |scene: &Self, by| {
            let disk = scene.ground.disk.as_ref().ok_or(ABSENT)?;
            disk.clock_is_ahead_by(by).map_err(|error| error.to_string())
        };
        set(self, by)?;
        self.pass(lasts).await?;
        set(self, 0)?;
        Ok(format!("by {by} ms"))
    }
}
