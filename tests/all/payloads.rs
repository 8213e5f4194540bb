//! Payloads of every type stay unchanged through every way to enqueue and dequeue.

use std::{error::Error, fmt::Debug, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use postgres_types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};
use proptest::{
    prelude::{Strategy, any},
    test_runner::{Config, TestRunner},
};
use serde::{Deserialize, Serialize};
use trunkline::{Binary, Db, Json, Message, Payload, Queue, Settings};
use uuid::Uuid;

use crate::fixture::{Ids, Place, connect, database, place};

type Failure = Box<dyn Error + Sync + Send>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    customer: String,
    lines: Vec<(u32, f64)>,
    note: Option<String>,
}

/// `create type money_in as (currency text, cents int8)`.
#[derive(Debug, Clone, PartialEq)]
struct MoneyIn {
    currency: String,
    cents: Option<i64>,
}

impl ToSql for MoneyIn {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        out.put_i32(2);
        for (ty, field) in [(Type::TEXT, &self.currency as &dyn ToSql), (Type::INT8, &self.cents)] {
            out.put_u32(ty.oid());
            let at = out.len();
            out.put_i32(-1);
            if let IsNull::No = field.to_sql_checked(&ty, out)? {
                let length = i32::try_from(out.len() - at - 4)?;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Composite(fields) if fields.len() == 2)
    }

    to_sql_checked!();
}

impl FromSql<'_> for MoneyIn {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Failure> {
        let field = |at: usize| -> Result<(Option<&[u8]>, usize), Failure> {
            let length = i32::from_be_bytes(raw[at + 4..at + 8].try_into()?);
            let end = at + 8 + usize::try_from(length).unwrap_or(0);
            Ok(((length >= 0).then(|| &raw[at + 8..end]), end))
        };
        let (currency, after) = field(4)?;
        Ok(Self {
            currency: String::from_sql_nullable(&Type::TEXT, currency)?,
            cents: Option::from_sql_nullable(&Type::INT8, field(after)?.0)?,
        })
    }

    fn accepts(ty: &Type) -> bool {
        <Self as ToSql>::accepts(ty)
    }
}

/// `create type mood as enum ('sad', 'ok', 'happy')`.
#[derive(Debug, Clone, PartialEq)]
struct Mood(String);

impl ToSql for Mood {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        out.put_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Enum(_))
    }

    to_sql_checked!();
}

impl FromSql<'_> for Mood {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Failure> {
        Ok(Self(String::from_utf8(raw.to_vec())?))
    }

    fn accepts(ty: &Type) -> bool {
        <Self as ToSql>::accepts(ty)
    }
}

fn values<T: Clone>(messages: &[Message<T>]) -> Vec<(i64, T)> {
    messages.iter().map(|message| (message.id, message.payload.clone())).collect()
}

