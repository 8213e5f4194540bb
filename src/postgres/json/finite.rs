//! A check that all numbers in a value are finite. `serde_json` writes `null` for infinity and NaN.

use std::fmt;

use serde::{Serialize, Serializer, ser};

/// A serializer that produces no output. It returns an error if a number is infinite or NaN.
#[derive(Clone, Copy)]
pub(super) struct Finite;

#[derive(Debug)]
pub(super) struct NotFinite;

impl fmt::Display for NotFinite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number is not finite, and JSON has no word for it")
    }
}

impl std::error::Error for NotFinite {}

impl ser::Error for NotFinite {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self // the value was serialized before, so no other error is possible
    }
}

type Checked = Result<(), NotFinite>;

fn finite(is_finite: bool) -> Checked {
    if is_finite { Ok(()) } else { Err(NotFinite) }
}

impl Serializer for Finite {
    type Ok = ();
    type Error = NotFinite;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_f32(self, value: f32) -> Checked {
        finite(value.is_finite())
    }

    fn serialize_f64(self, value: f64) -> Checked {
        finite(value.is_finite())
    }

    fn serialize_bool(self, _: bool) -> Checked {
        Ok(())
    }

    fn serialize_i8(self, _: i8) -> Checked {
        Ok(())
    }

    fn serialize_i16(self, _: i16) -> Checked {
        Ok(())
    }

    fn serialize_i32(self, _: i32) -> Checked {
        Ok(())
    }

    fn serialize_i64(self, _: i64) -> Checked {
        Ok(())
    }

    fn serialize_i128(self, _: i128) -> Checked {
        Ok(())
    }

    fn serialize_u8(self, _: u8) -> Checked {
        Ok(())
    }

    fn serialize_u16(self, _: u16) -> Checked {
        Ok(())
    }

    fn serialize_u32(self, _: u32) -> Checked {
        Ok(())
    }

    fn serialize_u64(self, _: u64) -> Checked {
        Ok(())
    }

    fn serialize_u128(self, _: u128) -> Checked {
        Ok(())
    }

    fn serialize_char(self, _: char) -> Checked {
        Ok(())
    }

    fn serialize_str(self, _: &str) -> Checked {
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Checked {
        Ok(())
    }

    fn serialize_none(self) -> Checked {
        Ok(())
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Checked {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Checked {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Checked {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Checked {
        Ok(())
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Checked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Checked {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }
}

impl ser::SerializeSeq for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}

impl ser::SerializeTuple for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}

impl ser::SerializeTupleStruct for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}

impl ser::SerializeTupleVariant for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}

impl ser::SerializeMap for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Checked {
        key.serialize(*self)
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}

impl ser::SerializeStruct for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, _: &'static str, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}

impl ser::SerializeStructVariant for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, _: &'static str, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}
