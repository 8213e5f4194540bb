//! The programs beside a server, of the same version.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use trunkline_embedded::Binaries;

use crate::{
    fixture::cluster,
    required::{Part, skipped},
    versions::found,
};

pub struct Tools(Binaries);

impl Tools {
    /// Of the server of the other tests, or of the newest that has them: one that was fetched for users comes without.
    pub fn found(needed: &[&str]) -> Option<Self> {
        let others = found();
        let all = [cluster().binaries().clone()].into_iter().chain(others.into_values().rev());
        let mut whole = all.filter(|binaries| has(binaries, needed));
        whole.next().map(Self).or_else(|| missing(needed))
    }

    pub fn of(binaries: &Binaries, needed: &[&str]) -> Option<Self> {
        if has(binaries, needed) { Some(Self(binaries.clone())) } else { missing(needed) }
    }

    pub fn binaries(&self) -> Binaries {
        self.0.clone()
    }

    pub fn is_root() -> bool {
        let output = Command::new("id").arg("-u").output().expect("it runs");
        output.stdout.trim_ascii() == b"0"
    }

    /// What a program prints.
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

fn has(binaries: &Binaries, needed: &[&str]) -> bool {
    needed.iter().all(|program| binaries.dir().join(program).exists())
}

fn missing(needed: &[&str]) -> Option<Tools> {
    skipped(Part::Tools, &format!("no PostgreSQL here has {}: see .ci/versions", needed.join(", ")));
    None
}
