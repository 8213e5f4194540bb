use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures_util::future::try_join_all;
use trunkline_drivers::{Doing, Driver, Kind, Work};

/// Runs one statement after another, or polls all statements together, which is diesel-async's way
/// of pipelining. Writes form one transaction.
pub struct Each {
    pub connection: AsyncPgConnection,
    pub pipelined: bool,
}

impl Driver for Each {
    fn run<'a>(&'a self, work: &'a Work<'a>) -> Doing<'a> {
        Box::pin(async move {
            if !work.kind.writes() {
                return Ok(self.read(work).await?);
            }
            if work.kind == Kind::Transfers {
                return Ok(Some(self.transfers(work).await?));
            }
            self.begin().await?;
            let done = self.write(work).await?;
            self.commit().await?;
            Ok(Some(done))
        })
    }
}

impl Each {
    /// Sends the statement that begins a transaction. diesel's `transaction` sends the same
    /// statement, but would borrow the connection exclusively and so prevent pipelining.
    pub async fn begin(&self) -> QueryResult<()> {
        (&self.connection).batch_execute("BEGIN").await
    }

    pub async fn commit(&self) -> QueryResult<()> {
        (&self.connection).batch_execute("COMMIT").await
    }

    pub async fn each<T>(
        &self,
        all: impl Iterator<Item = impl Future<Output = QueryResult<T>>>,
    ) -> QueryResult<Vec<T>> {
        if self.pipelined {
            return try_join_all(all).await;
        }
        let mut answers = Vec::new();
        for one in all {
            answers.push(one.await?);
        }
        Ok(answers)
    }
}
