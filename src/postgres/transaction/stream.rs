//! Rows that a transaction reads in chunks, through a portal.

use std::{collections::VecDeque, sync::Arc};

use super::{Transaction, pending::Pending};
use crate::{
    error::{Error, Result},
    postgres::{
        params::Params,
        rows::FromRow,
        statement::Statement,
        wire::{Columns, Portal},
    },
};

/// Rows that arrive in chunks: the next chunk is requested while the caller uses the current one.
/// At most two chunks are in memory.
#[derive(Debug)]
pub struct RowStream<T> {
    pipeline: Arc<super::Pipeline>,
    portal: String,
    chunk: i32,
    text: Arc<str>,
    columns: Arc<Columns>,
    /// The chunk that is being received, if any.
    next: Option<Pending<Vec<T>>>,
    /// The reason why the remaining rows cannot be requested.
    broken: Option<Error>,
    rows: VecDeque<T>,
}

impl Transaction {
    /// Runs a statement whose rows are read in chunks of at least one row.
    ///
    /// # Errors
    /// The errors of [`Transaction::send`]. The statement's own error is returned when its rows are
    /// read.
    pub async fn stream<P: Params, T: FromRow>(
        &self,
        statement: &Statement<P, Vec<T>>,
        params: P,
        chunk: usize,
    ) -> Result<RowStream<T>> {
        let chunk = i32::try_from(chunk).unwrap_or(i32::MAX).max(1);
        let prepared = self.prepared(statement.text()).await?;
        let portal = self.pipeline.portal();
        let (sent, place) = self.pipeline.push(statement.text(), |group| {
            params.with(|params| group.push_rows(&prepared, params, Portal { name: &portal, most: chunk }))
        })?;
        let (text, columns) = (prepared.text, prepared.columns);
        let next = Some(Pending::new(self.pipeline.clone(), sent, place, text.clone(), columns.clone()));
        self.pipeline.flush();
        Ok(RowStream {
            pipeline: self.pipeline.clone(),
            portal,
            chunk,
            text,
            columns,
            next,
            broken: None,
            rows: VecDeque::new(),
        })
    }
}

impl<T: FromRow> RowStream<T> {
    /// Returns the next chunk of rows, or `None` at the end. The call may be dropped while it
    /// waits; no row is lost.
    ///
    /// # Errors
    /// The errors of the statement and of earlier statements. If the transaction has ended, an
    /// error follows after all rows that have arrived were read.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<T>>> {
        if !self.rows.is_empty() {
            return Ok(Some(self.rows.drain(..).collect()));
        }
        let Some(next) = &mut self.next else { return self.broken.clone().map_or(Ok(None), Err) };
        let outcome = std::future::poll_fn(|context| next.poll_outcome(context)).await?;
        // No `await` may follow from this point on.
        let (sent, place) = next.place();
        self.next = None;
        if outcome.as_ref().as_ref().is_ok_and(|answer| answer.has_more(place)) {
            match self.ask() {
                Ok(next) => self.next = Some(next), // requested while the caller uses these rows
                Err(error) => self.broken = Some(error),
            }
        }
        let rows: Vec<T> = self.pipeline.outcome(&sent, &outcome, place, &self.text, &self.columns)?;
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Returns the next row, or `None` at the end.
    ///
    /// # Errors
    /// The errors of [`RowStream::next_chunk`].
    pub async fn next(&mut self) -> Result<Option<T>> {
        if self.rows.is_empty() {
            match self.next_chunk().await? {
                Some(rows) => self.rows = rows.into(),
                None => return Ok(None),
            }
        }
        Ok(self.rows.pop_front())
    }

    fn ask(&self) -> Result<Pending<Vec<T>>> {
        let portal = Portal { name: &self.portal, most: self.chunk };
        let (sent, place) = self.pipeline.push(&self.text, |group| group.push_more(&self.text, portal))?;
        self.pipeline.flush();
        Ok(Pending::new(self.pipeline.clone(), sent, place, self.text.clone(), self.columns.clone()))
    }
}

impl<T> Drop for RowStream<T> {
    fn drop(&mut self) {
        if self.next.is_some() {
            self.pipeline.close(&self.portal);
        }
    }
}
