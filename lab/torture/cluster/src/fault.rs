//! The faults of a cluster.

use std::collections::HashSet;

use clap::ValueEnum;

use crate::{
    Failure,
    cluster::{Cluster, Roles},
    process::{Signal, signal},
    proxy::Cut,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// The primary and the synchronous standby swap roles cleanly
    Switchover,
    /// The primary's server is killed (SIGKILL); Patroni keeps running
    ServerKilled,
    /// The primary's server and Patroni are killed, as when a machine loses its power
    MachineKilled,
    /// The primary's server is stopped (SIGSTOP); Patroni keeps running
    ServerStopped,
    /// The primary's server and Patroni are stopped, as when a machine hangs, and go on after the
    /// failover
    MachineStopped,
    /// The primary's Patroni cannot reach etcd; clients and standbys still reach the primary
    CutFromEtcd,
    /// The synchronous standby is cut off from the primary; once another has taken its place, the
    /// primary's server is killed
    StandbyCut,
}

impl Fault {
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Causes the fault, and returns once it has happened. `roles` names the nodes by their current
    /// roles.
    pub async fn befall(self, cluster: &mut Cluster, roles: &Roles) -> Result<(), Failure> {
        let primary = &mut cluster.nodes[roles.primary];
        match self {
            Self::Switchover => return cluster.switch_over(roles).await,
            Self::ServerKilled => kill_server(primary),
            Self::MachineKilled => primary.kill(),
            Self::ServerStopped => signal(&primary.server(), Signal::STOP),
            Self::MachineStopped => signal(&primary.everything(), Signal::STOP),
            Self::CutFromEtcd => primary.to_etcd.cut(Cut { all: true, ..Cut::default() }),
            Self::StandbyCut => {
                let name = cluster.nodes[roles.sync].name.clone();
                cluster.nodes[roles.primary].from_others.cut(Cut { named: HashSet::from([name]), ..Cut::default() });
                cluster.until_sync_is_not(roles.sync).await?;
                kill_server(&cluster.nodes[roles.primary]);
            }
        }
        Ok(())
    }

    /// Undoes the fault, so that all nodes can take up their roles again.
    pub fn mend(self, cluster: &mut Cluster, roles: &Roles) -> Result<(), Failure> {
        let primary = &cluster.nodes[roles.primary];
        match self {
            Self::Switchover | Self::ServerKilled => {}
            Self::MachineKilled => cluster.restart(roles.primary)?,
            Self::ServerStopped | Self::MachineStopped => signal(&primary.everything(), Signal::CONT),
            Self::CutFromEtcd => primary.to_etcd.cut(Cut::default()),
            Self::StandbyCut => primary.from_others.cut(Cut::default()),
        }
        Ok(())
    }
}

fn kill_server(node: &crate::node::Node) {
    let server = node.server();
    // All processes are stopped first, so that the children cannot exit in an orderly way while
    // their parent is being killed.
    signal(&server, Signal::STOP);
    signal(&server, Signal::KILL);
}
