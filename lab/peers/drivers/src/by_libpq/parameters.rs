use std::{
    ffi::{c_char, c_int},
    num::TryFromIntError,
};

use trunkline_drivers::Person;

/// The parameters of a statement in the binary format. All statements reuse the same memory.
#[derive(Default)]
pub struct Parameters {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    starts: Vec<*const c_char>,
    lengths: Vec<c_int>,
    formats: Vec<c_int>,
}

impl Parameters {
    pub fn clear(&mut self) -> &mut Self {
        self.bytes.clear();
        self.ends.clear();
        self
    }

    /// Returns the address, the length and the format of each value, in the form that libpq
    /// expects.
    pub fn lists(&mut self) -> Result<(&[*const c_char], &[c_int], &[c_int]), TryFromIntError> {
        const BINARY: c_int = 1;
        let Self { bytes, ends, starts, lengths, formats } = self;
        starts.clear();
        lengths.clear();
        let mut from = 0;
        for end in ends.iter() {
            starts.push(bytes[from..].as_ptr().cast());
            lengths.push(c_int::try_from(end - from)?);
            from = *end;
        }
        formats.resize(ends.len(), BINARY);
        Ok((starts, lengths, formats))
    }

    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        self
    }

    pub fn int8(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub fn int4(&mut self, value: i32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub fn int8s(&mut self, values: &[i64]) -> &mut Self {
        const INT8: u32 = 20;
        for number in [1, 0, INT8, values.len() as u32, 1] {
            self.bytes.extend_from_slice(&number.to_be_bytes());
        }
        for value in values {
            self.bytes.extend_from_slice(&8_u32.to_be_bytes());
            self.bytes.extend_from_slice(&value.to_be_bytes());
        }
        self.bytes(&[])
    }

    /// Appends all columns except the key.
    pub fn person(&mut self, person: &Person) -> &mut Self {
        self.bytes(person.name.as_bytes()).bytes(person.email.as_bytes()).int4(person.age);
        self.bytes(&person.score.to_be_bytes()).bytes(&[u8::from(person.active)])
    }
}
