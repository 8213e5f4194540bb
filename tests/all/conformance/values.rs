//! Values of every type, including unusual ones. The library receives the same bytes as libpq, both
//! from a literal and from a parameter.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    time::{Duration, SystemTime},
};

use postgres_types::{PgLsn, Timestamp};
use serde_json::json;
use trunkline::Json;
use uuid::Uuid;

use super::{
    case::{Case, Meant, Step, case},
    typed::{Contact, Email, Embedding, Mood, Pair, Small, as_bytes, known, null},
};

pub fn cases() -> Vec<Case> {
    let all = [numbers(), texts(), times(), documents(), lists(), of_users(), of_extensions(), only_bytes(), nulls()];
    let named = |meant: Meant| {
        let name = format!("{:.40}::{}", meant.literal.unwrap_or("null"), meant.ty);
        case(&name, [Step::Value(meant)])
    };
    all.into_iter().flatten().map(named).collect()
}

fn numbers() -> Vec<Meant> {
    vec![
        known("bool", "t", true),
        known("bool", "f", false),
        known("int2", "-32768", i16::MIN),
        known("int2", "32767", i16::MAX),
        known("int4", "-2147483648", i32::MIN),
        known("int4", "0", 0),
        known("int4", "2147483647", i32::MAX),
        known("int8", "-9223372036854775808", i64::MIN),
        known("int8", "9223372036854775807", i64::MAX),
        known("oid", "4294967295", u32::MAX),
        known("float4", "1.5", 1.5_f32),
        known("float4", "-0", -0.0_f32),
        known("float4", "1e-45", f32::from_bits(1)),
        known("float4", "NaN", f32::NAN),
        known("float4", "-Infinity", f32::NEG_INFINITY),
        known("float8", "0.1", 0.1),
        known("float8", "-0", -0.0),
        known("float8", "5e-324", f64::from_bits(1)),
        known("float8", "1.7976931348623157e308", f64::MAX),
        known("float8", "NaN", f64::NAN),
        known("float8", "Infinity", f64::INFINITY),
        known("float8", "-Infinity", f64::NEG_INFINITY),
        known("pg_lsn", "16/B374D848", PgLsn::from(0x16_B374_D848)),
    ]
}

fn texts() -> Vec<Meant> {
    let of_text = |ty| known(ty, "it's \\ \"ä€😀\"", "it's \\ \"ä€😀\"".to_owned());
    vec![
        known("text", "", String::new()),
        of_text("text"),
        of_text("varchar"),
        of_text("name"),
        known("text", "a\nb\tc\u{1}\u{7f}\u{10ffff}", "a\nb\tc\u{1}\u{7f}\u{10ffff}".to_owned()),
        known("bpchar", "ab   ", "ab   ".to_owned()),
        known("char(5)", "ab", "ab   ".to_owned()),
        known("\"char\"", "x", b'x' as i8),
        known("bytea", "", Vec::<u8>::new()),
        known("bytea", "\\x00ff0000", b"\0\xff\0\0".to_vec()),
        known(
            "uuid",
            "00112233-4455-6677-8899-aabbccddeeff",
            Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
        ),
        known("uuid", "00000000-0000-0000-0000-000000000000", Uuid::nil()),
        known("inet", "192.168.0.1", IpAddr::from([192, 168, 0, 1])),
        known("inet", "2001:db8::1", IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])),
    ]
}

