//! Runs the broker's own load tool, with the same message size and the same durability.

use std::process::Stdio;

use tokio::process::Command;

use crate::{Outcome, brokers::Kind, place::Place};

/// Returns messages per second. Fails if the broker has no such tool.
pub async fn rate(place: &Place, name: &str, messages: usize) -> Outcome<f64> {
    let addr = place.addr;
    let (program, arguments) = match place.kind {
        Kind::Kafka => {
            place.make(name).await?;
            let class = "org.apache.kafka.tools.ProducerPerformance";
            let rest = format!(
                "{class} --topic {name} --num-records {messages} --record-size 100 --throughput -1 --producer-props bootstrap.servers={addr} acks=all enable.idempotence=true"
            );
            ("kafka-run-class.sh", rest)
        }
        Kind::Rabbitmq => {
            let rest = format!(
                "--uri amqp://{addr} --queue {name} --queue-args x-queue-type=stream --auto-delete false --flag persistent --flag mandatory --producers 1 --consumers 0 --size 100 --confirm 1000 --pmessages {messages}"
            );
            ("rabbitmq-perf-test", rest)
        }
        Kind::Nats => {
            place.make(name).await?;
            (
                "nats",
                format!(
                    "bench {name} --server nats://{addr} --js --pub 1 --stream {name} --msgs {messages} --size 100 --pubbatch 1000 --no-progress"
                ),
            )
        }
        Kind::Redis => {
            let body = "x".repeat(100);
            (
                "redis-benchmark",
                format!("-h {} -p {} -n {messages} -c 8 -P 125 -q XADD {name} * body {body}", addr.ip(), addr.port()),
            )
        }
    };
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).stdin(Stdio::null());
    let said = command.output().await.map_err(|cause| format!("{program}: {cause}"))?;
    let text = format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    let first = text.lines().next().unwrap_or_default();
    read(place.kind, &text).ok_or_else(|| format!("{program} said: {first}").into())
}

/// Reads the rate of the whole run from the tool's output.
fn read(kind: Kind, said: &str) -> Option<f64> {
    let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
    let before = |marker: &str| {
        said.lines()
            .rev()
            .find_map(|line| line.split(marker).next().filter(|_| line.contains(marker))?.split_whitespace().last())
    };
    match kind {
        Kind::Kafka => number(before(" records/sec")?),
        Kind::Nats => number(before(" msgs/sec")?),
        Kind::Redis => number(before(" requests per second")?),
        Kind::Rabbitmq => said.lines().rev().find_map(|line| {
            let rest = line.split("sending rate avg: ").nth(1)?;
            number(rest.split_whitespace().next()?)
        }),
    }
}
