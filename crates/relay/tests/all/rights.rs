//! A relay that may write only to some destinations. Messages to other destinations become dead
//! letters with the broker's reason, and the rest arrive.

use crate::{
    brokers::{Broker, Kind, Setup},
    carried::{arrived, carry},
};

/// Returns one forbidden message between two permitted ones.
fn messages<'a>(yes: &'a str, no: &'a str) -> [(&'a str, &'a str); 3] {
    [(yes, "first"), (no, "refused"), (yes, "last")]
}

#[track_caller]
fn dies_with(dead: &[(String, String)], words: &str) {
    let [(body, said)] = dead else { panic!("{dead:?}") };
    assert!(body == "refused" && said.contains(words), "{dead:?}");
}

#[cfg(feature = "nats")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn message_forbidden_by_nats_dies_alone_with_its_words() {
    let users = r#"authorization { users: [
        {user: admin, password: admin},
        {user: relay, password: "re/lay", permissions: {publish: {deny: "s.no"}}}
    ] }"#;
    let broker = Broker::with(Kind::Nats, &Setup { lines: &[users], ..Setup::default() });
    let admin = async_nats::ConnectOptions::new().user_and_password("admin".to_owned(), "admin".to_owned());
    crate::stand::make_stream_as(admin, &format!("nats://{}", broker.addr())).await;
    let address = format!("nats://relay:re%2Flay@{}/{{metadata.to}}", broker.addr());
    let dead = carry(&address, &messages("s.yes", "s.no")).await;
    dies_with(&dead, "Permissions Violation for Publish to \"s.no\"");
    assert_eq!(arrived(&format!("nats://admin:admin@{}/s", broker.addr()), 2).await, ["first", "last"]);
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn message_forbidden_by_redis_dies_alone_with_its_words() {
    let users = ["user relay on >relay ~yes +@all"];
    let broker = Broker::with(Kind::Redis, &Setup { lines: &users, ..Setup::default() });
    let address = format!("redis://relay:relay@{}/{{metadata.to}}", broker.addr());
    let dead = carry(&address, &messages("yes", "no")).await;
    dies_with(&dead, "no permissions to access one of the keys");
    assert_eq!(arrived(&format!("redis://{}/yes", broker.addr()), 2).await, ["first", "last"]);
}

/// A stream bound to the exchange `events`. The user `relay` may write below `yes`. Each user's
/// password is the user's name.
#[cfg(feature = "rabbitmq")]
pub const DEFINITIONS: &str = r##"{
    "vhosts": [{"name": "/"}],
    "users": [
        {"name": "guest", "password_hash": "kI3GCrswBLNZQzHJJ95QLoyfAVooYhnvf7jbqiW9BjOYUloe",
         "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": "administrator"},
        {"name": "relay", "password_hash": "kI3GCtFWJQlD/tf/Q8cTVO7AFltvUKuf6bE1AZDJcz/TaTKA",
         "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}
    ],
    "permissions": [
        {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
        {"user": "relay", "vhost": "/", "configure": "", "write": "^events$", "read": ""}
    ],
    "topic_permissions": [{"user": "relay", "vhost": "/", "exchange": "events", "write": "^yes", "read": ""}],
    "exchanges": [
        {"name": "events", "vhost": "/", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}}
    ],
    "queues": [
        {"name": "all", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "stream"}}
    ],
    "bindings": [
        {"source": "events", "vhost": "/", "destination": "all", "destination_type": "queue", "routing_key": "#", "arguments": {}}
    ]
}"##;

#[cfg(feature = "rabbitmq")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn message_forbidden_by_rabbitmq_dies_alone_with_its_words() {
    let setup =
        Setup { files: &[("definitions.json", DEFINITIONS)], lines: &["load_definitions = FOLDER/definitions.json"] };
    let broker = Broker::with(Kind::Rabbitmq, &setup);
    let server = broker.addr();
    let address = format!("rabbitmq://relay:relay@{server}/{{metadata.to}}?exchange=events");
    let dead = carry(&address, &messages("yes.x", "no.x")).await;
    dies_with(&dead, "ACCESS_REFUSED");
    // Ignores duplicates: the broker closes the channel after a refusal, so the relay may resend
    // other messages of the batch.
    let mut there = arrived(&format!("rabbitmq://{server}/all"), 2).await;
    there.dedup();
    assert_eq!(there, ["first", "last"]);
    // If the user has no right to an exchange, the broker accepts no message.
    let dead = carry(&format!("rabbitmq://relay:relay@{server}/{{metadata.to}}"), &[("all", "refused")]).await;
    dies_with(&dead, "ACCESS_REFUSED");
}

#[cfg(feature = "kafka")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn message_forbidden_by_kafka_dies_alone_with_its_words() {
    let broker = Broker::start(Kind::Kafka);
    let _topics =
        (crate::far::far(Kind::Kafka, &broker, "yes").await, crate::far::far(Kind::Kafka, &broker, "no").await);
    tokio::task::block_in_place(|| broker.forbid_writing("no"));
    let dead = carry(&format!("kafka://{}/{{metadata.to}}", broker.addr()), &messages("yes", "no")).await;
    dies_with(&dead, "TopicAuthorizationFailed");
    assert_eq!(arrived(&format!("kafka://{}/yes", broker.addr()), 2).await, ["first", "last"]);
}
