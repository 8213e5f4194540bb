//! Binary copies work in both directions, with whole rows and with typed values.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use tokio::time::timeout;
use trunkline::postgres::compat::{
    Client,
    binary_copy::{BinaryCopyInWriter, BinaryCopyOutRow, BinaryCopyOutStream},
    error::SqlState,
    types::{ToSql, Type},
};

use super::{connect, count, with_table};
use crate::fixture::SOON;

const TYPES: [Type; 2] = [Type::INT4, Type::TEXT];

async fn writer(client: &Client, copy: &str, types: &[Type]) -> BinaryCopyInWriter {
    BinaryCopyInWriter::new(client.copy_in::<_, Bytes>(copy).await.expect("begun"), types)
}

async fn reader(client: &Client, copy: &str, types: &[Type]) -> BinaryCopyOutStream {
    BinaryCopyOutStream::new(client.copy_out(copy).await.expect("begun"), types)
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_every_kind_return_unchanged() {
    let (client, _) = connect().await;
    let columns = "a int2, b int8, c float8, d bool, e text, f bytea, g timestamptz, h uuid, i int4[], j jsonb";
    client.batch_execute(&format!("create temp table kinds ({columns})")).await.expect("created");
    let types = [
        Type::INT2,
        Type::INT8,
        Type::FLOAT8,
        Type::BOOL,
        Type::TEXT,
        Type::BYTEA,
        Type::TIMESTAMPTZ,
        Type::UUID,
        Type::INT4_ARRAY,
        Type::JSONB,
    ];
    let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
    let (id, json) = (uuid::Uuid::from_u128(7), serde_json::json!({"a": [1, null]}));
    let numbers = vec![Some(1), None, Some(3)];
    let mut copy = pin!(writer(&client, "copy kinds from stdin binary", &types).await);
    let values: [&(dyn ToSql + Sync); 10] =
        [&7_i16, &i64::MIN, &f64::MAX, &true, &"ü", &&b"\0\xff"[..], &time, &id, &numbers, &json];
    copy.as_mut().write(&values).await.expect("written");
    assert_eq!(copy.finish().await.expect("copied"), 1);
    client.execute("insert into kinds default values", &[]).await.expect("inserted");
    let rows: Vec<BinaryCopyOutRow> =
        reader(&client, "copy kinds to stdout binary", &types).await.try_collect().await.expect("read");
    let row = &rows[0];
    assert_eq!((row.get(0), row.get(1), row.get(2), row.get(3)), (7_i16, i64::MIN, f64::MAX, true));
    assert_eq!((row.get::<&str>(4), row.get::<&[u8]>(5), row.get::<SystemTime>(6)), ("ü", &b"\0\xff"[..], time));
    assert_eq!((row.get::<uuid::Uuid>(7), row.get::<Vec<Option<i32>>>(8)), (id, numbers));
    assert_eq!(row.get::<serde_json::Value>(9), json);
    assert!(row.try_get::<i32>(0).is_err() && row.try_get::<i16>(10).is_err());
    assert_eq!((rows.len(), rows[1].get::<Option<i16>>(0), rows[1].get::<Option<&str>>(4)), (2, None, None));
    assert!(rows[1].try_get::<i16>(0).is_err(), "a null is no number");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_any_size_and_nulls_go_both_ways() {
    let client = with_table().await;
    let big = "x".repeat(5 << 20);
    let mut copy = pin!(writer(&client, "copy t from stdin binary", &TYPES).await);
    for n in 0..10_000_i32 {
        let word = (n % 2 == 0).then(|| format!("word {n}"));
        copy.as_mut().write(&[&n, &word]).await.expect("written");
    }
    for n in 10_000..10_003_i32 {
        copy.as_mut().write(&[&n, &big]).await.expect("written");
    }
    assert_eq!(copy.finish().await.expect("copied"), 10_003);
    let mut rows = reader(&client, "copy (select * from t order by n) to stdout binary", &TYPES).await;
    for n in 0..10_003_i32 {
        let row = rows.try_next().await.expect("read").expect("a row");
        let word = if n < 10_000 { (n % 2 == 0).then(|| format!("word {n}")) } else { Some(big.clone()) };
        assert!((row.get(0), row.get(1)) == (n, word), "row {n}");
    }
    assert!(rows.next().await.is_none() && rows.next().await.is_none());
    let empty = "copy (select * from t where false) to stdout binary";
    assert!(reader(&client, empty, &TYPES).await.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_dropped_midway_leaves_the_session_in_step() {
    let client = with_table().await;
    let word = "x".repeat(1000);
    {
        let mut copy = pin!(writer(&client, "copy t from stdin binary", &TYPES).await);
        for n in 0..10_000_i32 {
            copy.as_mut().write(&[&n, &word]).await.expect("written");
        }
    }
    assert_eq!(count(&client).await, 0, "the copy is aborted");
    let series = "copy (select n, repeat('x', 1000) from generate_series(1, 20000) n) to stdout binary";
    for read in [0, 1, 3000] {
        let mut rows = reader(&client, series, &TYPES).await;
        for n in 1..=read {
            assert_eq!(rows.try_next().await.expect("read").expect("a row").get::<i32>(0), n);
        }
    }
    let mut rows = reader(&client, series, &TYPES).await;
    assert!(rows.try_next().await.expect("read").is_some());
    let answer = client.query_one_scalar::<i32, _>("select 7", &[]);
    assert_eq!(timeout(SOON, answer).await.expect("a slow reader delays no call").expect("read"), 7);
    assert_eq!(rows.try_fold(1, async |n, _| Ok(n + 1)).await.expect("read"), 20_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_do_not_fit_write_nothing_of_their_row() {
    let client = with_table().await;
    let mut copy = pin!(writer(&client, "copy t from stdin binary", &TYPES).await);
    let error = copy.as_mut().write(&[&1_i32, &2_i32]).await.expect_err("no text").to_string();
    assert!(error.contains("parameter"), "{error}");
    let few = AssertUnwindSafe(copy.as_mut().write(&[&1_i32])).catch_unwind().await;
    assert_eq!(few.expect_err("panics").downcast_ref::<String>().expect("a text"), "expected 2 values but got 1");
    copy.as_mut().write_raw([&3_i32 as &(dyn ToSql + Sync), &"three"]).await.expect("written");
    assert_eq!(copy.finish().await.expect("copied"), 1);
    let row = client.query_one("select n, word from t", &[]).await.expect("read");
    assert_eq!((row.get(0), row.get(1)), (3_i32, "three"));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_rows_and_wrong_formats_are_errors() {
    let client = with_table().await;
    client.batch_execute("insert into t values (1, 'one')").await.expect("inserted");
    let mut copy = pin!(writer(&client, "copy t from stdin binary", &TYPES[..1]).await);
    copy.as_mut().write(&[&2_i32]).await.expect("sent");
    let error = copy.finish().await.expect_err("too few columns");
    assert_eq!(error.code(), Some(&SqlState::BAD_COPY_FILE_FORMAT), "{error}");
    let mut copy = pin!(writer(&client, "copy t from stdin binary", &TYPES).await);
    copy.as_mut().write(&[&1_i32, &"again"]).await.expect("sent");
    assert_eq!(copy.finish().await.expect_err("twice").code(), Some(&SqlState::UNIQUE_VIOLATION));
    let mut copy = pin!(writer(&client, "copy t (word) from stdin", &[Type::TEXT]).await);
    copy.as_mut().write(&[&"binary"]).await.expect("sent");
    assert!(copy.finish().await.is_err(), "the server reads text");
    for (copy, types, says) in [
        ("copy t to stdout binary", &TYPES[..1], "expected 1 values but got 2"),
        ("copy t to stdout", &TYPES[..], "not in the binary format"),
        ("copy (select where false) to stdout", &TYPES[..], "without the trailer"),
    ] {
        let mut rows = reader(&client, copy, types).await;
        let error = rows.try_next().await.expect_err(copy).to_string();
        assert!(error.contains(says), "{copy}: {error}");
        assert!(rows.next().await.is_none(), "{copy}");
    }
    let by_zero = "copy (select 1 / (3 - n), 'x' from generate_series(1, 9) n) to stdout binary";
    let rows: Vec<_> = reader(&client, by_zero, &TYPES).await.collect().await;
    assert!(rows.len() == 3 && rows[..2].iter().all(Result::is_ok));
    assert_eq!(rows[2].as_ref().map(drop).expect_err("by zero").code(), Some(&SqlState::DIVISION_BY_ZERO));
    assert_eq!(count(&client).await, 1, "the session is in step");
}
