//! The layout of the settings file, which is a page of words. Each process maps the page, and thus
//! sees changes. `trunkline-disk` writes it.

/// The number of words. A word has eight bytes, in the machine's byte order.
pub const WORDS: usize = 512;
/// The index of the minimum duration of an fsync, in microseconds.
pub const FSYNC: usize = 0;
/// The index of the length, in bytes, of the path below which files cannot grow; 0 means no such
/// path.
pub const LENGTH: usize = 1;
/// The index of the time by which the clock is ahead, in microseconds. It is a signed word.
pub const CLOCK: usize = 2;
/// The index of that path, which may reach to the end of the page. The length is 0 while the path
/// is being changed.
pub const PATH: usize = 3;
/// The maximum length of that path, in bytes.
pub const LONGEST: usize = (WORDS - PATH) * 8;
