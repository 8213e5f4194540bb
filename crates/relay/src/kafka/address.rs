//! Converts a relay's address to librdkafka's configuration.

use percent_encoding::percent_decode_str;
use rdkafka::ClientConfig;

use crate::{
    address::Address,
    error::{Error, Result},
};

/// Settings that the relay's guarantees depend on.
const OURS: [&str; 13] = [
    "acks",
    "request.required.acks",
    "enable.idempotence",
    "bootstrap.servers",
    "metadata.broker.list",
    "enable.auto.commit",
    "auto.offset.reset",
    "isolation.level",
    // Each message needs a confirmation, the relay uses no transactions, and the end of a partition
    // is not an error.
    "delivery.report.only.error",
    "transactional.id",
    "enable.partition.eof",
    "enable.auto.offset.store",
    "auto.commit.enable",
];
const ALIASES: [(&str, &str); 2] =
    [("message.timeout.ms", "delivery.timeout.ms"), ("linger.ms", "queue.buffering.max.ms")];

/// Returns the configuration for an address. User and password are for SASL PLAIN, unless the
/// options name another mechanism. The options may be any settings of librdkafka, except the
/// settings in `OURS`.
pub(super) fn config(address: &Address) -> Result<ClientConfig> {
    let wrong = |why: &str| Error::usage(format!("the address {} cannot be used: {why}", address.shown()));
    let (login, hosts) = match address.servers.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, &*address.servers),
    };
    let with_port = |host: &str| {
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if has_port { host.to_owned() } else { format!("{host}:9092") }
    };
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", hosts.split(',').map(with_port).collect::<Vec<_>>().join(","));
    config.set("client.id", "trunkline-relay");
    // Reconnects to a restarted broker quickly.
    config.set("reconnect.backoff.ms", "50").set("reconnect.backoff.max.ms", "1000");
    config.set("socket.keepalive.enable", "true").set("socket.connection.setup.timeout.ms", "5000");
    if let Some(login) = login {
        let (user, password) = login.split_once(':').ok_or_else(|| wrong("there is a user, but no password"))?;
        let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        config.set("sasl.username", plain(user)).set("sasl.password", plain(password));
        config.set("sasl.mechanism", "PLAIN").set("security.protocol", "sasl_plaintext");
    }
    for (name, value) in address.options.iter().filter(|(name, _)| name != "accept-gap") {
        if OURS.contains(&&**name) {
            return Err(wrong(&format!("the relay itself decides about {name}")));
        }
        config.set(name, value);
    }
    Ok(config)
}

/// Applies settings that the address leaves unset.
pub(super) fn preset(config: &mut ClientConfig, settings: &[(&str, &str)]) {
    for (name, value) in settings {
        let alias = ALIASES.iter().find(|(known, _)| known == name).map(|(_, alias)| *alias);
        if config.get(name).is_none() && alias.is_none_or(|alias| config.get(alias).is_none()) {
            config.set(*name, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::config;
    use crate::error::Result;
    use rdkafka::ClientConfig;

    fn read(address: &str) -> Result<ClientConfig> {
        config(&address.parse()?)
    }

    #[test]
    fn an_address_is_read() {
        let config = read("kafka://me:p%40ss@a,b:9093/orders?compression.type=lz4").expect("an address");
        assert_eq!(config.get("bootstrap.servers"), Some("a:9092,b:9093"));
        assert_eq!(config.get("sasl.password"), Some("p@ss"));
        assert_eq!(config.get("compression.type"), Some("lz4"));
    }

    #[test]
    fn what_the_promises_rest_on_is_not_for_the_address() {
        for setting in super::OURS {
            let error = read(&format!("kafka://a/x?{setting}=1")).expect_err(setting);
            assert!(error.is_usage() && error.to_string().contains(setting), "{error}");
        }
    }

    #[test]
    fn a_setting_by_its_other_name_is_not_preset() {
        for (name, alias) in super::ALIASES {
            let mut config = read(&format!("kafka://a/x?{alias}=7")).expect("an address");
            super::preset(&mut config, &[(name, "1")]);
            assert_eq!((config.get(alias), config.get(name)), (Some("7"), None));
        }
    }
}
