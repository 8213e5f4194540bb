//! `trunkline relay` with real brokers: the relay is killed or stopped, or waits for an unavailable
//! broker.

#[allow(dead_code, clippy::maybe_infinite_iter, reason = "shared with the relay's own tests")]
#[path = "../../../relay/tests/all/brokers/mod.rs"]
mod brokers;
#[allow(dead_code, reason = "shared with the relay's own tests")]
#[path = "../../../relay/tests/all/ends.rs"]
mod ends;
#[allow(dead_code, reason = "shared with the other tests of the program")]
#[path = "../all/fixture.rs"]
mod fixture;
#[path = "../all/watchdog.rs"]
mod watchdog;

/// Defines a test for each broker, such as `PROMISE::to_nats`, or `from_nats`.
macro_rules! with_each_broker {
    ($promise:ident: $run:ident to) => {
        with_each_broker!($promise: $run to_nats to_redis to_kafka to_rabbitmq);
    };
    ($promise:ident: $run:ident from) => {
        with_each_broker!($promise: $run from_nats from_redis from_kafka from_rabbitmq);
    };
    ($promise:ident: $run:ident $nats:ident $redis:ident $kafka:ident $rabbitmq:ident) => {
        mod $promise {
            use super::{Kind, $run};

            #[test]
            #[ignore = "needs NATS: see .ci/brokers"]
            fn $nats() {
                $run(Kind::Nats);
            }

            #[test]
            #[ignore = "needs Redis: see .ci/brokers"]
            fn $redis() {
                $run(Kind::Redis);
            }

            #[test]
            #[ignore = "needs Kafka: see .ci/brokers"]
            fn $kafka() {
                $run(Kind::Kafka);
            }

            #[test]
            #[ignore = "needs RabbitMQ: see .ci/brokers"]
            fn $rabbitmq() {
                $run(Kind::Rabbitmq);
            }
        }
    };
}

mod far;
mod place;
mod killed;
mod ended;
mod away;
