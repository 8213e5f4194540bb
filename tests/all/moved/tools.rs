//! The client programs of a server version.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use trunkline_embedded::Binaries;

use crate::{fixture::cluster, versions::found};

pub struct Tools(Binaries);

impl Tools {
    /// Finds the programs next to the tests' server, or in the newest installation that has them. A
    /// server that the launcher downloads does not include these programs.
    pub fn found(needed: &[&str]) -> Self {
        let others = found();
        let all = [cluster().binaries().clone()].into_iter().chain(others.into_values().rev());
        Self::first(all, needed)
    }

    pub fn of(binaries: &Binaries, needed: &[&str]) -> Self {
        Self::first([binaries.clone()].into_iter(), needed)
    }

    fn first(mut all: impl Iterator<Item = Binaries>, needed: &[&str]) -> Self {
        let has_all = |binaries: &Binaries| needed.iter().all(|program| binaries.dir().join(program).exists());
        let found = all.find(has_all);
        Self(found.unwrap_or_else(|| panic!("no PostgreSQL here has {}: see .ci/versions", needed.join(", "))))
    }

    pub fn binaries(&self) -> Binaries {
        self.0.clone()
    }

    pub fn is_root() -> bool {
        let output = Command::new("id").arg("-u").output().expect("it runs");
        output.stdout.trim_ascii() == b"0"
    }

    /// Runs a program and returns its output.
    pub fn run(&self, program: &str, arguments: &[&str], input: &str) -> String {
        let mut command = Command::new(self.0.dir().join(program));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_owned();
        let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        writing.join().expect("no panic").expect("it was read");
        String::from_utf8(output.stdout).expect("text")
    }
}
