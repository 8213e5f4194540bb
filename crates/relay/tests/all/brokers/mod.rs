//! Real brokers on loopback, each with its own ports and folder. A broker ends when its value is
//! dropped or when this process ends.

mod kafka;
mod nats;
mod process;
mod rabbitmq;
mod redis;

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

pub use self::process::Process;
use self::process::Watchdog;

/// The time limit for a broker's start. A Java or Erlang VM starts slowly while other tests run.
const STARTED: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Nats,
    Redis,
    Rabbitmq,
    Kafka,
}

impl Kind {
    /// Returns the programs that the broker needs.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Nats => &["nats-server"],
            Self::Redis => &["redis-server"],
            Self::Rabbitmq => &["rabbitmq-server", "epmd", "erl"],
            Self::Kafka => &["kafka-run-class.sh", "java"],
        }
    }
}

pub struct Broker {
    kind: Kind,
    home: Home,
    process: Process,
    /// Processes that the broker needs from its first start to its end.
    _beside: Vec<Process>,
    // Declared last, so that it finds no process left and removes the folder.
    _watchdog: Watchdog,
}

struct Home {
    folder: PathBuf,
    /// The first port is for clients, the last one for clients with TLS, and the broker uses the
    /// others.
    ports: [u16; 4],
    /// The port that clients connect to, which may be a proxy's.
    advertised: u16,
    /// Further lines of the configuration.
    lines: String,
}

/// Settings of a broker in addition to the defaults of all tests.
#[derive(Debug, Default)]
pub struct Setup<'a> {
    /// Files in the broker's folder.
    pub files: &'a [(&'a str, &'a str)],
    /// Lines of the configuration, in the broker's own language. `FOLDER` stands for the files'
    /// folder, and `PORT` for the TLS port.
    pub lines: &'a [&'a str],
}

impl Broker {
    /// Starts a broker and waits until it accepts connections.
    #[track_caller]
    pub fn start(kind: Kind) -> Self {
        Self::behind(kind, |port| port)
    }

    /// Starts a broker like [`Broker::start`], behind a proxy: `proxy` receives the broker's own
    /// port and returns the port for clients. Kafka advertises that port.
    #[track_caller]
    pub fn behind(kind: Kind, proxy: impl FnOnce(u16) -> u16) -> Self {
        Self::set_up(kind, &Setup::default(), proxy)
    }

    /// Starts a broker like [`Broker::start`], with further lines of configuration.
    #[track_caller]
    pub fn with(kind: Kind, setup: &Setup<'_>) -> Self {
        Self::set_up(kind, setup, |port| port)
    }

    #[track_caller]
    fn set_up(kind: Kind, setup: &Setup<'_>, proxy: impl FnOnce(u16) -> u16) -> Self {
        if let Some(missing) = kind.programs().iter().find(|name| program(name).is_none()) {
            panic!("there is no {missing} in PATH: see .ci/brokers");
        }
        let folder = new_folder();
        let watchdog = Watchdog::start(&folder).expect("a shell starts");
        let ports = free_ports();
        for (name, text) in setup.files {
            fs::write(folder.join(name), text).expect("a file");
        }
        let filled = |line: &&str| {
            line.replace("FOLDER", &folder.display().to_string()).replace("PORT", &ports[3].to_string()) + "\n"
        };
        let lines = setup.lines.iter().map(filled).collect();
        let home = Home { folder, ports, advertised: proxy(ports[0]), lines };
        let beside = match kind {
            Kind::Rabbitmq => vec![rabbitmq::names(&home)],
            Kind::Kafka => {
                kafka::format(&home);
                Vec::new()
            }
            Kind::Nats | Kind::Redis => Vec::new(),
        };
        let process = launch(kind, &home);
        Self { kind, home, process, _beside: beside, _watchdog: watchdog }
    }

