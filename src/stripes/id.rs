//! Names of stripes, and what comes from one.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    str::FromStr,
};

use crate::{
    error::Error,
    queue::message::{Lease, Message},
};

/// The name of a stripe: a number that its database was given by chance when its schema was made,
/// printed as eight hexadecimal digits.
///
/// It stays with the messages, so it goes along with a failover, an upgrade and a backup, and has
/// nothing to do with the address, or with the place of a connection string in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StripeId(pub u32);

/// Something of one stripe: `Striped<Message<T>>` is a message, with the stripe that it is to be
/// acknowledged on.
///
/// It prints as `1f3a9c02:1024`, and is read from that. The order is that of the stripes' numbers,
/// then of what is there: it is there for lists and for pages, and says nothing about what was
/// first.
///
/// ```
/// # use trunkline::{StripeId, Striped, StripedId};
/// let id: StripedId = "1f3a9c02:1024".parse()?;
/// assert_eq!(id, Striped { stripe: StripeId(0x1f3a_9c02), of: 1024 });
/// assert_eq!(id.to_string(), "1f3a9c02:1024");
/// assert!(id < "f0000000:5".parse()?);
/// # Ok::<(), trunkline::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Striped<V> {
    /// Where it is.
    pub stripe: StripeId,
    /// What it is there.
    pub of: V,
}

/// The id of a message in a queue on several servers.
pub type StripedId = Striped<i64>;

impl fmt::Display for StripeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}", self.0)
    }
}

impl FromStr for StripeId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number = Some(text).filter(|text| text.len() == 8 && !text.starts_with('+'));
        number.and_then(|text| u32::from_str_radix(text, 16).ok()).map(Self).ok_or_else(|| {
            Error::invalid(format!("{text:?} is no stripe: a stripe is eight hexadecimal digits, as in 1f3a9c02"))
        })
    }
}

impl<V> Striped<V> {
    /// The same of something else there.
    pub(crate) fn map<W>(self, with: impl FnOnce(V) -> W) -> Striped<W> {
        Striped { stripe: self.stripe, of: with(self.of) }
    }
}

impl<V> Deref for Striped<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.of
    }
}

impl<V> DerefMut for Striped<V> {
    fn deref_mut(&mut self) -> &mut V {
        &mut self.of
    }
}

impl fmt::Display for Striped<i64> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.stripe, self.of)
    }
}

impl FromStr for Striped<i64> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::invalid(format!("{text:?} is no id of a message on several servers: those are as in 1f3a9c02:1024"))
        };
        let (stripe, id) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Self { stripe: stripe.parse()?, of: id.parse().map_err(|_| wrong())? })
    }
}

impl<T> Striped<Message<T>> {
    /// Its id, with the stripe.
    #[must_use]
    pub fn id(&self) -> StripedId {
        Striped { stripe: self.stripe, of: self.of.id }
    }

    /// The name of this delivery, with the stripe.
    #[must_use]
    pub fn lease(&self) -> Striped<Lease> {
        Striped { stripe: self.stripe, of: self.of.lease() }
    }
}

impl<T> From<&Striped<Message<T>>> for Striped<Lease> {
    fn from(message: &Striped<Message<T>>) -> Self {
        message.lease()
    }
}

impl From<&Striped<Lease>> for Striped<Lease> {
    fn from(lease: &Striped<Lease>) -> Self {
        *lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_printed_and_nothing_else_is_one() {
        for (stripe, of) in [(0, 1024), (u32::MAX, i64::MAX), (7, -1)] {
            let id = Striped { stripe: StripeId(stripe), of };
            assert_eq!(id.to_string().parse::<StripedId>().expect("an id"), id);
        }
        for text in ["", "1024", ":1024", "1f3a9c02:", "1f3a9c02", "1f3a9c2:1024", "+f3a9c02:1024", "1f3a9c02:1:2"] {
            let error = text.parse::<StripedId>().expect_err("no id").to_string();
            assert!(error.contains("as in 1f3a9c02"), "{error}");
        }
    }
}
