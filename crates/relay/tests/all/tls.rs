//! TLS connections succeed if the address names the server's certificate, and fail otherwise.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use trunkline_relay::{Error, sink, source};

use crate::{
    brokers::{Broker, Kind, Setup},
    carried::{arrived, carry},
};

/// Starts a broker with its certificate in `cert.pem`, and an unrelated one in `other.pem`.
fn broker(kind: Kind, lines: &[&str]) -> Broker {
    let made = || generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("a certificate");
    let (CertifiedKey { cert, signing_key }, other) = (made(), made());
    let (cert, key, other) = (cert.pem(), signing_key.serialize_pem(), other.cert.pem());
    let both = format!("{key}{cert}");
    let files = [("cert.pem", &*cert), ("key.pem", &*key), ("both.pem", &*both), ("other.pem", &*other)];
    Broker::with(kind, &Setup { files: &files, lines })
}

/// Returns an address with an option that names a certificate in the broker's folder.
fn with(broker: &Broker, address: &str, option: &str, name: &str) -> String {
    let and = if address.contains('?') { '&' } else { '?' };
    format!("{address}{and}{option}={}", broker.file(name).display())
}

#[track_caller]
fn is_refused(opened: Result<(), Error>) {
    let error = opened.expect_err("another's certificate");
    let said = error.to_string().to_lowercase();
    assert!(!error.is_usage() && said.contains("certificate"), "{error}");
}

/// Carries a message in both directions with the server's certificate, and fails in both directions
/// with another certificate.
async fn both_ways(broker: &Broker, out: &str, inward: &str, option: &str) {
    let known = |address: &str| with(broker, address, option, "cert.pem");
    assert_eq!(carry(&known(out), &[("s", "secret")]).await, []);
    assert_eq!(arrived(&known(inward), 1).await, ["secret"]);
    let unknown = |address: &str| with(broker, address, option, "other.pem");
    // Kafka's client takes ten seconds for each direction.
    let (out, from) = (unknown(out), unknown(inward));
    let (sunk, opened) = tokio::join!(sink(&out), source(&from));
    is_refused(sunk.map(drop));
    let opened = opened.map(drop);
    if inward.starts_with("kafka") {
        opened.expect_err("its client says no more than that on the way in");
    } else {
        is_refused(opened);
    }
}

#[cfg(feature = "nats")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn relay_speaks_tls_with_nats_under_its_certificate_only() {
    let lines = ["tls { cert_file: FOLDER/cert.pem, key_file: FOLDER/key.pem }"];
    let broker = broker(Kind::Nats, &lines);
    let options = async_nats::ConnectOptions::new().add_root_certificates(broker.file("cert.pem"));
    crate::stand::make_stream_as(options, &format!("tls://{}", broker.tls())).await;
    let server = broker.tls();
    for scheme in ["tls", "nats"] {
        let carried = with(&broker, &format!("{scheme}://{server}/s.x"), "ca", "cert.pem");
        assert_eq!(carry(&carried, &[("", scheme)]).await, []);
    }
    assert_eq!(arrived(&with(&broker, &format!("tls://{server}/s"), "ca", "cert.pem"), 2).await, ["nats", "tls"]);
    for scheme in ["tls", "nats"] {
        is_refused(sink(&with(&broker, &format!("{scheme}://{server}/s.x"), "ca", "other.pem")).await.map(drop));
        is_refused(source(&with(&broker, &format!("{scheme}://{server}/s"), "ca", "other.pem")).await.map(drop));
    }
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn relay_speaks_tls_with_redis_under_its_certificate_only() {
    let lines = ["tls-port PORT", "tls-cert-file cert.pem", "tls-key-file key.pem", "tls-auth-clients no"];
    let lines = [&lines[..], &["tls-ca-cert-file cert.pem"]].concat();
    let broker = broker(Kind::Redis, &lines);
    let server = broker.tls();
    both_ways(&broker, &format!("rediss://{server}/{{metadata.to}}"), &format!("rediss://{server}/s"), "ca").await;
}

#[cfg(feature = "rabbitmq")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn relay_speaks_tls_with_rabbitmq_under_its_certificate_only() {
    let lines = ["listeners.ssl.1 = 127.0.0.1:PORT", "ssl_options.certfile = FOLDER/cert.pem"];
    let lines = [&lines[..], &["ssl_options.keyfile = FOLDER/key.pem", "ssl_options.verify = verify_none"]].concat();
    let broker = broker(Kind::Rabbitmq, &lines);
    let _stream = crate::far::far(Kind::Rabbitmq, &broker, "s").await;
    let server = broker.tls();
    let address = |path: &str| format!("rabbitmqs://{server}/{path}");
    both_ways(&broker, &address("{metadata.to}"), &address("s"), "ca").await;
}

#[cfg(feature = "kafka-tls")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn relay_speaks_tls_with_kafka_under_its_certificate_only() {
    let lines = ["ssl.keystore.type=PEM", "ssl.keystore.location=FOLDER/both.pem"];
    let broker = broker(Kind::Kafka, &lines);
    let _topic = crate::far::far(Kind::Kafka, &broker, "s").await;
    let server = broker.tls();
    let address = |path: &str| format!("kafka://{server}/{path}?security.protocol=ssl");
    both_ways(&broker, &address("{metadata.to}"), &address("s"), "ssl.ca.location").await;
}
