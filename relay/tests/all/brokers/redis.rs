use std::process::Command;

use super::{Home, command_of};

/// What is confirmed is in the append-only file, on disk.
pub(super) fn command(home: &Home) -> Command {
    let mut command = command_of("redis-server");
    command
        .args(["--bind", "127.0.0.1", "--port", &home.ports[0].to_string(), "--save", "", "--dir"])
        .arg(&home.folder);
    command.args(["--appendonly", "yes", "--appendfsync", "always"]);
    command
}
