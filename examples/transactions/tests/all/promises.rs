//! The same guarantees in transactions of each driver, on a real PostgreSQL.

use std::time::Duration;

use crate::drivers::{Diesel, Driver, SeaOrm, Sqlx};
use serde_json::{Value, json, value::RawValue};
use trunkline::{Db, Draft, Enqueued, Error, Json, Metadata, Payload, Queue, Readable, Settings, Unique};

type Jobs = Queue<Json<Value>>;

async fn database() -> (String, Db) {
    let url = tokio::task::spawn_blocking(trunkline_embedded::test_database).await.expect("ran").expect("a database");
    let db = Db::connect(&url).await.expect("connected");
    db.migrate().await.expect("migrated");
    (url, db)
}

async fn with_queue<D: Driver, T: Payload>(settings: &Settings) -> (D, Db, Queue<T>) {
    let (url, db) = database().await;
    db.create_queue("jobs", settings).await.expect("created");
    (D::connect(&url).await, db.clone(), db.queue("jobs").await.expect("opened"))
}

async fn depth(jobs: &Jobs) -> u64 {
    jobs.stats().await.expect("counted").messages
}

/// A commit stores the messages of the transaction, and a rollback discards them.
async fn enqueues<D: Driver>() {
    let (mut driver, _db, jobs) = with_queue::<D, Json<Value>>(&Settings::new("jsonb").uniqueness(true)).await;
    driver.run("create table account (name text)").await;
    for commit in [false, true] {
        driver.begin().await;
        driver.run("insert into account values ('ada')").await;
        {
            let inside = driver.inside();
            let draft = Draft::new(Json(json!({"to": "ada"}))).metadata(Metadata::new().with("tenant", "7"));
            let one = jobs.enqueue_in(&inside, draft).await.expect("enqueued");
            assert!(matches!(one, Enqueued::New(_)));
            let many = (0..1500).map(|n| Json(json!(n)));
            assert_eq!(jobs.enqueue_many_in(&inside, many).await.expect("enqueued").len(), 1500);
            let later = Draft::new(Json(json!("later"))).after(Duration::from_secs(3600));
            jobs.enqueue_in(&inside, later).await.expect("enqueued");
            let unique = || Draft::new(Json(json!("once"))).unique(Unique::key("key"));
            let first = jobs.enqueue_in(&inside, unique()).await.expect("enqueued");
            let second = jobs.enqueue_in(&inside, unique()).await.expect("enqueued");
            assert!(
                matches!((first, second), (Enqueued::New(a), Enqueued::Duplicate(b)) if a == b),
                "{first:?} {second:?}"
            );
        }
        assert_eq!(depth(&jobs).await, 0, "nothing is committed");
        driver.end(commit).await;
        assert_eq!(depth(&jobs).await, if commit { 1503 } else { 0 });
    }
    let first = jobs.take(1).await.expect("taken").remove(0);
    assert_eq!((first.payload.0, first.metadata.get("tenant")), (json!({"to": "ada"}), Some("7")));
}

