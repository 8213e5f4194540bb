//! Starts, stops, kills and restarts the processes of a run.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::folder::Folder;

/// The time limit for a process to end. It is long enough for a worker to wait for its handlers.
const END: Duration = Duration::from_secs(20);

/// A process to start: its role, its number in the run, and the file of its history.
pub struct Start<'a> {
    pub part: &'a str,
    pub nr: u64,
    pub history: PathBuf,
}

/// Makes the command that starts a process.
pub type Launch = Box<dyn Fn(&Start) -> std::io::Result<Command> + Send>;

/// A running process, which may have replaced earlier processes.
pub struct Member {
    part: String,
    place: usize,
    /// The number of earlier processes with this number.
    starts: usize,
    child: Child,
}

impl Member {
    /// Returns the process's name, such as `producer-1.0`.
    pub fn name(&self) -> String {
        name(&self.part, self.place, self.starts)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

fn name(part: &str, place: usize, start: usize) -> String {
    format!("{part}-{place}.{start}")
}

pub struct Crew {
    folder: Folder,
    launch: Launch,
    next_nr: u64,
    pub members: Vec<Member>,
    /// Reports of processes that ended without a request, or did not end on request.
    pub misbehaved: Vec<String>,
}

impl Crew {
    pub fn new(folder: Folder, launch: Launch) -> Self {
        Self { folder, launch, next_nr: 1, members: Vec::new(), misbehaved: Vec::new() }
    }

    pub fn add(&mut self, part: &str) -> Result<(), String> {
        let place = self.members.iter().filter(|member| member.part == part).count();
        let child = self.start(part, place, 0)?;
        self.members.push(Member { part: part.to_owned(), place, starts: 0, child });
        Ok(())
    }

    fn start(&mut self, part: &str, place: usize, start: usize) -> Result<Child, String> {
        let name = name(part, place, start);
        let failed = |error: std::io::Error| format!("cannot start {name}: {error}");
        let words = File::create(self.folder.words(&name)).map_err(failed)?;
        let start = Start { part, nr: self.next_nr, history: self.folder.history(&name) };
        let mut command = (self.launch)(&start).map_err(failed)?;
        // The process ends when its input ends. So it also ends when this process ends.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(words);
        self.next_nr += 1;
        command.spawn().map_err(failed)
    }

    /// Kills a process with SIGKILL, and starts another process as its replacement.
    pub fn kill(&mut self, at: usize) -> Result<String, String> {
        let killed = self.members[at].name();
        let failed = |error: std::io::Error| format!("cannot kill {killed}: {error}");
        self.members[at].child.kill().map_err(failed)?;
        self.members[at].child.wait().map_err(failed)?;
        self.again(at)?;
        Ok(killed)
    }

    fn again(&mut self, at: usize) -> Result<(), String> {
        let (part, place, starts) =
            (self.members[at].part.clone(), self.members[at].place, self.members[at].starts + 1);
        let child = self.start(&part, place, starts)?;
        self.members[at] = Member { part, place, starts, child };
        Ok(())
    }

    /// Records the processes that ended without a request, and restarts them.
    pub fn look_after(&mut self) -> Result<(), String> {
        for at in 0..self.members.len() {
            if let Ok(Some(status)) = self.members[at].child.try_wait() {
                self.misbehaved.push(format!("{} ended by itself: {status}", self.members[at].name()));
                self.again(at)?;
            }
        }
        Ok(())
    }

    /// Asks all processes to end, and waits for them.
    pub fn end(&mut self) {
        let members = std::mem::take(&mut self.members);
        self.wait_for(members);
    }

    /// Ends the processes of one role.
    pub fn end_part(&mut self, part: &str) {
        let (ending, staying) = std::mem::take(&mut self.members).into_iter().partition(|member| member.part == part);
        self.members = staying;
        self.wait_for(ending);
    }

    fn wait_for(&mut self, mut members: Vec<Member>) {
        for member in &mut members {
            drop(member.child.stdin.take());
        }
        for mut member in members {
            let name = member.name();
            match ended(&mut member.child, END) {
                Some(status) if status.success() => {}
                Some(status) => self.misbehaved.push(format!("{name} ended with {status}")),
                None => {
                    self.misbehaved.push(format!("{name} did not end within {} s of being told to", END.as_secs()));
                    let _ = member.child.kill();
                    let _ = member.child.wait();
                }
            }
        }
    }

    /// Runs one process to its end.
    pub fn run(&mut self, part: &str, longest: Duration) -> Result<(), String> {
        let name = name(part, 0, 0);
        let mut child = self.start(part, 0, 0)?;
        match ended(&mut child, longest) {
            Some(status) if status.success() => {}
            Some(status) => self.misbehaved.push(format!("{name} ended with {status}")),
            None => {
                self.misbehaved.push(format!("{name} did not end within {} s", longest.as_secs()));
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = signal(member.pid(), "CONT");
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

fn ended(child: &mut Child, longest: Duration) -> Option<std::process::ExitStatus> {
    let until = Instant::now() + longest;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() > until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends STOP or CONT to a process of the run.
pub fn signal(pid: u32, name: &str) -> Result<(), String> {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("kill -s {name} {pid}: {status}")),
        Err(error) => Err(format!("cannot run kill: {error}")),
    }
}
