//! Causes faults, and heals them.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::{Fault, Happened, Planned, fallen::Fallen};
use crate::{
    crew::{Crew, signal},
    ground::{self, Ground},
    history::now,
    random::Random,
    samples::{Sample, sample},
};

const EACH: Duration = Duration::from_secs(1);
/// The time limit for the server's restart.
const BACK: Duration = Duration::from_secs(60);

/// A run in progress.
pub struct Scene {
    pub ground: Ground,
    pub crew: Crew,
    pub samples: Vec<Sample>,
    pub happened: Vec<Happened>,
    fallen: Fallen,
    /// The connection that bypasses the proxy; `None` while the server is unreachable.
    client: Option<Client>,
    next_sample: Instant,
}

impl Scene {
    pub fn new(ground: Ground, crew: Crew) -> Self {
        Self {
            ground,
            crew,
            samples: Vec::new(),
            happened: Vec::new(),
            fallen: Fallen::default(),
            client: None,
            next_sample: Instant::now(),
        }
    }

    /// Waits, and supervises the processes during that time.
    pub async fn pass(&mut self, millis: u64) -> Result<(), String> {
        let until = Instant::now() + Duration::from_millis(millis);
        loop {
            self.crew.look_after()?;
            if Instant::now() >= self.next_sample {
                self.next_sample = Instant::now() + EACH;
                let processes: Vec<_> = self.crew.members.iter().map(|one| (one.name(), one.pid())).collect();
                if let Ok(client) = self.client().await {
                    let sample = sample(client, &processes).await;
                    self.samples.extend(sample);
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(left.min(Duration::from_millis(100))).await;
        }
    }

    pub async fn client(&mut self) -> Result<&Client, String> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = None;
        }
        let connected = match self.client.take() {
            Some(client) => client,
            None => ground::client(&self.ground.direct()).await?,
        };
        Ok(self.client.insert(connected))
    }

    /// Causes a fault, and heals it. Tries again after a failure. The server may still be down from
    /// the previous fault, may have ended because of a full disk, or may close this connection
    /// during its restart.
    pub async fn strike(&mut self, planned: &Planned) -> Result<(), String> {
        self.nothing_fell();
        let (from, deadline) = (now(), Instant::now() + BACK);
        let detail = loop {
            self.until_there().await?;
            match self.try_strike(planned).await {
                Err(_) if Instant::now() < deadline => self.pass(1000).await?,
                detail => break detail,
            }
        };
        if planned.fault == Fault::FullDisk {
            // forgets processes that ended, because a server without room for its log may end
            let _ = self.fallen.since(&self.ground.cluster.log_file());
        } else {
            self.nothing_fell();
        }
        let detail = detail.map_err(|error| format!("the fault {} did not succeed: {error}", planned.fault.name()))?;
        self.happened.push(Happened { fault: planned.fault.name(), detail, from, to: now() });
        Ok(())
    }

    /// Checks that no signal has ended a process of the server, which would end all sessions. Only
    /// a full disk may cause that.
    pub fn nothing_fell(&mut self) {
        let fallen = self.fallen.since(&self.ground.cluster.log_file());
        self.crew.misbehaved.extend(fallen.into_iter().map(|told| format!("the server's {told}")));
    }

    /// Waits until the server answers.
    async fn until_there(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + BACK;
        loop {
            let answered = match self.client().await {
                Ok(client) => client.batch_execute("select 1").await.map_err(|error| error.to_string()),
                Err(error) => Err(error),
            };
            match answered {
                Err(error) if Instant::now() > deadline => return Err(format!("the server is not back: {error}")),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                Ok(()) => return Ok(()),
            }
        }
    }

    async fn try_strike(&mut self, planned: &Planned) -> Result<String, String> {
        let mut random = Random::of(planned.draw, 0);
        match planned.fault {
            Fault::Kill => self.kill(&mut random),
            Fault::Stop => self.stop(&mut random, planned.lasts_ms).await,
            Fault::Terminate => self.terminate(&mut random).await,
            Fault::Crash => self.crash(),
            Fault::Cut => self.cut(&mut random).await,
            Fault::HalfOpen => self.half_open(planned.lasts_ms).await,
            Fault::Delay => self.delay(&mut random, planned.lasts_ms).await,
            Fault::OneWay => self.one_way(&mut random, planned.lasts_ms).await,
            Fault::Silence => self.silence(&mut random, planned.lasts_ms).await,
            Fault::Snapshot => self.snapshot(planned.lasts_ms).await,
            Fault::Autovacuum => self.autovacuum(planned.lasts_ms).await,
            Fault::Connections => self.connections(planned.lasts_ms).await,
            Fault::Alter => self.alter(&mut random, planned.lasts_ms).await,
            Fault::Migrate => self.migrate(planned.lasts_ms).await,
            Fault::Compact => self.compact(planned.lasts_ms).await,
            Fault::SlowDisk => self.slow_disk(&mut random, planned.lasts_ms).await,
            Fault::FullDisk => self.full_disk(&mut random, planned.lasts_ms).await,
            Fault::Clock => self.clock(&mut random, planned.lasts_ms).await,
        }
    }

    fn kill(&mut self, random: &mut Random) -> Result<String, String> {
        let at = random.below(self.crew.members.len() as u64) as usize;
        self.crew.kill(at)
    }

    async fn stop(&mut self, random: &mut Random, lasts: u64) -> Result<String, String> {
        let member = random.among(&self.crew.members);
        let (name, pid) = (member.name(), member.pid());
        signal(pid, "STOP")?;
        self.pass(lasts).await?;
        signal(pid, "CONT")?;
        Ok(name)
    }
}
