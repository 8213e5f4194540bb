//! Code that accepts any `GenericClient` runs with a client, a transaction and a savepoint.

use futures_util::TryStreamExt;
use trunkline::postgres::compat::{
    Client, Error, GenericClient, Transaction,
    types::{ToSql, Type},
};

use super::{count, with_table};

/// Calls each method, and returns the number of rows of the table.
async fn used<C: GenericClient>(client: &C, n: i32) -> Result<i64, Error> {
    let insert = client.prepare_typed("insert into t values ($1, $2)", &[Type::INT4]).await?;
    assert_eq!(client.execute(&insert, &[&n, &"one"]).await?, 1);
    assert_eq!(client.execute_raw(&insert, [&(n + 1) as &(dyn ToSql + Sync), &"two"]).await?, 1);
    let typed: [(&(dyn ToSql + Sync), Type); 2] = [(&(n + 2), Type::INT4), (&"three", Type::TEXT)];
    assert_eq!(client.execute_typed("insert into t values ($1, $2)", &typed).await?, 1);
    client.batch_execute("create temp table if not exists u ()").await?;
    assert_eq!(client.simple_query(&format!("select word from t where n = {}", n + 1)).await?.len(), 3);

    let from = client.prepare("select n, word from t where n >= $1 order by n").await?;
    let rows = client.query(&from, &[&n]).await?;
    assert_eq!((rows.len(), rows[0].get(0), rows[0].get("word")), (3, n, "one"));
    let typed: [(&(dyn ToSql + Sync), Type); 1] = [(&n, Type::INT4)];
    let by_number = "select word from t where n = $1";
    assert_eq!(client.query_one(by_number, &[&(n + 1)]).await?.get::<_, &str>(0), "two");
    assert_eq!(client.query_typed_one(by_number, &typed).await?.get::<_, &str>(0), "one");
    assert_eq!(client.query_typed(by_number, &typed).await?.len(), 1);
    assert!(client.query_opt(by_number, &[&-1_i32]).await?.is_none());
    assert!(client.query_typed_opt(by_number, &typed).await?.is_some());
    let rows: Vec<_> = client.query_raw(&from, [n]).await?.try_collect().await?;
    let typed_rows: Vec<_> = client.query_typed_raw(by_number, [(n, Type::INT4)]).await?.try_collect().await?;
    assert_eq!((rows.len(), typed_rows.len()), (3, 1));
    Ok(count(client.client()).await)
}

/// Runs one part of the work in a transaction or savepoint, and rolls back another part.
async fn nested<C: GenericClient>(client: &mut C, n: i32) -> Result<(), Error> {
    let undone = client.transaction().await?;
    used(&undone, n).await?;
    undone.rollback().await?;
    let kept = client.transaction().await?;
    used(&kept, n).await?;
    kept.commit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn generic_code_runs_with_clients_transactions_and_savepoints() {
    let mut client = with_table().await;
    let work = async move {
        assert_eq!(used(&client, 0).await?, 3);
        nested(&mut client, 10).await?;
        let mut transaction = client.transaction().await?;
        assert_eq!(used(&transaction, 20).await?, 9);
        nested(&mut transaction, 30).await?;
        nested(&mut transaction.transaction().await?, 40).await?; // its savepoint is rolled back
        transaction.commit().await?;
        Ok::<_, Error>(count(&client).await)
    };
    assert_eq!(tokio::spawn(work).await.expect("no panic").expect("run"), 12);
}

/// The futures of generic code are `Send`, like those of `tokio_postgres`.
fn spawned<C: GenericClient + Send + Sync + 'static>(client: C) -> tokio::task::JoinHandle<Result<i64, Error>> {
    tokio::spawn(async move { used(&client, 0).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn generic_futures_may_be_spawned() {
    assert_eq!(spawned(with_table().await).await.expect("no panic").expect("run"), 3);
}

/// The trait is in scope here. Unlike the transaction's own methods, the trait's methods accept
/// only parameters that are `Send`.
#[tokio::test]
async fn transaction_has_methods_of_its_own_beside_the_trait() {
    async fn boxed(client: &mut Client) -> Result<u64, Error> {
        let params = || vec![Box::new(1_i32) as Box<dyn ToSql + Sync>];
        let transaction = client.transaction().await?;
        let text = "insert into t values ($1)";
        let inserted = transaction.execute_raw(text, params()).await?;
        let rows: Vec<_> = transaction.query_raw("select $1::int", params()).await?.try_collect().await?;
        let typed = params().into_iter().map(|value| (value, Type::INT4));
        let typed: Vec<_> = transaction.query_typed_raw("select $1", typed).await?.try_collect().await?;
        assert_eq!((rows[0].get(0), typed[0].get(0)), (1_i32, 1_i32));
        assert_eq!(Transaction::query(&transaction, "select from t", &[]).await?.len(), 1);
        transaction.commit().await?;
        Ok(inserted)
    }
    assert_eq!(boxed(&mut with_table().await).await.expect("run"), 1);
}
