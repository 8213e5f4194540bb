use redis::AsyncCommands;
use trunkline::Draft;

use super::{carry, fetch, queues, there_and_back};
use crate::{
    brokers::{Broker, Kind},
    carried,
};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

async fn connection(broker: &Broker) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(format!("redis://{}", broker.addr())).expect("an address");
    client.get_multiplexed_async_connection().await.expect("connected")
}

/// Returns the fields of all entries, without the relay's own.
async fn entries(connection: &mut redis::aio::MultiplexedConnection, stream: &str) -> Vec<Fields> {
    let all: Vec<(String, Fields)> =
        redis::cmd("XRANGE").arg(stream).arg("-").arg("+").query_async(connection).await.expect("read");
    let foreign = |fields: Fields| -> Fields {
        let mut fields: Fields =
            fields.into_iter().filter(|(name, _)| name != b"trunkline-id" && name != b"trunkline-attempt").collect();
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        fields
    };
    all.into_iter().map(|(_, fields)| foreign(fields)).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn metadata_comes_back_from_redis_with_its_payload() {
    let broker = Broker::start(Kind::Redis);
    let address = format!("redis://{}/s", broker.addr());
    there_and_back(&address, &address, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn an_entry_is_copied_to_another_stream_byte_by_byte() {
    let broker = Broker::start(Kind::Redis);
    let mut connection = connection(&broker).await;
    let fields: [(&[u8], &[u8]); 8] = [
        (b"a", b"\0\x2a"),
        (b"a", b"text"),
        (b"a", b"\xff"),
        (b"\xfe\0name", b"value"),
        (b"body", b"pay\0load\xff"),
        (b"empty", b""),
        (b"trunkline-key", b"\xffkey"),
        (b"x", b"1"),
    ];
    let _: String = connection.xadd("s", "*", &fields).await.expect("added");
    let (_, back) = queues().await;
    let all = fetch(&back, &format!("redis://{}/s", broker.addr()), 1).await;
    assert_eq!(&*all[0].payload.0, b"pay\0load\xff");
    back.enqueue_many(all.into_iter().map(|one| Draft::new(one.payload).metadata(one.metadata))).await.expect("again");
    carry(&back, &format!("redis://{}/copy", broker.addr())).await;
    let mut copied = entries(&mut connection, "copy").await;
    // Removes the mark of an encoded key. Only a key that is not text is encoded.
    let last = copied[0].iter().position(|(name, _)| name == b"trunkline-key-encoding").expect("it is said");
    copied[0].remove(last);
    let key = copied[0].iter_mut().find(|(name, _)| name == b"trunkline-key").expect("a key");
    assert_eq!(std::mem::replace(&mut key.1, b"\xffkey".to_vec()), b"/2tleQ==");
    assert_eq!(copied, entries(&mut connection, "s").await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn fields_without_a_body_are_an_object_that_loses_nothing() {
    let broker = Broker::start(Kind::Redis);
    let mut connection = connection(&broker).await;
    let fields: [(&[u8], &[u8]); 4] = [(b"a", b"1"), (b"a", b"2"), (b"b", b"\xff"), (b"\xff", b"x")];
    let _: String = connection.xadd("s", "*", &fields).await.expect("added");
    let (_, back) = queues().await;
    let all = fetch(&back, &format!("redis://{}/s", broker.addr()), 1).await;
    let body = r#"{"a":"1","trunkline-header.1.base64.b":"/w==","trunkline-header.1.text.%FF":"x","trunkline-header.2.text.a":"2"}"#;
    assert_eq!(all[0].payload.0, body);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn nameless_stream_and_oversized_value_are_dead_letters() {
    use crate::brokers::Setup;
    let setup = Setup { lines: &["proto-max-bulk-len 1mb"], ..Setup::default() };
    let broker = Broker::with(Kind::Redis, &setup);
    let large = "x".repeat(2 << 20);
    let dead = carried::carry(
        &format!("redis://{}/{{metadata.to}}", broker.addr()),
        &[("s", "first"), ("", "a"), ("s", &large), ("s", "second")],
    )
    .await;
    assert!(
        dead.len() == 2 && dead[0].1.contains("name is empty") && dead[1].1.contains("proto-max-bulk-len"),
        "{:?}",
        dead.iter().map(|one| &one.1).collect::<Vec<_>>()
    );
    assert_eq!(carried::arrived(&format!("redis://{}/s", broker.addr()), 2).await, ["first", "second"]);
}
