//! Runs one fault after another, and measures the consequences of each.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::{
    Failure,
    check::{self, Tables},
    clients::{self, Clients},
    cluster::{Cluster, Roles},
    fault::Fault,
    history::{QUEUES, Stream},
    outcome::{Failover, Outcome, Plan},
    report,
    watch::Watch,
};

const LOOK: Duration = Duration::from_millis(20);
/// The time limit of a failover. Patroni may have to wait until a key with a `ttl` of 20 seconds
/// expires.
const FAILOVER: Duration = Duration::from_secs(120);
/// The time after a promotion within which all clients must succeed. A client that succeeds later
/// counts as failed.
const NEVER: Duration = Duration::from_secs(60);
/// The time that the consumers have to drain the queues after the producers have stopped.
const DRAIN: Duration = Duration::from_secs(120);

pub async fn run(cluster: &mut Cluster, plan: &Plan) -> Result<Outcome, Failure> {
    let began = Instant::now();
    let url = format!("{} {}", cluster.url("postgres"), plan.options);
    clients::prepare(&url).await?;
    let mut clients = Clients::start(&url).await?;
    let watch = Watch::start((0..cluster.nodes.len()).map(|node| cluster.url_of(node, "postgres")).collect());
    let (mut failovers, mut violations, mut drawn) = (Vec::new(), Vec::new(), Drawn::new(plan.seed, &plan.faults));
    for number in 1..=plan.failovers {
        let roles = cluster.until_whole().await?;
        until_all_go_on(&clients, Instant::now())
            .await
            .map_err(|_| "the clients do not go on, though the cluster is whole")?;
        let failover = fail_over(cluster, &clients, &watch, &roles, drawn.next()).await?;
        eprintln!("{number}/{}: {}", plan.failovers, report::line(&failover));
        failovers.push(failover);
        let roles = cluster.until_whole().await?;
        let client = cluster.connect(roles.primary, "postgres").await?;
        let found = check::of_primary(&client, &clients.history).await?;
        violations.extend(found.into_iter().map(|found| format!("after failover {number}: {found}")));
    }
    clients.send_no_more().await?;
    let roles = cluster.until_whole().await?;
    let client = cluster.connect(roles.primary, "postgres").await?;
    violations.extend(drained(&client).await?);
    let history = clients.end().await?;
    let mut verdict = check::check(&history, &Tables::read(&client).await?, plan.failovers);
    verdict.violations.extend(violations);
    for (failover, number) in failovers.iter().zip(1..) {
        let never = failover.never();
        if !never.is_empty() {
            let (fault, never) = (failover.fault.name(), never.join(", "));
            verdict.violations.push(format!("failover {number} ({fault}): not in time: {never}"));
        }
    }
    Ok(Outcome { failovers, verdict, errors: history.errors(), lasted: began.elapsed() })
}

async fn fail_over(
    cluster: &mut Cluster,
    clients: &Clients,
    watch: &Watch,
    roles: &Roles,
    fault: Fault,
) -> Result<Failover, Failure> {
    let history = &clients.history;
    let began = Instant::now();
    fault.befall(cluster, roles).await?;
    // For this fault, the time counts from the end of `befall`, because `befall` cuts the standby
    // off first.
    let struck = if fault == Fault::StandbyCut { Instant::now() } else { began };
    let promotion = watch.after(began, FAILOVER).await;
    let (mut hears, mut commits) = (None, None);
    if let Some(promotion) = promotion {
        let elapsed = |is_so: bool| is_so.then(|| promotion.at.elapsed());
        (_, commits, hears) = tokio::join!(
            until_all_go_on(clients, promotion.at),
            async { elapsed(until_committed(cluster, promotion.node).await) },
            async { elapsed(until_heard(cluster, promotion.node).await) },
        );
    }
    fault.mend(cluster, roles)?;
    cluster.until_whole().await?;
    let since = |at: Instant| Stream::ALL.map(|(stream, _)| history.first(stream, at).map(|first| first - at)).to_vec();
    Ok(Failover {
        fault,
        from: cluster.nodes[roles.primary].name.clone(),
        to: promotion.map_or_else(|| "nobody".to_owned(), |promotion| cluster.nodes[promotion.node].name.clone()),
        promoted: promotion.map(|promotion| promotion.at - struck),
        went_on: promotion.map_or_else(|| vec![None; Stream::ALL.len()], |promotion| since(promotion.at)),
        commits,
        hears,
        outage: history.gap(Stream::Enqueue, began, Instant::now()),
        whole: began.elapsed(),
    })
}

