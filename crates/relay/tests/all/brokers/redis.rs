use std::{fs, process::Command};

use super::{Home, command_of};

/// Returns the command that runs Redis with an append-only file. Redis syncs the file before each
/// confirmation.
pub(super) fn command(home: &Home) -> Command {
    let mut command = command_of("redis-server");
    fs::write(home.folder.join("redis.conf"), &home.lines).expect("a file");
    command
        .arg("redis.conf")
        .args(["--bind", "127.0.0.1", "--port", &home.ports[0].to_string(), "--save", "", "--dir"])
        .arg(&home.folder);
    command.args(["--appendonly", "yes", "--appendfsync", "always"]);
    command
}
