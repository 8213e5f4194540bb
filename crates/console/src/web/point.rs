//! The numbers of a queue, minute by minute.

use std::{collections::VecDeque, time::Instant};

/// The numbers of a queue at one time.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub at: Instant,
    /// Messages that waited or were leased.
    pub depth: u64,
    /// The seconds for which the oldest message had been due.
    pub oldest: f64,
    /// The flow since the point before.
    pub flow: Option<Flow>,
}

/// Messages a second.
///
/// `came` is derived from the sequence of rows and the mean number of messages in a row, so it is
/// an estimate if rows differ in size. `went` is `came` less the growth of the depth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flow {
    /// Enqueued.
    pub came: f64,
    /// Acknowledged, archived, cancelled or dead.
    pub went: f64,
    /// New dead letters.
    pub died: f64,
}

/// Points that are kept: an hour.
const POINTS: usize = 60;

/// Adds a point, and drops the oldest if there are more than `POINTS`.
pub fn push(points: &mut VecDeque<Point>, point: Point) {
    points.push_back(point);
    while points.len() > POINTS {
        points.pop_front();
    }
}
