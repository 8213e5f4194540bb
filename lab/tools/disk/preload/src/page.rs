//! The layout of the file: a page of words, which each process maps, so that it sees changes.
//! `trunkline-disk` writes it.

/// The number of words, of eight bytes in the machine's own order.
pub const WORDS: usize = 512;
/// The index of the least time of an fsync, in microseconds.
pub const FSYNC: usize = 0;
/// The index of the length, in bytes, of the path below which no file gets longer; 0 means no such
/// path.
pub const LENGTH: usize = 1;
/// The index of the time by which the clock is ahead, in microseconds; a signed word.
pub const CLOCK: usize = 2;
/// The index of that path, which goes up to the end of the page. While it is changed, its length is
/// 0.
pub const PATH: usize = 3;
/// The greatest length of that path, in bytes.
pub const LONGEST: usize = (WORDS - PATH) * 8;
