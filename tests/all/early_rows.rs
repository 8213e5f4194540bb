//! Tests rows that are decoded while the server sends the next ones.

use tokio_postgres::error::SqlState;
use trunkline::{Error, postgres::Statement};

use crate::statements::table;

type Words = Statement<(), Vec<(i32, String)>>;

static INSERT: Statement<(i32,), u64> = Statement::new("insert into t values ($1)");
static COUNT: Statement<(), (i64,)> = Statement::new("select count(*) from t");
static ALL: Statement<(), Vec<(i32,)>> = Statement::new("select n from t order by n");

/// Returns a statement with 20,000 rows, which arrive in many parts. Row `n` has a text of
/// `n / divisor` letters.
fn rows(divisor: &str) -> Words {
    Words::of(format!("select n, repeat('x', n / {divisor}) from generate_series(1, 20000) n"))
}

/// A statement whose server fails at the last row.
fn failing() -> Words {
    rows("(20000 - n)")
}

fn is_whole(rows: &[(i32, String)]) -> bool {
    rows.len() == 20_000 && rows.iter().zip(1..).all(|((n, word), at)| *n == at && word.len() as i32 == at / 1000)
}

fn is_by_zero(error: &Error) -> bool {
    error.sqlstate() == Some(&SqlState::DIVISION_BY_ZERO)
}

#[tokio::test]
async fn early_rows_count_only_if_the_statement_succeeds() {
    let db = table().await;
    assert!(is_whole(&db.run(&rows("1000"), ()).await.expect("read")));
    let error = db.run(&failing(), ()).await.expect_err("a division by zero");
    assert!(is_by_zero(&error), "{error}");
    // A row that cannot be decoded causes the error, unless the server reports an error.
    let error = db.run(&rows("nullif(n - 10000, 0)"), ()).await.expect_err("a null");
    assert!(error.sqlstate().is_none() && error.to_string().contains("\"repeat\""), "{error}");
    let both = Words::of(failing().text().replace("select n", "select nullif(n, 10000)"));
    let error = db.run(&both, ()).await.expect_err("both");
    assert!(is_by_zero(&error), "{error}");
    assert_eq!(db.run(&COUNT, ()).await.expect("the connection is in step"), (0,));
}

#[tokio::test]
async fn early_rows_of_a_transaction_count_only_if_it_goes_on() {
    let db = table().await;
    let transaction = db.begin().await.expect("begun");
    assert!(is_whole(&transaction.run(&rows("1000"), ()).await.expect("read, with the begin")));
    drop(transaction.send(&INSERT, (1,)).await.expect("queued"));
    assert_eq!(transaction.run(&ALL, ()).await.expect("read, behind the insert"), [(1,)]);
    assert!(is_whole(&transaction.run(&rows("1000"), ()).await.expect("read, alone")));
    let error = transaction.run(&failing(), ()).await.expect_err("a division by zero");
    assert!(is_by_zero(&error), "{error}");
    let error = transaction.run(&ALL, ()).await.expect_err("the transaction has failed");
    assert!(is_by_zero(&error), "the cause is told: {error}");
    transaction.rollback().await.expect("rolled back");

    let transaction = db.begin().await.expect("begun");
    let unread = transaction.run(&rows("nullif(n - 10000, 0)"), ()).await.expect_err("a null");
    assert!(unread.sqlstate().is_none(), "{unread}");
    assert_eq!(transaction.run(&INSERT, (2,)).await.expect("the server knows of no error"), 1);
    // After a call is dropped while its rows arrive, the transaction still works.
    let statement = rows("1000");
    assert!(futures_util::poll!(Box::pin(transaction.run(&statement, ()))).is_pending());
    transaction.commit().await.expect("committed");
    assert_eq!(db.run(&ALL, ()).await.expect("read"), [(2,)]);
}
