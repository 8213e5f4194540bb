//! Distributes the rows of one statement to the requests that share it, without I/O.

use bytes::BufMut;

use crate::postgres::{
    array::Received,
    wire::{Row, Wrong},
};

/// The positions of the columns in a dequeued row.
const ID: usize = 0;
const SIZE: usize = 2;
const PAYLOAD: usize = 4;
const METADATA: usize = 5;

/// Distributes the rows to the calls, in order. Each call receives at most the number of messages
/// that it asks for. A row is split if it has more messages than the call still needs. If a row
/// cannot be split, it is malformed, and one call receives the whole row and reports it.
pub(super) fn distribute(rows: Vec<Row>, asks: &[usize]) -> Vec<Vec<Row>> {
    let mut distributed: Vec<Vec<Row>> = asks.iter().map(|_| Vec::new()).collect();
    let (mut call, mut wants) = (0, asks.first().copied().unwrap_or_default());
    for row in rows {
        let size = usize::try_from(row.read::<i32>(SIZE).unwrap_or_default()).unwrap_or_default();
        let mut parts: Vec<(usize, usize)> = Vec::new(); // pairs of a call and the number of this row's messages that it receives
        let mut left = size;
        while left > 0 {
            if wants == 0 && call + 1 < asks.len() {
                call += 1;
                wants = asks[call];
                continue;
            }
            // The last call takes the rest if a statement returns more messages than requested.
            let part = if call + 1 < asks.len() { left.min(wants) } else { left };
            parts.push((call, part));
            wants = wants.saturating_sub(part);
            left -= part;
        }
        let sizes: Vec<usize> = parts.iter().map(|(_, size)| *size).collect();
        if let Some(Ok(split)) = split(&row, &sizes) {
            for ((call, _), part) in parts.into_iter().zip(split) {
                distributed[call].push(part);
            }
        } else if let Some(rows) = distributed.get_mut(parts.first().map_or(call, |(call, _)| *call)) {
            rows.push(row);
        }
    }
    #[cfg(trunkline_mutant)]
    if let [first, second, ..] = &mut distributed[..]
        && crate::error::mutant::is("deals-twice")
    {
        second.extend(first.last().cloned());
    }
    distributed
}

