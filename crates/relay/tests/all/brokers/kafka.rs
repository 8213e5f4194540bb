use std::{ffi::OsString, fs, path::Path, process::Command, sync::OnceLock};

use super::{Home, command_of};

/// The request for supported versions, which every broker answers. Its fields are the length, API
/// key 18, version 0, correlation id 1, and no client name.
pub(super) const VERSIONS: &[u8] = &[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255];

/// Java settings for a fast start.
const HEAP: &str = "-Xms128m -Xmx512m";
const MACHINE: &str = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true";

/// The files of a formatted folder. A process formats one folder and copies it for other brokers:
/// the files do not depend on a broker's ports, and a Java VM takes more than a second.
static FILES: OnceLock<Vec<(OsString, Vec<u8>)>> = OnceLock::new();

/// Writes the configuration, and formats the data's folder before the first start. One node is both
/// broker and controller.
pub(super) fn format(home: &Home) {
    let [clients, controllers, inside, tls] = home.ports;
    // Adds a TLS listener only if there is a certificate, because otherwise the broker does not
    // start.
    let tls = if home.lines.contains("ssl.keystore") { format!(",TLS://127.0.0.1:{tls}") } else { String::new() };
    let (advertised, data) = (home.advertised, home.folder.join("data"));
    let properties = [
        "process.roles=broker,controller".to_owned(),
        "node.id=1".to_owned(),
        format!("controller.quorum.voters=1@127.0.0.1:{controllers}"),
        format!(
            "listeners=CLIENTS://127.0.0.1:{clients},BROKERS://127.0.0.1:{inside},CONTROLLERS://127.0.0.1:{controllers}{tls}"
        ),
        format!("advertised.listeners=CLIENTS://127.0.0.1:{advertised},BROKERS://127.0.0.1:{inside}{tls}"),
        "listener.security.protocol.map=CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLERS:PLAINTEXT,TLS:SSL".to_owned(),
        "inter.broker.listener.name=BROKERS".to_owned(),
        "controller.listener.names=CONTROLLERS".to_owned(),
        format!("log.dirs={}", data.display()),
        "auto.create.topics.enable=false".to_owned(),
        "offsets.topic.num.partitions=1".to_owned(),
        "offsets.topic.replication.factor=1".to_owned(),
        "transaction.state.log.num.partitions=1".to_owned(),
        "transaction.state.log.replication.factor=1".to_owned(),
        "transaction.state.log.min.isr=1".to_owned(),
        "group.initial.rebalance.delay.ms=0".to_owned(),
        // Makes the controller accept a broker again soon after its crash.
        "broker.session.timeout.ms=3000".to_owned(),
        "broker.heartbeat.interval.ms=500".to_owned(),
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer".to_owned(),
        "allow.everyone.if.no.acl.found=true".to_owned(),
        home.lines.clone(),
    ];
    fs::write(home.folder.join("server.properties"), properties.join("\n")).expect("a file");
    let files = FILES.get_or_init(|| formatted(home, &data));
    fs::create_dir_all(&data).expect("a folder");
    for (name, bytes) in files {
        fs::write(data.join(name), bytes).expect("a file");
    }
}

/// Formats a folder. Returns the names and contents of its files.
fn formatted(home: &Home, data: &Path) -> Vec<(OsString, Vec<u8>)> {
    let mut command = tool(home, "kafka.tools.StorageTool");
    command.args(["format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", "server.properties"]);
    let made = command.output().expect("Java starts");
    assert!(made.status.success(), "Kafka's folder cannot be made: {}", String::from_utf8_lossy(&made.stderr));
    let files = fs::read_dir(data).expect("its folder").map(|file| file.expect("a file"));
    files.map(|file| (file.file_name(), fs::read(file.path()).expect("a file"))).collect()
}

pub(super) fn command(home: &Home) -> Command {
    let mut command = java(home, "kafka.Kafka");
    command.arg("server.properties");
    command
}

/// Returns the command of one of Kafka's tools.
pub(super) fn tool(home: &Home, class: &str) -> Command {
    let mut command = java(home, class);
    command.current_dir(&home.folder);
    command
}

fn java(home: &Home, class: &str) -> Command {
    let mut command = command_of("kafka-run-class.sh");
    command
        .arg(class)
        .env("KAFKA_HEAP_OPTS", HEAP)
        .env("KAFKA_JVM_PERFORMANCE_OPTS", MACHINE)
        .env("LOG_DIR", home.folder.join("logs"));
    command
}
