//! Transactions as programs usually begin them: a pool of sqlx, a closure of diesel-async, and
//! sea-orm. `docs/enqueueing.md` quotes lines of this file.

use std::{error::Error, time::Duration};

use crate::drivers::{SeaOrm, Sqlx};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use sea_orm::{ConnectionTrait, TransactionTrait};
use sqlx::PgPool;
use transactions::{diesel_async::InDiesel, sea_orm::InSeaOrm, sqlx::InSqlx};
use trunkline::{Db, Queue, Settings, Wait};

type Failed = Box<dyn Error + Send + Sync>;

async fn with_sqlx(pool: &PgPool, mails: &Queue<String>) -> Result<(), Failed> {
    let mut transaction = pool.begin().await?;
    sqlx::query("insert into account values ($1)").bind("ada").execute(&mut *transaction).await?;
    mails.enqueue_in(&InSqlx::new(&mut transaction), "ada has an account".to_owned()).await?;
    transaction.commit().await?;
    Ok(())
}

async fn with_diesel(connection: &mut AsyncPgConnection, mails: &Queue<String>) -> Result<(), Failed> {
    let opened = connection.transaction::<_, Failed, _>(async |transaction| {
        diesel::sql_query("insert into account values ('bob')").execute(transaction).await?;
        mails.enqueue_in(&InDiesel::new(transaction), "bob has an account".to_owned()).await?;
        Ok(())
    });
    opened.await
}

async fn with_sea_orm(db: &sea_orm::DatabaseConnection, mails: &Queue<String>) -> Result<(), Failed> {
    let transaction = db.begin().await?;
    transaction.execute_unprepared("insert into account values ('eve')").await?;
    mails.enqueue_in(&InSeaOrm(&transaction), "eve has an account".to_owned()).await?;
    transaction.commit().await?;
    Ok(())
}

/// The commit of each driver wakes a sleeping consumer.
#[tokio::test]
async fn commits_wake_a_sleeping_consumer() {
    let url = tokio::task::spawn_blocking(trunkline_embedded::test_database).await.expect("ran").expect("a database");
    let db = Db::connect(&url).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("mails", &Settings::of::<String>()).await.expect("created");
    let mails: Queue<String> = db.queue("mails").await.expect("opened");
    let pool = PgPool::connect_with(Sqlx::options(&url)).await.expect("connected");
    sqlx::query("create table account (name text primary key)").execute(&pool).await.expect("created");
    let mut connection = AsyncPgConnection::establish(&url).await.expect("connected");
    let sea = SeaOrm::pool(&url).await;

    // `join!` polls the consumer first, so the consumer is already waiting when the transaction
    // begins.
    let mut consumer = mails.consumer(Wait::Notify);
    let (taken, committed) = tokio::join!(next(&mut consumer), with_sqlx(&pool, &mails));
    committed.expect("committed");
    assert_eq!(taken, "ada has an account");
    let (taken, committed) = tokio::join!(next(&mut consumer), with_diesel(&mut connection, &mails));
    committed.expect("committed");
    assert_eq!(taken, "bob has an account");
    let (taken, committed) = tokio::join!(next(&mut consumer), with_sea_orm(&sea, &mails));
    committed.expect("committed");
    assert_eq!(taken, "eve has an account");

    let again = with_sqlx(&pool, &mails).await.expect_err("ada has one");
    assert!(again.to_string().contains("duplicate key"), "{again}");
    assert_eq!(mails.stats().await.expect("counted").messages, 0, "nothing without its account");
}

async fn next(consumer: &mut trunkline::Consumer<String>) -> String {
    let taken = tokio::time::timeout(Duration::from_secs(25), consumer.take(1)).await.expect("woken").expect("taken");
    taken.into_iter().next().expect("a message").payload
}

#[test]
fn guide_shows_lines_of_this_file() {
    let (guide, program) = (include_str!("../../../../docs/enqueueing.md"), include_str!("usual.rs"));
    let block = guide.split("// sqlx\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the lines");
    for line in block.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        assert!(program.lines().any(|of| of.trim() == line.trim()), "{line:?} is not in the program");
    }
}
