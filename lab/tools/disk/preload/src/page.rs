//! What the file has in it: a page of words, which each process maps and so sees change.
//! `trunkline-disk` writes it.

/// All of them, of eight bytes in the machine's own order.
pub const WORDS: usize = 512;
/// The least time of an fsync, in microseconds.
pub const FSYNC: usize = 0;
/// How many bytes the path has below which no file gets any longer; none where it is 0.
pub const LENGTH: usize = 1;
/// How far the clock is ahead, in microseconds; a signed word.
pub const CLOCK: usize = 2;
/// That path, to the end of the page. While it is changed, its length is 0.
pub const PATH: usize = 3;
/// The most bytes of it.
pub const LONGEST: usize = (WORDS - PATH) * 8;
