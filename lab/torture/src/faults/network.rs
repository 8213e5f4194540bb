//! Faults of the network between the processes and the server.

use std::time::{Duration, Instant};

use trunkline_embedded::Hold;

use super::strike::Scene;
use crate::random::Random;

impl Scene {
    pub(super) async fn cut(&mut self, random: &mut Random) -> Result<String, String> {
        let mut cuts = Vec::new();
        for _ in 0..random.within(1, 6) {
            let bytes = if random.chance(50) { random.below(200) } else { random.below(40_000) } as usize;
            let answers = random.chance(50);
            if answers {
                self.ground.proxy.cut_answers_after(Some(bytes));
            } else {
                self.ground.proxy.cut_requests_after(Some(bytes));
            }
            let until = Instant::now() + Duration::from_secs(1);
            while self.ground.proxy.is_cut_ahead() && Instant::now() < until {
                self.pass(5).await?;
            }
            cuts.push(format!("{} after {bytes} bytes", if answers { "answers" } else { "requests" }));
        }
        self.ground.proxy.cut_answers_after(None);
        self.ground.proxy.cut_requests_after(None);
        Ok(cuts.join(", "))
    }

    pub(super) async fn half_open(&mut self, lasts: u64) -> Result<String, String> {
        self.ground.proxy.leave_half_open();
        self.pass(lasts).await?;
        self.ground.proxy.cut_all();
        Ok(format!("every connection, noticed by the server after {lasts} ms"))
    }

    pub(super) async fn delay(&mut self, random: &mut Random, lasts: u64) -> Result<String, String> {
        let delay = random.within(2, 250);
        let set = |scene: &Self, millis| {
            scene.ground.proxy.set_delay(Duration::from_millis(millis)).map_err(|error| error.to_string())
        };
        set(self, delay)?;
        self.pass(lasts).await?;
        set(self, 0)?;
        Ok(format!("{delay} ms each way"))
    }

    pub(super) async fn one_way(&mut self, random: &mut Random, lasts: u64) -> Result<String, String> {
        let (hold, what) = if random.chance(50) { (Hold::Answers, "answers") } else { (Hold::Requests, "requests") };
        let end = self.hold(hold, random, lasts).await?;
        Ok(format!("{what} held for {lasts} ms, {end}"))
    }

    pub(super) async fn silence(&mut self, random: &mut Random, lasts: u64) -> Result<String, String> {
        let end = self.hold(Hold::Both, random, lasts).await?;
        Ok(format!("everything held for {lasts} ms, {end}"))
    }

    /// Holds bytes back, and afterwards either delivers or drops them.
    async fn hold(&mut self, hold: Hold, random: &mut Random, lasts: u64) -> Result<&'static str, String> {
        self.ground.proxy.hold(hold);
        self.pass(lasts).await?;
        let is_lost = random.chance(50);
        if is_lost {
            self.ground.proxy.cut_all();
        }
        self.ground.proxy.hold(Hold::Nothing);
        Ok(if is_lost { "then lost" } else { "then delivered" })
    }
}
