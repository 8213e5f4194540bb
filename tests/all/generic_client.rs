//! Programs for `tokio_postgres` can be ported statement by statement, because the same calls
//! return the same answers.

use tokio_postgres::types::Type;
use trunkline::{Db, postgres::GenericClient};

use crate::fixture::{connect, database};

const TABLE: &str = "create table t (id int8 generated always as identity, name text unique, n int4)";
const INSERT: &str = "insert into t (name, n) values ($1, $2)";
const ONE: &str = "select id, name as \"Name\", n from t where name = $1";
const ALL: &str = "select name, n from t order by id";
const RETURNING: &str = "update t set n = n + 1 where n > $1 returning id, n";

/// The results of a program.
#[derive(Debug, PartialEq)]
struct Found {
    inserted: u64,
    one: (i64, String, Option<i32>),
    none: bool,
    names: Vec<(String, Option<i32>)>,
    updated: Vec<(i64, i32)>,
    wrong: [bool; 4],
    types: Vec<String>,
}

/// Runs a program that is written for `tokio_postgres`.
async fn theirs(client: &(impl tokio_postgres::GenericClient + Sync)) -> Found {
    let mut inserted = client.execute(INSERT, &[&"a", &Some(1_i32)]).await.expect("inserted");
    inserted += client.execute(INSERT, &[&"b", &None::<i32>]).await.expect("inserted");
    let row = client.query_one(ONE, &[&"a"]).await.expect("there");
    let one = (row.get(0), row.get::<_, &str>("name").to_owned(), row.get("n"));
    let types = row.columns().iter().map(|column| column.type_().name().to_owned()).collect();
    let none = client.query_opt(ONE, &[&"c"]).await.expect("asked").is_none();
    let names = client.query(ALL, &[]).await.expect("read").iter().map(|row| (row.get(0), row.get("n"))).collect();
    let updated = client.query(RETURNING, &[&0_i32]).await.expect("updated");
    let wrong = [
        row.try_get::<_, i32>("id").is_err(),
        row.try_get::<_, i64>("nothing").is_err(),
        row.try_get::<_, i64>(3).is_err(),
        client.query_one(ONE, &[&"c"]).await.is_err(),
    ];
    Found {
        inserted,
        one,
        none,
        names,
        updated: updated.iter().map(|row| (row.get(0), row.get(1))).collect(),
        wrong,
        types,
    }
}

/// Runs the same program, except for the names of the types.
async fn ours(client: &impl GenericClient) -> Found {
    let mut inserted = client.execute(INSERT, &[&"a", &Some(1_i32)]).await.expect("inserted");
    inserted += client.execute(INSERT, &[&"b", &None::<i32>]).await.expect("inserted");
    let row = client.query_one(ONE, &[&"a"]).await.expect("there");
    let one = (row.get(0), row.get::<&str>("name").to_owned(), row.get("n"));
    let types = row.columns().iter().map(|(_, ty)| Type::name(ty).to_owned()).collect();
    let none = client.query_opt(ONE, &[&"c"]).await.expect("asked").is_none();
    let names = client.query(ALL, &[]).await.expect("read").iter().map(|row| (row.get(0), row.get("n"))).collect();
    let updated = client.query(RETURNING, &[&0_i32]).await.expect("updated");
    let wrong = [
        row.try_get::<i32>("id").is_err(),
        row.try_get::<i64>("nothing").is_err(),
        row.try_get::<i64>(3).is_err(),
        client.query_one(ONE, &[&"c"]).await.is_err(),
    ];
    Found {
        inserted,
        one,
        none,
        names,
        updated: updated.iter().map(|row| (row.get(0), row.get(1))).collect(),
        wrong,
        types,
    }
}

#[tokio::test]
async fn the_same_calls_have_the_same_answers() {
    let mut found = Vec::new();
    for way in ["theirs", "their transaction", "ours", "our transaction"] {
        let url = database().await;
        let mut client = connect(&url).await;
        client.batch_execute(TABLE).await.expect("created");
        let db = Db::connect(&url).await.expect("connected");
        found.push(match way {
            "theirs" => theirs(&client).await,
            "their transaction" => theirs(&client.transaction().await.expect("begun")).await,
            "ours" => ours(&db).await,
            _ => {
                let transaction = db.begin().await.expect("begun");
                let found = ours(&transaction).await;
                transaction.commit().await.expect("committed");
                assert_eq!(db.query(ALL, &[]).await.expect("read").len(), 2);
                found
            }
        });
    }
    assert_eq!(found[0].names, [("a".to_owned(), Some(1)), ("b".to_owned(), None)]);
    assert_eq!(found[0].wrong, [true; 4]);
    assert!(found.iter().all(|each| *each == found[0]), "{found:#?}");
}
