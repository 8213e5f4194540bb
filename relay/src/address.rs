//! Addresses of brokers, for people.

/// An address without its user and password.
#[must_use]
pub fn shown(address: &str) -> String {
    let without = |one: &str| match one.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
            format!("{scheme}://{}", &rest[host..])
        }
        None => one[one.rfind('@').map_or(0, |at| at + 1)..].to_owned(),
    };
    address.split(',').map(without).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown("nats://me:secret@host:4222/x,nats://me:p@other"), "nats://host:4222/x,nats://other");
        assert_eq!(shown("redis://host/0"), "redis://host/0");
    }
}
