//! Tests that the driver's imports and names contain no word about queues.

use super::{files, read, tree::code};

/// Words of the layers above, which may be a whole name or a part of one. The list omits words that
/// PostgreSQL, libpq or Rust also use: a message of the protocol, the payload of a notification, a
/// priority, a key of a map or of TLS, bytes queued on a connection.
const ABOVE: [&str; 22] = [
    "queue", "enqueue", "dequeue", "lease", "lane", "shard", "letter", "attempt", "ack", "archive", "bury", "replay",
    "draft", "consumer", "worker", "handler", "floor", "sweep", "dead", "settle", "coalesce", "schedule",
];

/// Returns the names in a text, without the contents of string literals.
fn names(code: &str) -> Vec<String> {
    let mut bare = String::new();
    for (at, part) in code.replace("\\\"", "").replace("'\"'", "").split('"').enumerate() {
        bare.push_str(if at % 2 == 0 { part } else { " " });
    }
    let names = bare.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// Returns the words of a name such as `own_session` or `CachedStatement`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut apart = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            apart.push('_');
        }
        apart.extend(c.to_lowercase());
        before = c;
    }
    apart.split('_').map(str::to_owned).collect()
}

fn is_above(word: &str) -> bool {
    ABOVE.iter().any(|above| {
        let ending = word.strip_prefix(above);
        ending.is_some_and(|ending| ["", "s"].contains(&ending) || ending == "d" && *above != "queue")
    })
}

#[test]
fn driver_has_no_word_of_the_queue() {
    let mut seen = 0;
    for path in files("src/postgres", "rs") {
        for name in names(&code(&read(&path))) {
            let above = words(&name).into_iter().find(|word| is_above(word));
            assert_eq!(above, None, "{}: `{name}` is of the storeys above", path.display());
            seen += 1;
        }
    }
    assert!(seen > 10_000, "only {seen} names were found");
}

#[test]
fn words_of_the_queue_are_found_in_names() {
    let found: Vec<String> = names(r#"subscribe_letters(Purpose::Dequeue, "lease", queued, is_shard, Slot)"#)
        .iter()
        .flat_map(|name| words(name))
        .filter(|word| is_above(word))
        .collect();
    assert_eq!(found, ["letters", "dequeue", "shard"]);
}
