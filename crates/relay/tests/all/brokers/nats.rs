use std::{fs, process::Command};

use super::{Home, command_of};

/// Returns the command that runs NATS with `JetStream`. NATS syncs each write before the
/// confirmation, if the version supports that.
pub(super) fn command(home: &Home) -> Command {
    let mut command = command_of("nats-server");
    fs::write(home.folder.join("nats.conf"), &home.lines).expect("a file");
    command.args(["-c", "nats.conf"]);
    command.args(["-a", "127.0.0.1", "-p", &home.ports[0].to_string(), "-js", "-sd"]).arg(home.folder.join("data"));
    command
}