    /// Returns the address for clients.
    pub fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.home.advertised).into()
    }

    /// Returns the broker's own address, bypassing any proxy.
    pub fn direct(&self) -> SocketAddr {
        // Uses the listener to whose address Kafka redirects its clients.
        let port = if self.kind == Kind::Kafka { self.home.ports[2] } else { self.home.ports[0] };
        ([127, 0, 0, 1], port).into()
    }

    /// Returns the address for clients with TLS, if the broker is configured for them.
    pub fn tls(&self) -> SocketAddr {
        // Returns the same port for NATS, which greets every client first, and then starts TLS.
        let port = if self.kind == Kind::Nats { self.home.ports[0] } else { self.home.ports[3] };
        ([127, 0, 0, 1], port).into()
    }

    /// Returns the path of a file in the broker's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.folder.join(name)
    }

    /// Forbids all writes to a Kafka topic.
    pub fn forbid_writing(&self, topic: &str) {
        let mut tool = kafka::tool(&self.home, "org.apache.kafka.tools.AclCommand");
        tool.args(["--bootstrap-server", &self.direct().to_string(), "--add", "--deny-principal", "User:*"]);
        let said = tool.args(["--operation", "Write", "--topic", topic, "--force"]).output().expect("Java starts");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    /// Starts a program that uses the broker. Like the broker, the program ends with this process.
    /// Its output goes to a [log](Self::said).
    pub fn serve(&self, command: Command, log: &str) -> Process {
        Process::start(command, &self.home.folder, log)
    }

    /// Returns the contents of a log.
    pub fn said(&self, log: &str) -> String {
        fs::read_to_string(self.home.folder.join(log)).unwrap_or_default()
    }

    /// Kills the broker abruptly, and waits for its end.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Shuts down the broker, and waits for its end.
    pub fn end(&mut self) {
        // ignores the exit status, because Java and Erlang exit with their own codes after the
        // signal
        let _ = self.process.end();
    }

    /// Starts the broker at the same address after it was killed or ended, and waits until it
    /// accepts connections.
    pub fn start_again(&mut self) {
        self.process = launch(self.kind, &self.home);
    }

    /// Pauses the broker. Its connections stay open.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Resumes the broker after a pause.
    pub fn go_on(&self) {
        self.process.go_on();
    }
}

fn launch(kind: Kind, home: &Home) -> Process {
    let command = match kind {
        Kind::Nats => nats::command(home),
        Kind::Redis => redis::command(home),
        Kind::Rabbitmq => rabbitmq::command(home),
        Kind::Kafka => kafka::command(home),
    };
    let mut process = Process::start(command, &home.folder, "log");
    let deadline = Instant::now() + STARTED;
    let greeting: &[u8] = match kind {
        Kind::Nats => b"",
        Kind::Redis => b"PING\r\n",
        Kind::Rabbitmq => b"AMQP\0\0\x09\x01",
        Kind::Kafka => kafka::VERSIONS,
    };
    while !answers(home.ports[0], greeting) {
        let said = || fs::read_to_string(home.folder.join("log")).unwrap_or_default();
        assert!(process.runs(), "{kind:?} has ended:\n{}", said());
        assert!(Instant::now() < deadline, "{kind:?} does not start:\n{}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    process
}

/// Returns true if a server on the port answers a greeting.
fn answers(port: u16, greeting: &[u8]) -> bool {
    let patience = Duration::from_secs(2);
    let Ok(mut socket) = TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), patience) else { return false };
    let _ = socket.set_read_timeout(Some(patience));
    socket.write_all(greeting).is_ok() && matches!(socket.read(&mut [0; 16]), Ok(1..))
}

/// Creates a temporary folder for a broker's files. Only this user may write there.
fn new_folder() -> PathBuf {
    let name = |number: u32| std::env::temp_dir().join(format!("trunkline-broker-{}-{number}", std::process::id()));
    let folder = (0..u32::MAX).map(name).find(|folder| fs::create_dir(folder).is_ok()).expect("a new folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
    folder
}

/// Returns ports below the range of outgoing connections, so that no other process takes a broker's
/// port while the broker is down.
fn free_ports() -> [u16; 4] {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Starts from another port in each test process.
    let place = |number: u32| (12_000 + (std::process::id() * 97 + number) % 18_000) as u16;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut free = std::iter::repeat_with(|| place(NEXT.fetch_add(1, Ordering::Relaxed))).filter(is_free);
    std::array::from_fn(|_| free.next().expect("some port is free"))
}

/// Finds a program in PATH. Debian's RabbitMQ puts a script into PATH that changes to a user
/// without rights here, so RabbitMQ's own programs are tried first.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let (first, last) = (PathBuf::from("/usr/lib/rabbitmq/bin"), PathBuf::from("/usr/sbin"));
    let folders = std::iter::once(first).chain(std::env::split_paths(&path)).chain([last]);
    folders.map(|folder| folder.join(name)).find(|found| found.exists())
}

fn command_of(name: &str) -> Command {
    Command::new(program(name).expect("it was there at the start"))
}
