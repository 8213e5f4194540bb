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
    let gone = sql.query("select trunkline.payload_type('nosuch')", &[]).await.expect_err("none");
    assert_eq!(gone.code(), Some(&SqlState::UNDEFINED_TABLE), "{gone:?}");
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
