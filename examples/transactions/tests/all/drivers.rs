//! A connection for each driver. The tests begin and end transactions on it.

use std::{collections::HashMap, error::Error};

use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use sea_orm::{ConnectionTrait, DatabaseConnection, DatabaseTransaction, SqlxPostgresConnector, TransactionTrait};
use sqlx::{Connection, PgConnection};
use transactions::{diesel_async::InDiesel, sea_orm::InSeaOrm, sqlx::InSqlx};
use trunkline::postgres::ForeignTransaction;

pub trait Driver: Sized {
    type Inside<'a>: ForeignTransaction
    where
        Self: 'a;
    type Error: Error + 'static;

    async fn connect(url: &str) -> Self;
    async fn begin(&mut self);
    fn inside(&mut self) -> Self::Inside<'_>;
    async fn end(&mut self, commit: bool);
    async fn try_run(&mut self, statement: &str) -> Result<(), Box<dyn Error>>;
    async fn run(&mut self, statement: &str) {
        self.try_run(statement).await.expect("run");
    }

    async fn fails(&mut self, statement: &str) -> bool {
        self.try_run(statement).await.is_err()
    }
}

fn word(commit: bool) -> &'static str {
    if commit { "commit" } else { "rollback" }
}

/// Returns the value of a name in `host=… port=… user=… dbname=…`.
fn part<'a>(url: &'a str, name: &str) -> &'a str {
    let parts: HashMap<&str, &str> = url.split_whitespace().filter_map(|part| part.split_once('=')).collect();
    parts[name].trim_matches('\'')
}

pub struct Sqlx(PgConnection);

impl Sqlx {
    pub fn options(url: &str) -> sqlx::postgres::PgConnectOptions {
        let options = sqlx::postgres::PgConnectOptions::new_without_pgpass().socket(part(url, "host"));
        let options = options.port(part(url, "port").parse().expect("a port")).username(part(url, "user"));
        options.database(part(url, "dbname"))
    }
}

impl Driver for Sqlx {
    type Inside<'a> = InSqlx<'a>;
    type Error = sqlx::Error;

    async fn connect(url: &str) -> Self {
        Self(PgConnection::connect_with(&Self::options(url)).await.expect("connected"))
    }

    async fn begin(&mut self) {
        self.run("begin").await;
    }

    fn inside(&mut self) -> InSqlx<'_> {
        InSqlx::new(&mut self.0)
    }

    async fn end(&mut self, commit: bool) {
        self.run(word(commit)).await;
    }

    async fn try_run(&mut self, statement: &str) -> Result<(), Box<dyn Error>> {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut self.0).await?;
        Ok(())
    }
}

pub struct Diesel(AsyncPgConnection);

impl Driver for Diesel {
    type Inside<'a> = InDiesel<'a>;
    type Error = diesel::result::Error;

    async fn connect(url: &str) -> Self {
        Self(AsyncPgConnection::establish(url).await.expect("connected"))
    }

    async fn begin(&mut self) {
        self.run("begin").await;
    }

    fn inside(&mut self) -> InDiesel<'_> {
        InDiesel::new(&mut self.0)
    }

    async fn end(&mut self, commit: bool) {
        self.run(word(commit)).await;
    }

    async fn try_run(&mut self, statement: &str) -> Result<(), Box<dyn Error>> {
        Ok(self.0.batch_execute(statement).await?)
    }
}

pub struct SeaOrm(DatabaseConnection, Option<DatabaseTransaction>);

impl SeaOrm {
    pub async fn pool(url: &str) -> DatabaseConnection {
        use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
        let options = PgConnectOptions::new_without_pgpass().socket(part(url, "host"));
        let options = options.port(part(url, "port").parse().expect("a port")).username(part(url, "user"));
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options.database(part(url, "dbname"))).await;
        SqlxPostgresConnector::from_sqlx_postgres_pool(pool.expect("connected"))
    }
}

impl Driver for SeaOrm {
    type Inside<'a> = InSeaOrm<'a>;
    type Error = sea_orm::DbErr;

    async fn connect(url: &str) -> Self {
        Self(Self::pool(url).await, None)
    }

    async fn begin(&mut self) {
        self.1 = Some(self.0.begin().await.expect("begun"));
    }

    fn inside(&mut self) -> InSeaOrm<'_> {
        InSeaOrm(self.1.as_ref().expect("begun"))
    }

    async fn end(&mut self, commit: bool) {
        let transaction = self.1.take().expect("begun");
        let ended = if commit { transaction.commit().await } else { transaction.rollback().await };
        ended.expect("ended");
    }

    async fn try_run(&mut self, statement: &str) -> Result<(), Box<dyn Error>> {
        match &self.1 {
            Some(transaction) => transaction.execute_unprepared(statement).await?,
            None => self.0.execute_unprepared(statement).await?,
        };
        Ok(())
    }
}