async fn until_all_go_on(clients: &Clients, since: Instant) -> Result<(), tokio::time::error::Elapsed> {
    let all = async {
        while !clients.all_went_on(since) {
            sleep(LOOK).await;
        }
    };
    tokio::time::timeout(NEVER, all).await
}

/// Waits for the first commit. In strict mode, a new primary acknowledges a commit only when a
/// standby follows it.
async fn until_committed(cluster: &Cluster, node: usize) -> bool {
    let committed = async {
        loop {
            if let Ok(client) = cluster.connect(node, "postgres").await
                && client.batch_execute("insert into beat values (now())").await.is_ok()
            {
                return;
            }
            sleep(LOOK).await;
        }
    };
    tokio::time::timeout(NEVER, committed).await.is_ok()
}

/// Waits until a consumer is in the wait list. A consumer enters the list only while its listener
/// is connected, and the list is empty after a promotion.
async fn until_heard(cluster: &Cluster, node: usize) -> bool {
    let heard = async {
        loop {
            if let Ok(client) = cluster.connect(node, "postgres").await {
                let listed = "select exists (select from trunkline.waiting)";
                while let Ok(row) = client.query_one(listed, &[]).await {
                    if row.get(0) {
                        return;
                    }
                    sleep(LOOK).await;
                }
            }
            sleep(LOOK).await;
        }
    };
    tokio::time::timeout(NEVER, heard).await.is_ok()
}

/// Waits until the consumers have drained all queues. Returns the violations.
async fn drained(client: &tokio_postgres::Client) -> Result<Vec<String>, Failure> {
    let began = Instant::now();
    loop {
        let mut left = Vec::new();
        for queue in QUEUES {
            let text = format!(
                "select (select count(*) from trunkline.queue_{queue}), (select count(*) from trunkline.dead_{queue})"
            );
            let row = client.query_one(&text, &[]).await?;
            let (rows, dead): (i64, i64) = (row.get(0), row.get(1));
            if dead > 0 {
                return Ok(vec![format!("{queue}: {dead} dead letters, though nothing failed")]);
            }
            if rows > 0 {
                left.push(format!("{queue}: {rows} rows are left after {DRAIN:?}"));
            }
        }
        if left.is_empty() || began.elapsed() > DRAIN {
            return Ok(left);
        }
        sleep(LOOK).await;
    }
}

/// Draws faults in rounds. Each round contains every fault once, in an order that depends on the
/// seed.
struct Drawn<'a> {
    faults: &'a [Fault],
    left: Vec<Fault>,
    state: u64,
}

impl<'a> Drawn<'a> {
    fn new(seed: u64, faults: &'a [Fault]) -> Self {
        Self { faults, left: Vec::new(), state: seed }
    }

    fn next(&mut self) -> Fault {
        if self.left.is_empty() {
            self.left = self.faults.to_vec();
        }
        // SplitMix64 takes only a few lines, and generates the same numbers on every machine.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        let at = word % self.left.len() as u64;
        self.left.swap_remove(at as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_faults_and_each_turn_has_all_once() {
        let faults = [Fault::Switchover, Fault::ServerKilled, Fault::CutFromEtcd];
        let draw = |seed| {
            let mut drawn = Drawn::new(seed, &faults);
            (0..9).map(|_| drawn.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert!((0..9).any(|seed| draw(seed) != draw(7)));
        for turn in draw(7).chunks(3) {
            assert!(faults.iter().all(|fault| turn.contains(fault)));
        }
    }
}
