//! The numbers of a queue, minute by minute.

use std::collections::VecDeque;

use tokio::time::Instant;

/// The numbers of a queue at one time.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub at: Instant,
    /// Messages that waited or were leased.
    pub depth: u64,
    /// The age of the oldest due message, in seconds since it became due.
    pub oldest: f64,
    /// The flow since the previous point.
    pub flow: Option<Flow>,
}

/// Messages per second.
///
/// `came` is the number of new rows, which the sequence of ids shows, times the mean number of
/// messages per row. So it is an estimate if rows differ in size. `went` is `came` minus the growth
/// of the depth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flow {
    /// Messages that were enqueued.
    pub came: f64,
    /// Messages that were acknowledged, archived or cancelled, or that died.
    pub went: f64,
    /// New dead letters.
    pub died: f64,
}

/// The number of points that are kept: one hour.
const POINTS: usize = 60;

/// Adds a point, and drops the oldest one if there are more than `POINTS`.
pub fn push(points: &mut VecDeque<Point>, point: Point) {
    points.push_back(point);
    while points.len() > POINTS {
        points.pop_front();
    }
}
