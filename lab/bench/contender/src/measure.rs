//! The counter of a contender's allocations.

/// A function that returns the number of allocations and of allocated bytes so far. Only contenders
/// that count their allocations have one.
pub type Measure = Option<fn() -> (u64, u64)>;
/// The value for contenders that do not count their allocations.
pub const NO_MEASURE: Measure = None;
