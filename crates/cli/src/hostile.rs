//! The program accepts any input from the command line and standard input, or refuses it with a
//! reason, without a panic.

use bytes::BytesMut;
use clap::Parser;
use postgres_types::{FromSql, ToSql, Type};
use proptest::{collection::vec, prelude::*};
use trunkline::Metadata;

use crate::{
    Program,
    any::Id,
    enqueue::entry::{Due, Form, Usual, named},
    number,
    text::Text,
    time,
};

/// Inputs that exercise the parsers deeply.
const OF_LINES: [&str; 28] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "-",
    "0",
    "1e999",
    "1.5",
    "\"payload\":",
    "\"payload_hex\":",
    "\"delay\":",
    "\"at\":",
    "\"metadata\":",
    "\"priority\":",
    "\"unique\":",
    "\"key\":",
    "\"00fF\"",
    "\"1h30m\"",
    "\"2030-01-01T10:00:00+02:00\"",
    "\"x\"",
];
const OF_ARGUMENTS: [&str; 36] = [
    "demo",
    "migrate",
    "queue",
    "create",
    "alter",
    "list",
    "limit",
    "enqueue",
    "dequeue",
    "work",
    "peek",
    "find",
    "cancel",
    "reschedule",
    "schedule",
    "set",
    "dead",
    "replay",
    "archive",
    "purge",
    "grant",
    "shard",
    "drain",
    "emails",
    "--type",
    "jsonb",
    "--lease",
    "--exec",
    "--every",
    "--metadata",
    "--priority",
    "-",
    "--",
    "--json",
    "--file",
    "--help",
];

fn of(words: &'static [&'static str], between: &'static str) -> impl Strategy<Value = String> {
    let word = prop_oneof![8 => proptest::sample::select(words).prop_map(str::to_owned), 1 => any::<String>()];
    vec(word, 0..24).prop_map(move |words| words.join(between))
}

fn usual() -> Usual {
    Usual {
        due: Due::After(std::time::Duration::ZERO),
        metadata: Metadata::new(),
        priority: 0,
        unique: None,
        within: None,
        replaces: false,
        key: None,
        columns: Metadata::new(),
    }
}

fn read(line: Vec<u8>, ty: &str) {
    let line = Text(line);
    let form = Form::Object { payload: ty.to_owned(), of_json: ty == "jsonb" };
    match usual().line(&line, &form) {
        Ok(entry) => drop(entry.draft()),
        Err(why) => assert!(!why.is_empty()),
    }
    let _ = (line.preview(), line.field());
}

proptest! {
    #[test]
    fn a_line_is_a_message_or_says_why_not(text in of(&OF_LINES, ""), bytes in vec(any::<u8>(), 0..64), ty in "text|jsonb|bytea|int8") {
        read(text.clone().into_bytes(), &ty);
        read(format!("{{\"payload\":{text}}}").into_bytes(), &ty);
        read(bytes, &ty);
    }

    #[test]
    fn a_payload_is_what_the_type_has_or_is_refused(
        text in prop_oneof![".*", "-?[0-9]{0,20}[.]?[0-9]{0,9}(e-?[0-9]{1,3})?", " *(t|false|yes|NaN|inf|-Infinity) *", "[0-9a-f-]{30,40}"]
    ) {
        for ty in [Type::BYTEA, Type::INT2, Type::INT4, Type::INT8, Type::FLOAT4, Type::FLOAT8, Type::BOOL, Type::UUID, Type::TEXT] {
            let mut sent = BytesMut::new();
            if Text(text.clone().into()).to_sql(&ty, &mut sent).is_err() {
                continue;
            }
            // Checks that the displayed text can be enqueued again, and results in the same
            // payload.
            let shown = Text::from_sql(&ty, &sent).expect("what was sent is readable");
            let mut again = BytesMut::new();
            shown.to_sql(&ty, &mut again).expect("what is shown can be sent");
            prop_assert_eq!(&sent, &again, "{} as {}", text, ty);
        }
    }

    #[test]
    fn number_time_or_id_is_read_or_refused(text in prop_oneof![".*", "[-+0-9a-zT:. ]{0,30}"]) {
        let _ = (time::duration(&text), time::more_than_zero(&text), time::instant(&text), text.parse::<Id>());
        let _ = (number::count::<u32>(&text), number::more_than_zero(&text), number::id(&text), named(&text));
    }

    #[test]
    fn arguments_are_understood_or_refused_with_a_reason(words in of(&OF_ARGUMENTS, "\u{1f}")) {
        let words = ["trunkline"].into_iter().chain(words.split('\u{1f}'));
        if let Err(error) = Program::try_parse_from(words) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
