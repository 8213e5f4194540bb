//! What a queue was, minute by minute.

use std::{collections::VecDeque, time::Instant};

/// What a queue was at a time.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub at: Instant,
    /// Messages that waited or were leased.
    pub depth: u64,
    /// How long the oldest had been due, in seconds.
    pub oldest: f64,
    /// Since the point before.
    pub flow: Option<Flow>,
}

/// Messages a second. What came is read off the sequence of rows and by how many messages a row
/// has, so that it is an estimate where the rows are of many sizes; what went is what came less
/// what is more now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flow {
    /// Enqueued.
    pub came: f64,
    /// Acknowledged, archived, cancelled or dead.
    pub went: f64,
    /// Dead letters more than before.
    pub died: f64,
}

/// Points that are kept: an hour.
const POINTS: usize = 60;

/// Adds a point, and lets go of the oldest.
pub fn push(points: &mut VecDeque<Point>, point: Point) {
    points.push_back(point);
    while points.len() > POINTS {
        points.pop_front();
    }
}
