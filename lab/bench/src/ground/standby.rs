//! Gives the private server a synchronous standby.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use tokio_postgres::Client;
use trunkline_embedded::{Builder, Cluster, Stop};

use crate::Failure;

const SYNCHRONOUS: &str = "alter system set synchronous_standby_names = '*'";
const STANDBYS: &str = "select count(*) from pg_stat_replication where sync_state = 'sync'";
/// The time limit for the standby to follow the server.
const FOLLOWING: Duration = Duration::from_secs(60);

/// Starts a copy of the server that follows it. The copy's folder is inside the server's folder, so
/// both are removed together. The server is restarted.
pub fn standby(primary: &Cluster, settings: &[String]) -> Result<Cluster, Failure> {
    let data = primary.data_dir();
    let folder = data.parent().ok_or("the server has no folder")?.join("standby");
    let settings = settings.iter().filter_map(|setting| setting.split_once('='));
    let copy = settings.fold(Cluster::at(folder), |copy: Builder, (name, value)| copy.setting(name, value));
    let copy = copy
        .binaries(primary.binaries().clone())
        .setting("max_connections", "600")
        .setting("primary_conninfo", primary.url("postgres"))
        .start()?;
    copy.stop(Stop::Fast)?;
    primary.stop(Stop::Fast)?;
    fs::remove_dir_all(copy.data_dir())?;
    let copied = Command::new("cp").arg("-a").arg(&data).arg(copy.data_dir()).status()?;
    if !copied.success() {
        return Err(format!("cannot copy {}: cp: {copied}", data.display()).into());
    }
    fs::write(copy.data_dir().join("standby.signal"), "")?;
    primary.start_again()?;
    copy.start_again()?;
    Ok(copy)
}

/// Makes each commit of the server wait for its standby.
pub async fn synchronous(admin: &Client) -> Result<(), Failure> {
    admin.batch_execute(SYNCHRONOUS).await?;
    admin.batch_execute("select pg_reload_conf()").await?;
    let patience = Instant::now() + FOLLOWING;
    while admin.query_one(STANDBYS, &[]).await?.get::<_, i64>(0) == 0 {
        if Instant::now() > patience {
            return Err("the standby does not follow the server".into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
