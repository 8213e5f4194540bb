//! Names of shards, and values that belong to a shard.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    str::FromStr,
};

use crate::{
    error::Error,
    queue::message::{Lease, Message, unique::Enqueued},
};

/// The name of a shard: a random number that was stored in its database when its schema was
/// created. It is printed as eight hexadecimal digits.
///
/// The name is stored together with the messages, so it survives failovers, upgrades and backups.
/// It does not depend on the server's address or on the order of the connection strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u32);

/// A value together with its shard. `Sharded<Message<T>>` is a message and the shard on which it
/// must be acknowledged.
///
/// A `Sharded` value is printed as `1f3a9c02:1024`, and can be parsed from that text. Values are
/// ordered by the number of the shard, then by the value itself. This order is meant for lists and
/// pages; it does not show which value is older.
///
/// ```
/// # use trunkline::shards::{Id, MessageId, Sharded};
/// let id: MessageId = "1f3a9c02:1024".parse()?;
/// assert_eq!(id, Sharded { shard: Id(0x1f3a_9c02), of: 1024 });
/// assert_eq!(id.to_string(), "1f3a9c02:1024");
/// assert!(id < "f0000000:5".parse()?);
/// # Ok::<(), trunkline::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sharded<V> {
    /// The shard.
    pub shard: Id,
    /// The value on that shard.
    pub of: V,
}

/// The id of a message in a queue on several servers.
pub type MessageId = Sharded<i64>;

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}", self.0)
    }
}

impl FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number = Some(text).filter(|text| text.len() == 8 && !text.starts_with('+'));
        number.and_then(|text| u32::from_str_radix(text, 16).ok()).map(Self).ok_or_else(|| {
            Error::invalid(format!("{text:?} is not a shard: a shard is eight hexadecimal digits, as in 1f3a9c02"))
        })
    }
}

impl<V> Deref for Sharded<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.of
    }
}

impl<V> DerefMut for Sharded<V> {
    fn deref_mut(&mut self) -> &mut V {
        &mut self.of
    }
}

impl fmt::Display for Sharded<i64> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.shard, self.of)
    }
}

impl FromStr for Sharded<i64> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong =
            || Error::invalid(format!("{text:?} is not an id of a message on several servers, as in 1f3a9c02:1024"));
        let (shard, id) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Self { shard: shard.parse()?, of: id.parse().map_err(|_| wrong())? })
    }
}

impl Sharded<Enqueued> {
    /// Returns the id of the message that is in the queue, with its shard.
    #[must_use]
    pub fn id(&self) -> MessageId {
        Sharded { shard: self.shard, of: self.of.id() }
    }
}

impl<T> Sharded<Message<T>> {
    /// Returns the message's id, with the shard.
    #[must_use]
    pub fn id(&self) -> MessageId {
        Sharded { shard: self.shard, of: self.of.id }
    }

    /// Returns the lease, with the shard.
    #[must_use]
    pub fn lease(&self) -> Sharded<Lease> {
        Sharded { shard: self.shard, of: self.of.lease() }
    }
}

impl<T> From<&Sharded<Message<T>>> for Sharded<Lease> {
    fn from(message: &Sharded<Message<T>>) -> Self {
        message.lease()
    }
}

impl From<&Sharded<Lease>> for Sharded<Lease> {
    fn from(lease: &Sharded<Lease>) -> Self {
        *lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_parsed_as_printed_and_nothing_else_is_valid() {
        for (shard, of) in [(0, 1024), (u32::MAX, i64::MAX), (7, -1)] {
            let id = Sharded { shard: Id(shard), of };
            assert_eq!(id.to_string().parse::<MessageId>().expect("an id"), id);
        }
        for text in ["", "1024", ":1024", "1f3a9c02:", "1f3a9c02", "1f3a9c2:1024", "+f3a9c02:1024", "1f3a9c02:1:2"] {
            let error = text.parse::<MessageId>().expect_err("no id").to_string();
            assert!(error.contains("as in 1f3a9c02"), "{error}");
        }
    }
}
