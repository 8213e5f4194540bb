//! A stopped Redis server that is resumed runs every command that it received. So the relay must
//! not send the same commands repeatedly.

use trunkline_relay::{Outcome, Outgoing};

use crate::{
    brokers::{Broker, Kind},
    carried::arrived,
    stand::until,
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn stalled_server_has_a_message_twice_at_most() {
    let broker = Broker::start(Kind::Redis);
    let address = format!("redis://{}/s", broker.addr());
    let (sink, _) = trunkline_relay::sink(&address).await.expect("a sink");
    let message = [Outgoing::new("q/1/1", "s", "x")];
    broker.stop();
    let refused = async || {
        let outcomes = sink.produce(&message).await;
        assert!(matches!(&outcomes[..], [Outcome::RefusedForNow(_)]), "{outcomes:?}");
    };
    refused().await;
    tokio::join!(refused(), refused(), refused());
    broker.go_on();
    until("it is confirmed", async || sink.produce(&message).await == [Outcome::Confirmed]).await;
    assert_eq!(arrived(&address, 2).await, ["x", "x"]);
}
