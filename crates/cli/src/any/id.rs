//! Ids of messages: numbers, prefixed with the shard if there are several servers.

use std::{fmt, str::FromStr};

use serde_json::Value;
use trunkline::{Lease, shards};

use crate::error::{Error, Result};

/// A message's id, with its shard if there are several servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    pub shard: Option<shards::Id>,
    pub id: i64,
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shard {
            Some(shard) => shards::Sharded { shard, of: self.id }.fmt(out),
            None => self.id.fmt(out),
        }
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            text if text.contains(':') => {
                text.parse::<shards::MessageId>().map(Self::from).map_err(|wrong| wrong.to_string())
            }
            text => Ok(Self { shard: None, id: crate::number::id(text)? }),
        }
    }
}

impl From<shards::MessageId> for Id {
    fn from(shards::Sharded { shard, of: id }: shards::MessageId) -> Self {
        Self { shard: Some(shard), id }
    }
}

impl From<Id> for Value {
    fn from(id: Id) -> Self {
        if id.shard.is_some() { id.to_string().into() } else { id.id.into() }
    }
}

/// A leased delivery, on one server or on a shard.
#[derive(Debug, Clone, Copy)]
pub struct Lent {
    pub shard: Option<shards::Id>,
    pub lease: Lease,
}

impl Lent {
    pub fn id(&self) -> Id {
        Id { shard: self.shard, id: self.lease.id }
    }
}

/// Returns the ids without shards. Fails if an id has a shard.
pub fn plain(ids: &[Id]) -> Result<Vec<i64>> {
    let plain = |id: &Id| match id.shard {
        None => Ok(id.id),
        Some(_) => Err(Error::usage(format!("{id} names a shard, but only one server is given"))
            .hint("give each server: --database-url URL --database-url URL …")),
    };
    ids.iter().map(plain).collect()
}

/// Returns the ids with their shards. Fails if an id has no shard.
pub fn sharded(ids: &[Id]) -> Result<Vec<shards::MessageId>> {
    let with_shard = |id: &Id| match id.shard {
        Some(shard) => Ok(shards::Sharded { shard, of: id.id }),
        None => Err(Error::usage(format!("{id} does not name its shard"))
            .hint("use ids as `enqueue` and `peek` print them for several servers: 1f3a9c02:1024")),
    };
    ids.iter().map(with_shard).collect()
}

/// Returns the last id of the previous page, or `None` for 0.
pub fn seen(after: Id) -> Result<Option<shards::MessageId>> {
    if after.shard.is_none() && after.id == 0 { Ok(None) } else { Ok(sharded(&[after])?.pop()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_number_alone_or_behind_its_shard() {
        let id = |text: &str| text.parse::<Id>();
        assert_eq!(id("1024").map(|id| id.to_string()).as_deref(), Ok("1024"));
        assert_eq!(id(" 1f3a9c02:1024").map(|id| id.to_string()).as_deref(), Ok("1f3a9c02:1024"));
        assert!(id("all").is_err_and(|why| why.contains("`peek`")));
        assert!(id("1f3:7").is_err_and(|why| why.contains("eight hexadecimal digits")));
        let (one, other) = (id("7").expect("an id"), id("1f3a9c02:7").expect("an id"));
        assert!(plain(&[one]).is_ok() && plain(&[one, other]).is_err());
        assert!(sharded(&[other]).is_ok() && sharded(&[other, one]).is_err());
        assert!(seen(Id { shard: None, id: 0 }).is_ok_and(|seen| seen.is_none()) && seen(one).is_err());
    }
}
