//! Reads a result of libpq in place.
#![allow(unsafe_code)] // libpq is a C library; the types here meet the conditions of its calls

use std::{
    ffi::{CStr, c_int},
    ptr::NonNull,
};

use pq_sys::{self as pq, ExecStatusType, PGresult};
use trunkline_drivers::{Failure, Person};

/// The answer to one statement.
pub struct Answer(NonNull<PGresult>);

impl Answer {
    pub fn of(result: *mut PGresult) -> Option<Self> {
        NonNull::new(result).map(Self)
    }

    pub fn status(&self) -> ExecStatusType {
        // SAFETY: the result is valid until the drop.
        unsafe { pq::PQresultStatus(self.0.as_ptr()) }
    }

    pub fn rows(&self) -> c_int {
        // SAFETY: the result is valid until the drop.
        unsafe { pq::PQntuples(self.0.as_ptr()) }
    }

    pub fn affected(&self) -> u64 {
        // SAFETY: the result is valid until the drop, and so is the text in it.
        let text = unsafe { CStr::from_ptr(pq::PQcmdTuples(self.0.as_ptr())) };
        text.to_str().ok().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    fn bytes(&self, row: c_int, column: c_int) -> &[u8] {
        // SAFETY: the result is valid. For a row or column outside of it, libpq returns null and 0.
        unsafe {
            let value = pq::PQgetvalue(self.0.as_ptr(), row, column);
            let length = pq::PQgetlength(self.0.as_ptr(), row, column);
            match usize::try_from(length) {
                Ok(length) if !value.is_null() => std::slice::from_raw_parts(value.cast(), length),
                _ => &[],
            }
        }
    }

    pub fn int8(&self, row: c_int, column: c_int) -> Result<i64, Failure> {
        Ok(i64::from_be_bytes(self.bytes(row, column).try_into()?))
    }

    pub fn person(&self, row: c_int) -> Result<Person, Failure> {
        Ok(Person {
            id: self.int8(row, 0)?,
            name: std::str::from_utf8(self.bytes(row, 1))?.to_owned(),
            email: std::str::from_utf8(self.bytes(row, 2))?.to_owned(),
            age: i32::from_be_bytes(self.bytes(row, 3).try_into()?),
            score: f64::from_be_bytes(self.bytes(row, 4).try_into()?),
            active: self.bytes(row, 5) == [1],
        })
    }

    pub fn people(&self) -> Result<Vec<Person>, Failure> {
        (0..self.rows()).map(|row| self.person(row)).collect()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: this value owns the result, and nothing borrows from the result any more.
        unsafe { pq::PQclear(self.0.as_ptr()) }
    }
}
