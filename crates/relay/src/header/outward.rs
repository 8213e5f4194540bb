//! Converts a message's metadata and key into the headers of a broker.

use super::{
    Broker, Header, KEY_ENCODING, TOMBSTONE, TRUE, Value, bytes_of_key,
    escape::{Escaped, is_escaped},
    inward::is_plain,
    key,
};
use crate::{
    outgoing::{ATTEMPT, CONTENT_TYPE, ID, KEY, Outgoing},
    template::shortened,
};

/// Returns all headers of a message. If the broker cannot carry them, returns the reason, with the
/// header's name.
pub(crate) fn headers<'a>(broker: &Broker, message: &'a Outgoing) -> Result<Vec<Header<'a>>, String> {
    let mut headers = Vec::with_capacity(message.metadata.len() + 4);
    headers.push(Header::text(ID, &*message.id));
    headers.push(Header::text(ATTEMPT, message.attempt.to_string()));
    headers.extend(message.content_type.map(|content_type| Header::text(CONTENT_TYPE, content_type)));
    let key = bytes_of_key(message.key.as_deref(), &message.metadata)?;
    if let Some(key) = key.filter(|_| broker.key_is_header) {
        if broker.takes_key(&key) {
            headers.push(Header::text(KEY, String::from_utf8_lossy(&key).into_owned()));
        } else {
            headers.push(Header::text(KEY, key::encode(&key)));
            headers.push(Header::text(KEY_ENCODING, key::BASE64));
        }
    }
    let mut several = false;
    let mut all = Vec::with_capacity(message.metadata.len());
    for (name, text) in message.metadata.iter() {
        match name {
            KEY => {
                return Err(format!(
                    "the metadata's name {KEY:?} is the relay's own, for the key that the message has"
                ));
            }
            TOMBSTONE if text != TRUE || !broker.key_is_header && !message.is_tombstone() => {
                return Err(format!(
                    "the metadata's name {TOMBSTONE:?} is the relay's own: it is {TRUE:?}, of a message without a payload"
                ));
            }
            TOMBSTONE if broker.key_is_header => {
                headers.push(Header::text(TOMBSTONE, TRUE));
                continue;
            }
            // Skips these names, because the relay sets its own values for them.
            ID | ATTEMPT | KEY_ENCODING | TOMBSTONE => continue,
            _ => {}
        }
        several |= is_escaped(name.as_bytes());
        all.push(read(name, text)?);
    }
    if several {
        all.sort_by(|one, other| (&one.name, one.nth).cmp(&(&other.name, other.nth)));
        if let Some(twice) = all.windows(2).find(|two| (&two[0].name, two[0].nth) == (&two[1].name, two[1].nth)) {
            let (name, _) = twice.iter().max_by_key(|one| !is_plain(one)).unwrap_or(&twice[0]).encode();
            return Err(format!(
                "the metadata's name {} names a header that another entry already sets",
                shortened(&name)
            ));
        }
    }
    // The previous header's name, and the number of headers so far that kept this name.
    let (mut last, mut plain) = (Vec::new(), 0);
    for header in all {
        if several && last != *header.name {
            (last, plain) = (header.name.to_vec(), 0);
        }
        let in_turn = header.nth == 1 || broker.repeats && header.nth == plain + 1;
        let header = place(broker, header, in_turn)?;
        plain += u32::from(several && last == *header.name);
        headers.push(header);
    }
    Ok(headers)
}

/// Reads an entry of the metadata, whose name may be escaped.
fn read<'a>(name: &'a str, text: &'a str) -> Result<Escaped<'a>, String> {
    if !is_escaped(name.as_bytes()) {
        return Ok(Escaped::first(name.as_bytes().into(), Value::Text(text.into())));
    }
    Escaped::decode(name, text).filter(|header| !is_plain(header)).ok_or_else(|| {
        format!(
            "the metadata's name {} is reserved for headers that cannot keep their own name, and this one can",
            shortened(name)
        )
    })
}

/// Returns a header under its own name, or in its escaped form.
fn place<'a>(broker: &Broker, header: Escaped<'a>, in_turn: bool) -> Result<Header<'a>, String> {
    if in_turn && !is_escaped(&header.name) && broker.takes(&header.name, &header.value) {
        return Ok(Header { name: header.name, value: header.value });
    }
    let (name, text) = header.encode();
    if name.len() > broker.longest_name {
        let (of, longest) = (shortened(&String::from_utf8_lossy(&header.name)), broker.longest_name);
        return Err(format!(
            "{} cannot have the metadata's name {of}: a name has at most {longest} bytes",
            broker.name
        ));
    }
    Ok(Header::text(name, text))
}
