use trunkline::{Db, postgres::Statement};

use crate::{
    Failure, texts,
    work::{Done, Work},
};

static TAKE: Statement<(i64, i64), (i64,)> = Statement::new(texts::TAKE);
static GIVE: Statement<(i64, i64), (i64,)> = Statement::new(texts::GIVE);

/// Runs each transfer as a transaction that takes one round trip.
pub async fn transfers(db: &Db, work: &Work<'_>) -> Result<Done, Failure> {
    let mut done = Done::default();
    for (from, to, sum) in work.transfers() {
        let transaction = db.begin().await?;
        let taken = transaction.send(&TAKE, (from, sum)).await?;
        let given = transaction.send(&GIVE, (to, sum)).await?;
        transaction.commit().await?;
        done = done.and(Done::numbers([taken.await?.0, given.await?.0]));
    }
    Ok(done)
}
