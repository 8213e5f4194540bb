//! This crate is never compiled.
