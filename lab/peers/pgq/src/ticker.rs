use std::{
    fmt,
    io::ErrorKind,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config};
use trunkline_contender::Failure;

/// The period of ticks. The default of pgqd is one second.
const PERIOD: Duration = Duration::from_millis(10);
/// The time limit of the first tick.
const START: Duration = Duration::from_secs(10);

/// A process or a task that makes batches of events.
pub enum Ticker {
    /// PgQ's daemon, which also does the maintenance.
    Daemon(Mutex<Child>),
    /// A connection that does the main work of the daemon, for machines without pgqd.
    Connection(JoinHandle<()>),
}

impl Ticker {
    pub async fn start(url: &str, admin: &Client) -> Result<Self, Failure> {
        let file = std::env::temp_dir().join(format!("pgqd-{}.ini", std::process::id()));
        let ticker = match daemon(url, &file) {
            Err(missing) if missing.kind() == ErrorKind::NotFound => connection(url).await?,
            started => Self::Daemon(Mutex::new(started?)),
        };
        let ticks = ticker.ticks(admin).await;
        // Removes the file, which the daemon has read by this time.
        let _ = std::fs::remove_file(file);
        ticks.map(|()| ticker)
    }

    /// Fails if the ticker has stopped, because consumers would then never receive a message.
    pub fn check(&self) -> Result<(), Failure> {
        let stopped = match self {
            Self::Daemon(child) => child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()?.is_some(),
            Self::Connection(ticking) => ticking.is_finished(),
        };
        if stopped { Err(format!("{self} has stopped").into()) } else { Ok(()) }
    }

    /// Waits for the ticker's first tick. It is the second tick of the queue, because the creation
    /// of the queue made the first.
    async fn ticks(&self, admin: &Client) -> Result<(), Failure> {
        let deadline = Instant::now() + START;
        while admin.query_one("select count(*) from pgq.tick", &[]).await?.try_get::<_, i64>(0)? < 2 {
            self.check()?;
            if Instant::now() > deadline {
                return Err(format!("{self} does not tick").into());
            }
            tokio::time::sleep(PERIOD).await;
        }
        Ok(())
    }
}

/// Starts pgqd for this database. Like the contender, pgqd finds the server through the
/// environment.
fn daemon(url: &str, file: &Path) -> std::io::Result<Child> {
    let config: Config = url.parse().map_err(std::io::Error::other)?;
    let database = config.get_dbname().unwrap_or("postgres");
    let period = PERIOD.as_secs_f64();
    std::fs::write(file, format!("[pgqd]\nsyslog = 0\ndatabase_list = {database}\nticker_period = {period}\n"))?;
    // Checks that pgqd exists, because setpriv would start without it.
    Command::new("pgqd").arg("-V").stdout(Stdio::null()).status()?;
    // The kernel kills pgqd when the parent process ends.
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "pgqd", "-q"])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
}

/// Does the main work of pgqd. Its maintenance would have nothing to do here, because the tables of
/// a queue rotate only every two hours.
async fn connection(url: &str) -> Result<Ticker, Failure> {
    let client = crate::session::connect(url).await?;
    let ticking = tokio::spawn(async move {
        let mut tick = tokio::time::interval(PERIOD);
        while client.execute("select pgq.ticker()", &[]).await.is_ok() {
            tick.tick().await;
        }
    });
    Ok(Ticker::Connection(ticking))
}

impl fmt::Display for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self {
            Self::Daemon(_) => "pgqd",
            Self::Connection(_) => "pgq.ticker()",
        };
        write!(f, "{by} every {} ms", PERIOD.as_millis())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if let Self::Daemon(child) = self {
            let child = child.get_mut().unwrap_or_else(PoisonError::into_inner);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