/// Splits a row into parts of these sizes. Returns `None` if the row stays whole.
fn split(row: &Row, sizes: &[usize]) -> Option<Result<Vec<Row>, Wrong>> {
    (sizes.len() > 1).then(|| {
        let first: i64 = row.try_get(ID)?;
        let payload: Received<'_> = row.try_get(PAYLOAD)?;
        let metadata: Option<Received<'_>> = row.try_get(METADATA)?;
        let payloads = payload.parts(sizes)?;
        let metadata = metadata.map(|metadata| metadata.parts(sizes)).transpose()?;
        let mut before = 0;
        let part = |(nr, size): (usize, &usize)| {
            let id = first.wrapping_add(before as i64);
            before += size;
            row.rewritten(|column, value, out| {
                match column {
                    ID => out.put_i64(id),
                    SIZE => out.put_i32(*size as i32),
                    PAYLOAD => payloads[nr].write(out),
                    METADATA => match &metadata {
                        Some(metadata) if metadata[nr].count > 0 => metadata[nr].write(out),
                        _ => return false,
                    },
                    _ => match value {
                        Some(value) => out.put_slice(value),
                        None => return false,
                    },
                }
                true
            })
        };
        sizes.iter().enumerate().map(part).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::BytesMut;
    use postgres_types::{ToSql, Type};

    use super::*;
    use crate::postgres::wire::Columns;

    /// Returns a row of the messages `id`, `id + 1` …. Each message has its id as payload, and
    /// every third has metadata.
    fn row(id: i64, size: i32) -> Row {
        let payload: Vec<i64> = (id..).take(size as usize).collect();
        let metadata: Vec<Option<serde_json::Value>> =
            payload.iter().map(|id| (id % 3 == 0).then(|| serde_json::json!({ "id": id.to_string() }))).collect();
        let columns: [(&str, Type, &dyn ToSql); 8] = [
            ("id", Type::INT8, &id),
            ("attempt", Type::INT4, &1_i32),
            ("size", Type::INT4, &size),
            ("enqueued_at", Type::INT8, &7_i64),
            ("payload", Type::INT8_ARRAY, &payload),
            ("metadata", Type::JSONB_ARRAY, &metadata),
            ("error", Type::TEXT, &None::<&str>),
            ("released", Type::INT4, &0_i32),
        ];
        let mut values = BytesMut::new();
        for (_, ty, value) in &columns {
            let at = values.len();
            values.put_i32(-1);
            if matches!(value.to_sql_checked(ty, &mut values).expect("written"), postgres_types::IsNull::No) {
                let length = (values.len() - at - 4) as i32;
                values[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        let columns = columns.into_iter().map(|(name, ty, _)| (name.to_owned(), ty)).collect();
        Row::of(Arc::new(Columns::new(Vec::new(), columns)), values.freeze())
    }

    /// Checks each row, and returns the ids of its messages.
    fn ids(rows: &[Row]) -> Vec<i64> {
        let ids = |row: &Row| {
            let (id, size): (i64, i32) = (row.read(ID).expect("an id"), row.read(SIZE).expect("a size"));
            let payload: Vec<i64> = row.read(PAYLOAD).expect("an array");
            let metadata: Option<Vec<Option<serde_json::Value>>> = row.read(METADATA).expect("an array");
            let metadata = metadata.unwrap_or_default();
            assert_eq!(payload, (id..).take(size as usize).collect::<Vec<_>>(), "each message keeps its payload");
            for (nr, id) in payload.iter().enumerate() {
                let beside = metadata.get(nr).and_then(Option::as_ref).map(|beside| beside["id"].clone());
                assert_eq!(beside, (id % 3 == 0).then(|| id.to_string().into()), "and its metadata");
            }
            assert_eq!(row.read::<i64>(3).expect("a time"), 7);
            payload
        };
        rows.iter().flat_map(ids).collect()
    }

    #[test]
    fn each_call_gets_its_number_in_order_however_rows_lie() {
        let rows = [(1024, 3), (2048, 1), (4096, 100), (8192, 2), (9216, 30)];
        let all: Vec<i64> = rows.iter().flat_map(|(id, size)| (*id..).take(*size as usize)).collect();
        for asks in
            [vec![136], vec![1; 136], vec![10, 1, 90, 35], vec![3, 1, 100, 2, 30], vec![200, 5], vec![0, 7, 0, 300]]
        {
            let distributed = distribute(rows.iter().map(|(id, size)| row(*id, *size)).collect(), &asks);
            let mut left = &all[..];
            for (rows, ask) in distributed.iter().zip(&asks) {
                let (mine, behind) = left.split_at(left.len().min(*ask));
                assert_eq!(ids(rows), mine, "{asks:?}");
                left = behind;
            }
            assert!(left.is_empty(), "{asks:?}");
        }
    }

    #[test]
    fn row_that_is_no_batch_goes_whole_to_one_call() {
        let broken = row(1024, 4).rewritten(|column, value, out| {
            match (column, value) {
                (PAYLOAD, _) => out.put_slice(&[0, 0, 0, 2]), // two dimensions, then the end
                (_, Some(value)) => out.put_slice(value),
                (_, None) => return false,
            }
            true
        });
        let distributed = distribute(vec![broken.expect("a row"), row(2048, 2)], &[1, 1, 4]);
        assert_eq!(distributed.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 1]);
        assert_eq!(ids(&distributed[2]), [2048, 2049]);
    }

    #[test]
    fn more_than_was_asked_for_is_the_last_calls() {
        let distributed = distribute(vec![row(1024, 9)], &[2, 3]);
        assert_eq!(distributed.iter().map(|rows| ids(rows).len()).collect::<Vec<_>>(), [2, 7]);
    }
}
