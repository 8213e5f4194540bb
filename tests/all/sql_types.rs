//! Tests payload types in SQL: payloads of any type reach the queue whole or are refused.

use tokio_postgres::{Client, error::SqlState};

use crate::fixture::{connect, database};

/// Domains and the queues of their type. `code` accepts three characters.
const TYPES: [(&str, &str); 9] = [
    ("code", "public.code"),
    ("note", "public.note"),
    ("required", "public.required"),
    ("caption", "public.caption"),
    ("title", "varchar"),
    ("padded", "bpchar"),
    ("named", "name"),
    ("letter", "\"char\""),
    ("list", "text[]"),
];

async fn queues() -> Client {
    let sql = connect(&database().await).await;
    sql.batch_execute(
        "create domain public.code as varchar(3);
         create domain public.note as text;
         create domain public.required as text not null;
         create domain public.caption as public.code[]",
    )
    .await
    .expect("created");
    for (queue, payload) in TYPES {
        let create = format!("select trunkline.create_queue('{queue}', '{payload}')");
        sql.batch_execute(&create).await.unwrap_or_else(|error| panic!("{queue}: {error:?}"));
    }
    sql
}

async fn payloads(sql: &Client, queue: &str) -> Vec<String> {
    let read = format!("select payload from trunkline.messages('{queue}')");
    sql.query(&read, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_of_every_text_type_tick() {
    let sql = queues().await;
    sql.batch_execute("select trunkline.create_queue('keyed', 'public.note', partitions => 4)").await.expect("created");
    for queue in TYPES.map(|(queue, _)| queue).iter().chain(&["keyed"]) {
        let payload = if matches!(*queue, "list" | "caption") { "{7}" } else { "7" };
        let key = if *queue == "keyed" { ", key => 'k'" } else { "" };
        let set = format!("select trunkline.set_schedule('s', '{queue}', '@daily', '{payload}'{key})");
        sql.batch_execute(&set).await.expect(queue);
        let fire = sql.batch_execute("select trunkline.fire_schedule('s')").await;
        fire.unwrap_or_else(|error| panic!("{queue}: {error:?}"));
        assert_eq!(payloads(&sql, queue).await, [payload], "{queue}");
        sql.batch_execute("select trunkline.drop_schedule('s')").await.expect("dropped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payload_that_is_too_long_is_refused_and_never_shortened() {
    let sql = queues().await;
    sql.batch_execute(
        "create domain public.bits as bit(3);
         select trunkline.create_queue('bits', 'public.bits'),
                trunkline.create_queue('keyed', 'public.code', partitions => 4),
                trunkline.create_queue('unique', 'public.code', uniqueness => true)",
    )
    .await
    .expect("created");
    let long = "repeat('a', 64)";
    for call in [
        "enqueue('code', 'abcd')".to_owned(),
        "enqueue('code', 'abcd'::varchar)".to_owned(),
        "enqueue('code', 1234)".to_owned(),
        "enqueue('code', 'abcd', delay => '1 hour')".to_owned(),
        "enqueue('keyed', 'abcd', key => 'k')".to_owned(),
        "enqueue_many('code', array['abc', 'abcd'])".to_owned(),
        "enqueue_many('code', array['abc', 'abcd']::varchar[])".to_owned(),
        "enqueue_many('code', '{abc,abcd}')".to_owned(),
        "enqueue_many('code', array[123, 1234])".to_owned(),
        "enqueue_many('keyed', array['abcd'], keys => '{k}')".to_owned(),
        "enqueue_unique('unique', 'abcd', 'k')".to_owned(),
        "enqueue_unique('unique', 1234, 'k')".to_owned(),
        "enqueue_unique_many('unique', array['abcd'], '{k}')".to_owned(),
        "enqueue_unique_many('unique', array[1234], '{k}')".to_owned(),
        "enqueue_with_columns('code', 'abcd', '{}')".to_owned(),
        "send_direct('code', 'abcd')".to_owned(),
        "send_direct('code', 1234)".to_owned(),
        "set_schedule('s', 'code', '@daily', 'abcd')".to_owned(),
        "enqueue('caption', array['abcd'])".to_owned(),
        "enqueue_many('caption', array['{abcd}'])".to_owned(),
        format!("enqueue('named', {long})"),
        format!("enqueue('named', {long}, delay => '1 hour')"),
        format!("enqueue_many('named', array['b', {long}])"),
        format!("set_schedule('s', 'named', '@daily', {long})"),
        "enqueue('letter', 'ab')".to_owned(),
        "enqueue_many('letter', '{a,ab}')".to_owned(),
    ] {
        let error = sql.query(&format!("select * from trunkline.{call}"), &[]).await.expect_err(&call);
        assert_eq!(error.code(), Some(&SqlState::STRING_DATA_RIGHT_TRUNCATION), "{call}: {error:?}");
    }
    let error = sql.query("select trunkline.enqueue('bits', B'1010')", &[]).await.expect_err("four bits");
    assert_eq!(error.code(), Some(&SqlState::STRING_DATA_LENGTH_MISMATCH), "{error:?}");
    for queue in TYPES.map(|(queue, _)| queue).iter().chain(&["bits", "keyed", "unique"]) {
        assert!(payloads(&sql, queue).await.is_empty(), "{queue}");
    }
    // Stores values that fit. PostgreSQL reads this letter since version 16.
    let letter = "case when current_setting('server_version_num')::int >= 160000 then '\\351' else 'b' end";
    sql.batch_execute(&format!(
        "select trunkline.enqueue('code', 'abc  '), trunkline.enqueue('named', left({long}, 63)), trunkline.enqueue('letter', {letter}),
                trunkline.enqueue('bits', B'101'), trunkline.enqueue('caption', array['abc'])"
    ))
    .await
    .expect("enqueued");
    assert_eq!(payloads(&sql, "code").await, ["abc"]);
    assert_eq!(payloads(&sql, "named").await, ["a".repeat(63)]);
    let null = sql.query("select trunkline.enqueue('required', null::text)", &[]).await.expect_err("null");
    assert_eq!(null.code(), Some(&SqlState::NULL_VALUE_NOT_ALLOWED), "{null:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn value_of_a_column_that_is_too_long_is_refused() {
    let sql = queues().await;
    sql.batch_execute(
        "create domain public.tags as int[];
         alter table trunkline.queue_note add column code public.code, add column short varchar(3), add column codes public.code[],
             add column required public.required default '', add column tags public.tags, add column at date",
    )
    .await
    .expect("altered");
    for (column, value) in [("code", "\"abcd\""), ("short", "\"abcd\""), ("codes", "\"{abcd}\""), ("code", "1234")] {
        let call = format!("select trunkline.enqueue_with_columns('note', 'x', '{{\"{column}\": {value}}}')");
        let error = sql.query(&call, &[]).await.expect_err(&call);
        assert_eq!(error.code(), Some(&SqlState::STRING_DATA_RIGHT_TRUNCATION), "{call}: {error:?}");
    }
    let columns = r#"{"code": "abc", "codes": "{a,b}", "required": "r", "tags": "{1}", "at": "2026-02-01"}"#;
    let call = format!("select trunkline.enqueue_with_columns('note', 'x', '{columns}')");
    sql.batch_execute(&call).await.expect("enqueued");
    let stored = "select code || codes::text || required || tags::text || at from trunkline.queue_note";
    assert_eq!(sql.query_one(stored, &[]).await.expect("read").get::<_, &str>(0), "abc{a,b}r{1}2026-02-01");
}

#[tokio::test(flavor = "multi_thread")]
async fn type_that_would_lose_something_is_refused() {
    let sql = queues().await;
    sql.batch_execute("create type public.\"odd(3)\" as enum ('a'); create domain public.alias as name")
        .await
        .expect("created");
    for payload in [
        "numeric(10,2)",
        "varchar(3)",
        "varchar(3)[]",
        "timestamp(3) with time zone",
        "name[]",
        "\"char\"[]",
        "public.alias",
    ] {
        let call = format!("select trunkline.create_queue('lossy', '{payload}')");
        let error = sql.query(&call, &[]).await.expect_err(payload);
        assert_eq!(error.code(), Some(&SqlState::INVALID_PARAMETER_VALUE), "{payload}: {error:?}");
        assert!(error.as_db_error().expect("the server's").hint().is_some(), "{payload}");
    }
    sql.batch_execute(
        "select trunkline.create_queue('whole', '\"public\".\"odd(3)\"'), trunkline.create_queue('plain'),
                trunkline.create_queue('typed', 'jsonb'::regtype), trunkline.create_queue(queue => 'options', payload => 'numeric', max_attempts => 3)",
    )
    .await
    .expect("created");
    let null = sql.query("select trunkline.create_queue('lossy', null)", &[]).await.expect_err("null");
    assert_eq!(null.code(), Some(&SqlState::NULL_VALUE_NOT_ALLOWED), "{null:?}");
    for name in ["'nosuch'", "null"] {
        let gone = sql.query(&format!("select trunkline.payload_type({name})"), &[]).await.expect_err(name);
        assert_eq!(gone.code(), Some(&SqlState::UNDEFINED_TABLE), "{gone:?}");
    }
}

#[tokio::test]
async fn payload_is_converted_alike_by_every_call() {
    let sql = connect(&database().await).await;
    let payloads = [("int8", "5.7"), ("bool", "5"), ("int4", "true"), ("int4", "'5.7'::jsonb")];
    for (n, (payload_type, value)) in payloads.iter().enumerate() {
        let calls = format!(
            "select trunkline.create_queue('q{n}', '{payload_type}');
             select trunkline.enqueue('q{n}', {value});
             select trunkline.enqueue('q{n}', {value}, metadata => '{{\"a\": \"b\"}}');
             select trunkline.enqueue_many('q{n}', array[{value}])"
        );
        sql.batch_execute(&calls).await.unwrap_or_else(|error| panic!("{payload_type} from {value}: {error:?}"));
        let distinct = format!("select count(distinct payload), count(*) from trunkline.messages('q{n}')");
        let row = sql.query_one(&distinct, &[]).await.expect("counted");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 3), "{payload_type} from {value}");
    }
}

/// A driver that does not know the type of a parameter passes bytes as a text. PostgreSQL would
/// read its backslashes as escapes.
#[tokio::test(flavor = "multi_thread")]
async fn text_that_may_be_bytes_is_refused() {
    let sql = connect(&database().await).await;
    sql.batch_execute(
        "create domain public.blob as bytea;
         select trunkline.create_queue('b'), trunkline.create_queue('domain', 'public.blob'),
                trunkline.create_queue('keyed', partitions => 4), trunkline.create_queue('unique', uniqueness => true),
                trunkline.create_queue('text', 'text')",
    )
    .await
    .expect("created");
    for call in [
        r"enqueue('b', 'C:\101\x')",
        r"enqueue('b', 'a\\n'::varchar)",
        r"enqueue('b', 'a\\n', delay => '1 hour')",
        r#"enqueue('b', 'a\\n', metadata => '{"a": "b"}')"#,
        r"enqueue('domain', 'a\\n')",
        r"enqueue('keyed', 'a\\n', key => 'k')",
        r"enqueue('unique', 'a\\n', unique_key => 'k')",
        r"enqueue_many('b', array['plain', 'a\\n'])",
        r"enqueue_many('b', array['plain', 'a\\n']::varchar[])",
        r#"enqueue_many('domain', '{plain,"a\\\\n"}')"#,
        r"enqueue_many('keyed', array['a\\n'], keys => '{k}')",
        r"enqueue_many('unique', array['a\\n'], unique_keys => '{k}')",
        r"enqueue_unique('unique', 'a\\n', 'k')",
        r"enqueue_unique_many('unique', array['a\\n'], '{k}')",
        r#"enqueue_unique_many('unique', '{"a\\\\n"}', '{k}')"#,
        r"enqueue_with_columns('b', 'a\\n', '{}')",
        r"enqueue_many_with_columns('b', array['plain', 'a\\n'], '{}')",
        r"send_direct('b', 'a\\n')",
        r"set_schedule('s', 'b', '@daily', 'a\\n')",
    ] {
        let error = sql.query(&format!("select * from trunkline.{call}"), &[]).await.expect_err(call);
        let error = error.as_db_error().expect("the server's");
        let hint = error.hint().unwrap_or_default();
        assert_eq!((error.code().code(), hint.contains("$2::bytea")), ("22P02", true), "{call}: {error:?}");
    }
    // The server takes a parameter without a type for text, and one of `bytea` after a cast.
    let untyped = sql.execute("select trunkline.enqueue('b', $1)", &[&r"a\\n"]).await.expect_err("a text");
    assert_eq!(untyped.code(), Some(&SqlState::INVALID_TEXT_REPRESENTATION), "{untyped:?}");
    for queue in ["b", "domain", "keyed", "unique"] {
        assert!(payloads(&sql, queue).await.is_empty(), "{queue}");
    }
    let cast = "select trunkline.enqueue('b', $1::bytea), trunkline.enqueue('b', $1::bytea, delay => '1 ms')";
    sql.execute(cast, &[&br"a\\n".as_slice()]).await.expect("enqueued");
    sql.batch_execute(
        r"select trunkline.enqueue('b', '\x5c'), trunkline.enqueue('b', '\x5c', delay => '1 ms'),
                 trunkline.enqueue('b', 'plain'),
                 trunkline.enqueue('domain', '\x5c'), trunkline.enqueue('domain', 'plain', delay => '1 ms'),
                 trunkline.enqueue('keyed', '\x5c', key => 'k'), trunkline.enqueue_unique('unique', '\x5c', 'k'),
                 trunkline.enqueue('text', 'a\\n'), trunkline.enqueue('text', 'a\\n', delay => '1 ms')",
    )
    .await
    .expect("enqueued");
    sql.batch_execute(r"select trunkline.enqueue_many('domain', array['\x5c', 'plain'])").await.expect("enqueued");
    let expected: [(&str, &[&str]); 5] = [
        ("b", &[r"\x5c", r"\x5c", r"\x615c5c6e", r"\x615c5c6e", r"\x706c61696e"]),
        ("domain", &[r"\x5c", r"\x5c", r"\x706c61696e", r"\x706c61696e"]),
        ("keyed", &[r"\x5c"]),
        ("unique", &[r"\x5c"]),
        ("text", &[r"a\\n", r"a\\n"]),
    ];
    for (queue, stored) in expected {
        let mut found = payloads(&sql, queue).await;
        found.sort();
        assert_eq!(found, stored, "{queue}");
    }
}