/// Enqueues the values in every way, and dequeues them in every way.
async fn round_trip<T: Payload + Debug + Clone + PartialEq>(url: &str, ty: &str, sent: &[T]) {
    let (db, mut sql) = (Db::connect(url).await.expect("connected"), connect(url).await);
    let name = format!("t{}", ty.bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())));
    db.create_queue(&name, &Settings::new(ty).max_attempts(1)).await.expect(ty);
    let queue: Queue<T> = db.queue(&name).await.expect(ty);
    let enqueue = async |way: usize| -> Vec<(i64, T)> {
        let ids = match way {
            0 => queue.enqueue_many(sent).await.expect(ty).ids(),
            1 => {
                let mut ids = Vec::new();
                for value in sent {
                    ids.push(queue.enqueue(value).await.expect(ty).id());
                }
                ids
            }
            _ => {
                let mut sql = connect(url).await;
                let transaction = sql.transaction().await.expect("begun");
                let ids = queue.enqueue_many_in(&transaction, sent).await.expect(ty).ids();
                transaction.commit().await.expect("committed");
                ids
            }
        };
        ids.into_iter().zip(sent.iter().cloned()).collect()
    };
    let all = sent.len();
    for way in 0..3 {
        let expected = enqueue(way).await;
        let peeked = queue.peek(all).await.expect(ty);
        assert_eq!(peeked.into_iter().map(|seen| (seen.id, seen.payload)).collect::<Vec<_>>(), expected, "{ty}: peek");
        let transaction = sql.transaction().await.expect("begun");
        assert_eq!(values(&queue.take_in(&transaction, all).await.expect(ty)), expected, "{ty}: exactly once");
        transaction.rollback().await.expect("rolled back");
        assert_eq!(values(&queue.take(all).await.expect(ty)), expected, "{ty}: at most once");

        let expected = enqueue(way).await;
        let leased = queue.lease(all).await.expect(ty);
        assert_eq!(values(&leased), expected, "{ty}: at least once");
        let (kept, failed) = leased.split_at(all / 2);
        queue.archive(kept).await.expect(ty);
        queue.retry(failed, Duration::ZERO, "no").await.expect(ty);
        let dead = queue.dead_letters(0, all).await.expect(ty);
        let dead: Vec<_> = dead.into_iter().map(|dead| (dead.id, dead.payload)).collect();
        assert_eq!(dead, expected[all / 2..], "{ty}: dead letters");
        assert_eq!(queue.replay_all().await.expect(ty), dead.len());
        assert_eq!(values(&queue.take(all).await.expect(ty)), dead, "{ty}: replayed");
        let archived = queue.archived(0, 9 * all).await.expect(ty);
        let archived: Vec<_> = archived.into_iter().map(|kept| (kept.id, kept.payload)).collect();
        assert!(archived.ends_with(&expected[..all / 2]), "{ty}: archive");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_comes_out_as_it_went_in() {
    let url = database().await;
    let types = "create type money_in as (currency text, cents int8);
                 create type mood as enum ('sad', 'ok', 'happy');
                 create domain short as text check (length(value) < 6);
                 create domain shorter as short not null";
    connect(&url).await.batch_execute(types).await.expect("created");
    let text = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<String>>();
    let order = |note: Option<&str>| {
        Json(Order { customer: "Å \"quoted\"".into(), lines: vec![(1, 0.1), (7, -3e9)], note: note.map(Into::into) })
    };
    round_trip(&url, "bytea", &[vec![], vec![0_u8], (0..=255).collect(), vec![255; 5000]]).await;
    round_trip(&url, "bytea", &[Binary(Bytes::new()), Binary(Bytes::from_static(b"\\x00\0"))]).await;
    round_trip(&url, "text", &text(&["", "a", "{\"NULL\",x}", "NULL", "søde 🚂", &"long ".repeat(3000)])).await;
    round_trip(&url, "int2", &[i16::MIN, 0, i16::MAX]).await;
    round_trip(&url, "int4", &[i32::MIN, 0, i32::MAX]).await;
    round_trip(&url, "int8", &[i64::MIN, 0, i64::MAX]).await;
    round_trip(&url, "uuid", &[Uuid::nil(), Uuid::max(), Uuid::from_u128(7)]).await;
    round_trip(&url, "bool", &[true, false, true]).await;
    round_trip(&url, "float8", &[0.1, -0.0, f64::MAX, f64::INFINITY, 5e-324]).await;
    round_trip(&url, "jsonb", &[order(None), order(Some("")), order(Some("[1]"))]).await;
    round_trip(&url, "json", &[order(None), order(Some("nul\\u0000"))]).await;
    let money = |currency: &str, cents| MoneyIn { currency: currency.into(), cents };
    round_trip(&url, "money_in", &[money("EUR", Some(5)), money("", None), money("(a,\"b\")", Some(-1))]).await;
    round_trip(&url, "int4[]", &[vec![], vec![1], vec![i32::MIN, 0, i32::MAX], (0..3000).collect()]).await;
    round_trip(&url, "text[]", &[text(&[]), text(&["", "a,b", "{}"])]).await;
    round_trip(&url, "mood", &["sad", "happy", "ok"].map(|mood| Mood(mood.to_owned()))).await;
    round_trip(&url, "short", &text(&["", "12345"])).await;
    round_trip(&url, "shorter", &text(&["", "12345"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn value_that_its_type_refuses_is_a_bad_payload() {
    let url = database().await;
    let types = "create type mood as enum ('sad'); create domain short as text check (length(value) < 6)";
    connect(&url).await.batch_execute(types).await.expect("created");
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("m", &Settings::new("mood")).await.expect("created");
    db.create_queue("s", &Settings::new("short")).await.expect("created");
    let (moods, shorts) =
        (db.queue::<Mood>("m").await.expect("opened"), db.queue::<String>("s").await.expect("opened"));
    for error in [
        moods.enqueue(Mood("glad".into())).await.expect_err("no such mood"),
        shorts.enqueue("123456".to_owned()).await.expect_err("too long"),
        shorts.enqueue_many(&["1".to_owned(), "123456".to_owned()]).await.expect_err("too long"),
    ] {
        assert!(error.is_bad_payload(), "{error}");
    }
    assert_eq!(moods.stats().await.expect("counted").messages + shorts.stats().await.expect("counted").messages, 0);
    assert!(db.queue::<Mood>("s").await.expect_err("a text").is_wrong_type());
    assert!(db.queue::<String>("m").await.expect_err("an enum").is_wrong_type());
}

#[test]
fn bytes_and_text_come_out_as_they_went_in() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let Place { db, queue: bytes, .. } = runtime.block_on(place::<Vec<u8>>(Settings::new("bytea").max_batch(5)));
    let text: Queue<String> = runtime.block_on(async {
        db.create_queue("text", &Settings::new("text").max_batch(5)).await.expect("created");
        db.queue("text").await.expect("opened")
    });
    let config = Config { cases: 60, failure_persistence: None, ..Config::default() };
    let no_nul = proptest::collection::vec(any::<char>().prop_filter("no NUL", |c| *c != '\0'), 0..40);
    let lists = (
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..12),
        proptest::collection::vec(no_nul.prop_map(String::from_iter), 1..12),
    );
    let outcome = TestRunner::new(config).run(&lists, |(some_bytes, some_text)| {
        runtime.block_on(async {
            bytes.enqueue_many(&some_bytes).await.expect("enqueued");
            text.enqueue_many(&some_text).await.expect("enqueued");
            let got: Vec<Vec<u8>> =
                bytes.take(99).await.expect("taken").into_iter().map(|message| message.payload).collect();
            let got_text: Vec<String> =
                text.take(99).await.expect("taken").into_iter().map(|message| message.payload).collect();
            assert_eq!((got, got_text), (some_bytes, some_text));
        });
        Ok(())
    });
    outcome.expect("every list");
}

/// A batch ends at 64 KiB, including lengths, unless its only message is larger.
#[tokio::test(flavor = "multi_thread")]
async fn payloads_around_the_batch_bound_keep_order_and_ids() {
    const BOUND: usize = 64 << 10;
    let Place { queue, sql, db: _db, .. } = place::<Vec<u8>>(Settings::new("bytea")).await;
    let half = BOUND / 2;
    let sizes = [
        [1, BOUND - 4, 1, BOUND - 5, 1],
        [BOUND - 3, BOUND, BOUND + 1, 0, 0],
        [half - 4, half - 4, half - 4, half - 3, half - 4],
        [3 * BOUND, 10, 10, half, half],
    ]
    .concat();
    let payloads: Vec<Vec<u8>> = sizes.iter().zip(0..).map(|(size, nr)| vec![nr; *size]).collect();
    for from_sql in [false, true] {
        let ids: Vec<i64> = if from_sql {
            let rows = sql.query("select * from trunkline.enqueue_many('q', $1::bytea[])", &[&payloads]).await;
            rows.expect("enqueued").iter().map(|row| row.get(0)).collect()
        } else {
            queue.enqueue_many(&payloads).await.expect("enqueued").ids()
        };
        assert!(ids.is_sorted_by(|one, next| one < next) && ids.len() == payloads.len());
        let rows = "select size, pg_column_size(payload), (select max(length(p)) from unnest(payload) p) from trunkline.queue_q";
        let rows = sql.query(rows, &[]).await.expect("read");
        assert!((5..20).contains(&rows.len()), "{} rows", rows.len());
        for row in rows {
            let [size, bytes, largest] = [0, 1, 2].map(|at| row.get::<_, i32>(at).unsigned_abs() as usize);
            // Ignores the largest message of a row that SQL enqueued, because other messages may
            // share its row.
            let beside = if from_sql { bytes - largest } else { bytes };
            assert!(size == 1 || beside <= BOUND + 8 * size + 64, "{size} messages of {bytes} bytes in a row");
        }
        let mut got = Vec::new();
        for n in [1, 2, 3, 4, 99] {
            got.extend(values(&queue.take(n).await.expect("taken")));
        }
        let expected: Vec<_> = ids.into_iter().zip(payloads.iter().cloned()).collect();
        assert!(got == expected, "from SQL: {from_sql}: ids, order and bytes");
    }
}

/// Values that JSON cannot represent are refused at the enqueue. All other values come back
/// unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn json_comes_back_as_it_was_or_is_refused() {
    let db = Db::connect(&database().await).await.expect("connected");
    db.create_queue("q", &Settings::new("jsonb")).await.expect("created");
    let numbers = db.queue::<Json<f64>>("q").await.expect("opened");
    for number in [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 123_456_789.123_456_79, 0.1 + 0.2, 1e23, 0.0] {
        numbers.enqueue(Json(number)).await.expect("enqueued");
        let back = numbers.take(1).await.expect("taken")[0].payload.0;
        assert_eq!(back.to_bits(), number.to_bits(), "{number:e} is {back:e}");
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = numbers.enqueue(Json(number)).await.expect_err("there is no word for it");
        assert!(error.is_bad_payload() && error.to_string().contains("not finite"), "{error}");
    }
    let values = db.queue::<Json<serde_json::Value>>("q").await.expect("opened");
    let nested = |depth| (0..depth).fold(serde_json::json!(null), |inner, _| serde_json::json!([inner]));
    for (depth, fits) in [(127, true), (128, false), (200, false)] {
        match values.enqueue(Json(nested(depth))).await {
            Ok(_) => assert!(fits && values.take(1).await.expect("taken")[0].payload.0 == nested(depth), "{depth}"),
            Err(error) => assert!(!fits && error.to_string().contains("at most 127"), "{depth}: {error}"),
        }
    }
    assert_eq!(values.stats().await.expect("counted").messages, 0);
}
