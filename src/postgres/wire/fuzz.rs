//! Functions that pass bytes to the driver as if a server had sent them.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use postgres_types::Type;
use tokio::io::AsyncWriteExt;

use super::{
    Columns, Connection, Group, Reply, Use, WireError, cached_statement::Signature, drive::drive, queued::Link,
};
use crate::{error::server::ServerError, postgres::target::AnswerLimits};

/// Returns the reply to a group of `statements` statements. The simulated server sends these pieces
/// in order and then closes the connection.
pub(super) fn told(pieces: &[&[u8]], statements: usize) -> Result<Reply, WireError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let limits = AnswerLimits { answer_bytes: 1 << 10, ..AnswerLimits::default() };
        let shared = Arc::new(Link::new(limits, Use::Common));
        let connection = Connection::over(shared.clone());
        let driver = tokio::spawn(drive(ours, BytesMut::new(), shared));
        let mut group = Group::new();
        for _ in 0..statements {
            group.push_unnamed(&"select 'x'".into(), &[], &[]).expect("encoded");
        }
        let answer = connection.send(group);
        for piece in pieces {
            if theirs.write_all(piece).await.is_err() {
                break; // the driver has closed the connection
            }
            tokio::task::yield_now().await;
        }
        drop(theirs);
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await.expect("no call waits without end");
        let _ = driver.await.expect("the driver does not panic");
        answer
    })
}

/// Checks that any bytes from a server lead to a reply or an error. Reading a column of a row must
/// return a value or an error.
pub(crate) fn server_says(bytes: &[u8]) {
    let (&[statements, cut], said) = bytes.split_first_chunk().unwrap_or((&[1, 0], bytes));
    let (statements, cut) = (usize::from(statements % 4), usize::from(cut).min(said.len()));
    let (one, two) = said.split_at(cut);
    let types = [Type::INT8, Type::TEXT, Type::TIMESTAMPTZ, Type::JSONB, Type::INT8_ARRAY];
    let columns = types.map(|ty| (ty.name().to_owned(), ty)).to_vec();
    let columns = Arc::new(Columns::new(Vec::new(), columns));
    if let Ok(answer) = told(&[one, two], statements) {
        for place in 0..=statements {
            let _ = (answer.affected(place), answer.tag(place), answer.has_more(place));
            for row in answer.rows(place, &columns) {
                let _ = (row.read::<i64>(0), row.read::<Option<&str>>(1), row.read::<std::time::SystemTime>(2));
                let _ = (row.read::<serde_json::Value>(3), row.read::<Vec<Option<i64>>>(4), row.read::<i64>(5));
            }
            for mut values in answer.each(place, &columns) {
                while values.read::<Option<Vec<u8>>>().is_ok() || values.read::<Option<i64>>().is_ok() {}
            }
        }
    }
    let _ = Signature::read(&[Bytes::copy_from_slice(said)]);
    let _ = ServerError::parse(said).told();
}