fn times() -> Vec<Meant> {
    let at = |us: u64| SystemTime::UNIX_EPOCH + Duration::from_micros(us);
    vec![
        known("timestamptz", "1970-01-01T00:00:00Z", SystemTime::UNIX_EPOCH),
        known("timestamptz", "2000-01-01T00:00:00Z", at(946_684_800_000_000)),
        known("timestamptz", "2023-11-14T22:13:20.123456Z", at(1_700_000_000_123_456)),
        known("timestamptz", "1969-12-31T23:59:59.999999Z", SystemTime::UNIX_EPOCH - Duration::from_micros(1)),
        known("timestamptz", "infinity", Timestamp::<SystemTime>::PosInfinity),
        known("timestamptz", "-infinity", Timestamp::<SystemTime>::NegInfinity),
        known("timestamp", "2023-11-14T22:13:20.123456", at(1_700_000_000_123_456)),
        as_bytes("date", "2024-02-29"),
        as_bytes("date", "4713-01-01 BC"),
        as_bytes("date", "-infinity"),
        as_bytes("time", "23:59:59.999999"),
        as_bytes("timetz", "24:00:00+01:30"),
        as_bytes("interval", "-1 year 2 days -3.000001 seconds"),
    ]
}

fn documents() -> Vec<Meant> {
    let nested = r#"{"a": [1, null, {"b": "ä€😀"}], "c": 1.25, "d": true}"#;
    let compact = r#"{"a":1,"b":"two"}"#;
    vec![
        known("jsonb", nested, json!({"a": [1, null, {"b": "ä€😀"}], "c": 1.25, "d": true})),
        known("jsonb", "[]", Json(Vec::<i32>::new())),
        known("jsonb", r#"{"x": 1, "y": 2}"#, Json(BTreeMap::from([("x".to_owned(), 1), ("y".to_owned(), 2)]))),
        known("jsonb", "null", json!(null)),
        known("json", compact, json!({"a": 1, "b": "two"})),
        known("json", "[1,2,3]", Json(vec![1, 2, 3])),
    ]
}

fn lists() -> Vec<Meant> {
    let owned = |text: &str| Some(text.to_owned());
    vec![
        known("int4[]", "{}", Vec::<i32>::new()),
        known("int4[]", "{1,-2,3}", vec![1, -2, 3]),
        known("int8[]", "{NULL,9,NULL}", vec![None, Some(9_i64), None]),
        known("bool[]", "{t,NULL,f}", vec![Some(true), None, Some(false)]),
        known("float8[]", "{NaN,-0,Infinity}", vec![f64::NAN, -0.0, f64::INFINITY]),
        known(
            "text[]",
            r#"{"",NULL,"NULL","a\"b,{}","ä€😀"}"#,
            vec![owned(""), None, owned("NULL"), owned("a\"b,{}"), owned("ä€😀")],
        ),
        known("bytea[]", r#"{"\\x","\\x00",NULL}"#, vec![Some(vec![]), Some(vec![0_u8]), None]),
        known("uuid[]", "{00000000-0000-0000-0000-000000000000}", vec![Uuid::nil()]),
        known("timestamptz[]", "{1970-01-01T00:00:00Z}", vec![SystemTime::UNIX_EPOCH]),
        known("jsonb[]", r#"{"{\"a\": 1}",NULL,"null"}"#, vec![Some(json!({"a": 1})), None, Some(json!(null))]),
        as_bytes("int4[]", "{{1,2},{3,NULL}}"),
        as_bytes("int4[]", "[-3:-1]={7,8,9}"),
    ]
}

fn of_users() -> Vec<Meant> {
    let pair = |first, second| Pair { first, second };
    vec![
        known("mood", "glad", Mood::Glad),
        known("mood", "so lala", Mood::SoLala),
        known("mood[]", "{very_sad,NULL,glad}", vec![Some(Mood::VerySad), None, Some(Mood::Glad)]),
        known("pair", "(1,\"{very_sad,NULL}\")", pair(Some(1), vec![Some(Mood::VerySad), None])),
        known("pair", "(,{})", pair(None, vec![])),
        known("pair[]", r#"{"(1,{})",NULL}"#, vec![Some(pair(Some(1), vec![])), None]),
        known("email[]", "{a@b,NULL}", vec![Some(Email("a@b".to_owned())), None]),
        known(
            "contact",
            r#"("Ada L.",a@b,"{""(7,{glad})""}",36)"#,
            Contact {
                who: "Ada L.".to_owned(),
                mail: Some(Email("a@b".to_owned())),
                pairs: vec![pair(Some(7), vec![Some(Mood::Glad)])],
                age: Small(36),
            },
        ),
        as_bytes("email", "a@b"),
        as_bytes("small", "99"),
    ]
}

fn of_extensions() -> Vec<Meant> {
    let owned = |text: &str| text.to_owned();
    let pairs = |value: Option<&str>| HashMap::from([(owned("a b"), value.map(owned))]);
    vec![
        known("hstore", "", HashMap::<String, Option<String>>::new()),
        known("hstore", r#""a b"=>"ä€😀""#, pairs(Some("ä€😀"))),
        known("hstore", r#""a b"=>NULL"#, pairs(None)),
        known("hstore[]", r#"{"\"a b\"=>\"\"",NULL}"#, vec![Some(pairs(Some(""))), None]),
        as_bytes("hstore", "a=>1, b=>NULL, c=>3"),
        known("citext", "It's ÄÖ", owned("It's ÄÖ")),
        known("citext[]", "{A,NULL}", vec![Some(owned("A")), None]),
        known("ltree", "", owned("")),
        known("ltree", "top.science.astronomy", owned("top.science.astronomy")),
        known("ltree[]", "{a.b,NULL}", vec![Some(owned("a.b")), None]),
        known("lquery", "top.*{1,2}", owned("top.*{1,2}")),
        known("ltxtquery", "a & b", owned("a & b")),
        known("vector", "\\x000300003f800000c020000000000000", Embedding(vec![1.0, -2.5, 0.0])),
        known("vector", "\\x00000000", Embedding(vec![])),
    ]
}

/// Returns values of types that the library does not support. Their bytes must come back unchanged.
fn only_bytes() -> Vec<Meant> {
    let all = [
        ("numeric", "0"),
        ("numeric", "-12345678901234567890.0123456789"),
        ("numeric", "1e-20"),
        ("numeric", "NaN"),
        ("numeric", "Infinity"),
        ("numeric[]", "{1.50,NULL}"),
        ("bit(3)", "101"),
        ("varbit", ""),
        ("cidr", "10.0.0.0/8"),
        ("inet", "10.0.0.1/8"),
        ("macaddr", "08:00:2b:01:02:03"),
        ("point", "(1.5,-2)"),
        ("polygon", "((0,0),(1,1),(2,0))"),
        ("int4range", "[1,10)"),
        ("int4range", "empty"),
        ("tstzrange", "(,2024-01-01T00:00:00Z]"),
        ("int4multirange", "{[1,3),[5,7)}"),
        ("int8multirange", "{}"),
        ("nummultirange", "{(,1.5],[2,)}"),
        ("datemultirange", "{[2024-02-01,2024-02-29)}"),
        ("tstzmultirange", "{[2024-01-01T00:00:00Z,)}"),
        ("int4multirange[]", r#"{"{[1,3)}",NULL}"#),
        ("tsvector", "'a':1A 'b'"),
        ("jsonpath", "$.a[*]"),
        ("regtype", "int4"),
        ("xid8", "18446744073709551615"),
    ];
    all.map(|(ty, literal)| as_bytes(ty, literal)).into()
}

fn nulls() -> Vec<Meant> {
    vec![
        null::<bool>("bool"),
        null::<i64>("int8"),
        null::<f32>("float4"),
        null::<String>("text"),
        null::<Vec<u8>>("bytea"),
        null::<Uuid>("uuid"),
        null::<SystemTime>("timestamptz"),
        null::<Json<i32>>("jsonb"),
        null::<Vec<i32>>("int4[]"),
        null::<Mood>("mood"),
        null::<Contact>("contact"),
        null::<HashMap<String, Option<String>>>("hstore"),
        null::<Embedding>("vector"),
    ]
}
