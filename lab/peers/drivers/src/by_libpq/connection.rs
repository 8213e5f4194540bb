//! The calls of libpq that a pipeline needs.
#![allow(unsafe_code)] // libpq is a C library; the types here meet the conditions of its calls

use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr::NonNull,
};

use pq_sys::{self as pq, ConnStatusType, ExecStatusType, PGconn};
use trunkline_drivers::{Failure, Place};

use super::{answer::Answer, parameters::Parameters};

/// The format of results.
const BINARY: c_int = 1;

/// A connection with blocking calls.
pub struct Connection(NonNull<PGconn>);

// SAFETY: any thread may use a connection of libpq, but two threads must never use it at the same
// time. All calls here borrow the connection mutably.
unsafe impl Send for Connection {}

impl Connection {
    pub fn open(place: &Place) -> Result<Self, Failure> {
        let port = place.port.to_string();
        let said = [
            (c"host", &place.host),
            (c"port", &port),
            (c"user", &place.user),
            (c"password", &place.password),
            (c"dbname", &place.database),
        ];
        let values = said.iter().map(|(_, value)| CString::new(value.as_str())).collect::<Result<Vec<_>, _>>()?;
        let end = std::iter::once(std::ptr::null());
        let keywords: Vec<*const c_char> = said.iter().map(|(name, _)| name.as_ptr()).chain(end.clone()).collect();
        let pointers: Vec<*const c_char> = values.iter().map(|value| value.as_ptr()).chain(end).collect();
        // SAFETY: the arguments are two lists of texts, each of which ends with a null pointer.
        // They have the same length, and outlive the call.
        let connection = unsafe { pq::PQconnectdbParams(keywords.as_ptr(), pointers.as_ptr(), 0) };
        let mut connection = Self(NonNull::new(connection).ok_or("libpq has no memory")?);
        // SAFETY: the connection is not freed yet.
        let status = unsafe { pq::PQstatus(connection.0.as_ptr()) };
        if status == ConnStatusType::CONNECTION_OK { Ok(connection) } else { Err(connection.error()) }
    }

    /// Prepares a statement, and waits until the server has done so.
    pub fn prepare(&mut self, name: &CStr, text: &str) -> Result<(), Failure> {
        let text = CString::new(text)?;
        // SAFETY: both texts outlive the call. The number of types is 0, so no types are read.
        let result = unsafe { pq::PQprepare(self.0.as_ptr(), name.as_ptr(), text.as_ptr(), 0, std::ptr::null()) };
        let answer = Answer::of(result).ok_or_else(|| self.error())?;
        if answer.status() == ExecStatusType::PGRES_COMMAND_OK { Ok(()) } else { Err(self.error()) }
    }

    pub fn enter_pipeline_mode(&mut self) -> Result<(), Failure> {
        // SAFETY: the connection is not freed yet.
        let done = unsafe { pq::PQenterPipelineMode(self.0.as_ptr()) };
        self.ok(done)
    }

    /// Sends a prepared statement. libpq writes after it has gathered 64 KiB, and reads while it
    /// cannot write.
    pub fn send(&mut self, name: &CStr, parameters: &mut Parameters) -> Result<(), Failure> {
        let (values, lengths, formats) = parameters.lists()?;
        // SAFETY: the three lists have the same length. The lists, the values that they point to
        // and the name outlive the call, and libpq copies them.
        let done = unsafe {
            pq::PQsendQueryPrepared(
                self.0.as_ptr(),
                name.as_ptr(),
                c_int::try_from(values.len())?,
                values.as_ptr(),
                lengths.as_ptr(),
                formats.as_ptr(),
                BINARY,
            )
        };
        self.ok(done)
    }

    /// Sends a Sync, and writes all gathered messages.
    pub fn sync(&mut self) -> Result<(), Failure> {
        // SAFETY: the connection is not freed yet.
        let done = unsafe { pq::PQpipelineSync(self.0.as_ptr()) };
        self.ok(done)
    }

    /// Returns the answer to the next statement, with all of its rows.
    pub fn answer(&mut self) -> Result<Answer, Failure> {
        let answer = self.result().ok_or("no answer where one was due")?;
        match answer.status() {
            ExecStatusType::PGRES_TUPLES_OK | ExecStatusType::PGRES_COMMAND_OK => {}
            _ => return Err(self.error()),
        }
        match self.result() {
            None => Ok(answer), // the end of this statement's results
            Some(_) => Err("a second result of one statement".into()),
        }
    }

    /// Requests the next answer in chunks of `rows` rows.
    pub fn answer_in_chunks(&mut self, rows: usize) -> Result<(), Failure> {
        let rows = c_int::try_from(rows)?;
        // SAFETY: the connection is not freed yet.
        let done = unsafe { pq::PQsetChunkedRowsMode(self.0.as_ptr(), rows) };
        self.ok(done)
    }

    /// Returns the next chunk of an answer, or `None` after the last chunk.
    pub fn chunk(&mut self) -> Result<Option<Answer>, Failure> {
        let Some(answer) = self.result() else { return Ok(None) };
        match answer.status() {
            ExecStatusType::PGRES_TUPLES_CHUNK | ExecStatusType::PGRES_TUPLES_OK => Ok(Some(answer)),
            _ => Err(self.error()),
        }
    }

    /// Reads the answer to a Sync, which ends the pipeline.
    pub fn synced(&mut self) -> Result<(), Failure> {
        match self.result().map(|answer| answer.status()) {
            Some(ExecStatusType::PGRES_PIPELINE_SYNC) => Ok(()),
            _ => Err(self.error()),
        }
    }

    fn result(&mut self) -> Option<Answer> {
        // SAFETY: the connection is not freed yet, and the caller owns the result.
        Answer::of(unsafe { pq::PQgetResult(self.0.as_ptr()) })
    }

    fn ok(&mut self, done: c_int) -> Result<(), Failure> {
        if done == 1 { Ok(()) } else { Err(self.error()) }
    }

    fn error(&mut self) -> Failure {
        // SAFETY: the connection is not freed yet. Its message is a text that is valid until the
        // next call.
        let text = unsafe { CStr::from_ptr(pq::PQerrorMessage(self.0.as_ptr())) };
        format!("libpq: {}", text.to_string_lossy().trim()).into()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the value is being dropped, so no caller uses the connection. Results do not need
        // the connection.
        unsafe { pq::PQfinish(self.0.as_ptr()) }
    }
}
