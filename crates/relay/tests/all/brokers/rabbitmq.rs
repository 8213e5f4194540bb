use std::{fs, process::Command};

use super::{Home, Process, command_of};

/// Runs epmd, through which Erlang's nodes find each other, one per broker. If a node started epmd
/// itself, epmd would outlive the node.
pub(super) fn names(home: &Home) -> Process {
    let mut command = command_of("epmd");
    command.args(["-port", &home.ports[2].to_string(), "-address", "127.0.0.1"]);
    Process::start(command, &home.folder, "epmd.log")
}

pub(super) fn command(home: &Home) -> Command {
    let [clients, nodes, names, _] = home.ports.map(|port| port.to_string());
    let lines = format!("log.console = true\nlog.console.level = warning\n{}", home.lines);
    let inside = |name: &str| home.folder.join(name);
    for file in ["enabled_plugins", "environment.conf", "rabbitmq.conf"] {
        let text = match file {
            "enabled_plugins" => "[].",
            "rabbitmq.conf" => &lines,
            _ => "",
        };
        fs::write(inside(file), text).expect("a file");
    }
    let mut command = command_of("rabbitmq-server");
    command.env("HOME", &home.folder).env("ERL_EPMD_PORT", names).env("ERL_EPMD_ADDRESS", "127.0.0.1");
    command.env("RABBITMQ_NODENAME", format!("trunkline{clients}@localhost"));
    command.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1").env("RABBITMQ_NODE_PORT", &clients);
    command.env("RABBITMQ_DIST_PORT", nodes);
    command.env("RABBITMQ_MNESIA_BASE", inside("data")).env("RABBITMQ_LOG_BASE", inside("logs"));
    command.env("RABBITMQ_PID_FILE", inside("node.pid")).env("RABBITMQ_LOGS", "-");
    command.env("RABBITMQ_ENABLED_PLUGINS_FILE", inside("enabled_plugins"));
    command
        .env("RABBITMQ_CONFIG_FILE", inside("rabbitmq.conf"))
        .env("RABBITMQ_CONF_ENV_FILE", inside("environment.conf"));
    command.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1} +S 2");
    command
}