/// A rollback keeps taken messages in the queue, and a commit removes them. An acknowledgement
/// belongs to the transaction.
async fn takes_and_acknowledges<D: Driver>() {
    let (mut driver, _db, jobs) = with_queue::<D, Json<Value>>(&Settings::new("jsonb")).await;
    jobs.enqueue_many((0..10).map(|n| Json(json!(n)))).await.expect("enqueued");
    for commit in [false, true] {
        driver.begin().await;
        let taken = jobs.take_in(&driver.inside(), 4).await.expect("taken");
        assert_eq!(taken.iter().map(|message| message.payload.0.clone()).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(taken.iter().all(|message| message.metadata.is_empty()));
        driver.end(commit).await;
        assert_eq!(depth(&jobs).await, if commit { 6 } else { 10 });
    }
    let leased = jobs.lease(2).await.expect("leased");
    driver.begin().await;
    jobs.ack_in(&driver.inside(), &leased).await.expect("acknowledged");
    driver.end(false).await;
    driver.begin().await;
    jobs.ack_in(&driver.inside(), &leased).await.expect("acknowledged");
    driver.end(true).await;
    driver.begin().await;
    let lost = jobs.ack_in(&driver.inside(), &leased).await.expect_err("acknowledged before");
    assert!(lost.is_lease_lost(), "{lost}");
    driver.end(true).await;
    let ids: Vec<i64> = jobs.peek(1).await.expect("seen").iter().map(|message| message.id).collect();
    driver.begin().await;
    assert_eq!(jobs.reschedule_in(&driver.inside(), &ids, Duration::from_secs(60)).await.expect("changed"), ids);
    assert_eq!(jobs.cancel_in(&driver.inside(), &ids).await.expect("cancelled"), ids);
    driver.end(true).await;
    assert_eq!(depth(&jobs).await, 3);
}

/// Payloads of bytes, and of other types that the driver supports, do not change.
async fn carries<D: Driver, T: Payload + PartialEq + Clone + std::fmt::Debug>(ty: &str, values: Vec<T>) {
    let (mut driver, _db, jobs) = with_queue::<D, T>(&Settings::new(ty)).await;
    driver.begin().await;
    jobs.enqueue_many_in(&driver.inside(), values.clone()).await.expect("enqueued");
    driver.end(true).await;
    driver.begin().await;
    let taken = jobs.take_in(&driver.inside(), 10).await.expect("taken");
    driver.end(true).await;
    assert_eq!(taken.into_iter().map(|message| message.payload).collect::<Vec<_>>(), values);
}

async fn carries_bytes_text_and_numbers<D: Driver>() {
    carries::<D, Vec<u8>>("bytea", vec![vec![0, 255, 10], Vec::new(), vec![7; 100_000]]).await;
    carries::<D, String>("text", vec!["ä'\"\\ \u{1f600}".into(), String::new()]).await;
    carries::<D, i64>("int8", vec![i64::MIN, 0, i64::MAX]).await;
}

/// An unreadable message stays in the queue and counts an attempt. The other messages are
/// delivered.
async fn passes_over_the_unreadable<D: Driver>() {
    let (mut driver, db, jobs) = with_queue::<D, Json<Value>>(&Settings::new("jsonb")).await;
    jobs.enqueue_many([Json(json!("text")), Json(json!(1))]).await.expect("enqueued");
    let numbers: Queue<Json<i64>> = db.queue("jobs").await.expect("opened");
    driver.begin().await;
    let taken = numbers.take_in(&driver.inside(), 2).await.expect("taken");
    driver.end(true).await;
    assert_eq!(taken.iter().map(|message| message.payload.0).collect::<Vec<_>>(), [1]);
    let all: Queue<Readable<Json<i64>>> = db.queue("jobs").await.expect("opened");
    let left = all.peek(10).await.expect("seen");
    assert_eq!(left.iter().map(|message| message.attempt).collect::<Vec<_>>(), [1]);
    assert!(left[0].error.as_deref().is_some_and(|error| error.contains("cannot be read")), "{left:?}");
}

/// The library's error has the driver's error as its source.
async fn fails_as_the_driver<D: Driver>() {
    let (mut driver, _db, jobs) = with_queue::<D, Json<Value>>(&Settings::new("jsonb")).await;
    driver.begin().await;
    assert!(driver.fails("select 1 / 0").await);
    let error: Error = jobs.enqueue_in(&driver.inside(), Json(json!(1))).await.expect_err("the transaction is over");
    assert!(error.to_string().contains("transaction is aborted"), "{error}");
    assert!(error.downcast_ref::<D::Error>().is_some(), "{error:?}");
    driver.end(false).await;
    assert_eq!(depth(&jobs).await, 0);
}

macro_rules! each {
    ($($test:ident)*) => {
        mod sqlx { $(#[tokio::test] async fn $test() { super::$test::<super::Sqlx>().await })* }
        mod diesel_async { $(#[tokio::test] async fn $test() { super::$test::<super::Diesel>().await })* }
        mod sea_orm { $(#[tokio::test] async fn $test() { super::$test::<super::SeaOrm>().await })* }
    };
}
each!(enqueues takes_and_acknowledges carries_bytes_text_and_numbers passes_over_the_unreadable fails_as_the_driver);

/// User-defined types, which sqlx and diesel-async pass on and sea-orm refuses.
#[tokio::test]
async fn own_types_are_passed_on_or_refused() {
    async fn own<D: Driver>() -> Result<Enqueued, Error> {
        let (url, db) = database().await;
        let mut driver = D::connect(&url).await;
        driver.run("create domain word as text check (value <> '')").await;
        db.create_queue("words", &Settings::new("word")).await.expect("created");
        let words: Queue<String> = db.queue("words").await.expect("opened");
        driver.begin().await;
        let enqueued = words.enqueue_in(&driver.inside(), "hello".to_owned()).await;
        if enqueued.is_ok() {
            assert_eq!(words.take_in(&driver.inside(), 1).await.expect("taken")[0].payload, "hello");
        }
        driver.end(enqueued.is_ok()).await;
        enqueued
    }
    own::<Sqlx>().await.expect("enqueued");
    own::<Diesel>().await.expect("enqueued");
    let refused = own::<SeaOrm>().await.expect_err("not a type of sea-orm");
    assert!(refused.to_string().contains("sea-orm cannot bind the type"), "{refused}");
}

#[tokio::test]
async fn sea_orm_binds_arrays_with_nulls() {
    let (mut driver, _db, jobs) = with_queue::<SeaOrm, Json<Value>>(&Settings::new("jsonb")).await;
    let text = "a \"quoted\" \\ text, {null}";
    driver.begin().await;
    let with = Draft::new(Json(json!(text))).metadata(Metadata::new().with("name", text));
    jobs.enqueue_many_in(&driver.inside(), [with, Draft::new(Json(json!(2)))]).await.expect("enqueued");
    driver.end(true).await;
    let taken = jobs.take(2).await.expect("taken");
    assert_eq!((&taken[0].payload.0, taken[0].metadata.get("name")), (&json!(text), Some(text)));
    assert_eq!((&taken[1].payload.0, taken[1].metadata.is_empty()), (&json!(2), true));
}

#[tokio::test]
async fn sea_orm_keeps_every_digit_of_a_number() {
    let (mut driver, _db, jobs) = with_queue::<SeaOrm, Json<Box<RawValue>>>(&Settings::new("jsonb")).await;
    let numbers = ["123456789012345678901234567890", "0.1234567890123456789012345678901", "-1.50"];
    let json = |number: &str| Json(RawValue::from_string(number.to_owned()).expect("a number"));
    driver.begin().await;
    jobs.enqueue_in(&driver.inside(), json(numbers[0])).await.expect("enqueued");
    jobs.enqueue_many_in(&driver.inside(), numbers[1..].iter().map(|number| json(number))).await.expect("enqueued");
    driver.end(true).await;
    let taken = jobs.take(3).await.expect("taken");
    assert_eq!(taken.iter().map(|message| message.payload.0.get()).collect::<Vec<_>>(), numbers);
}
