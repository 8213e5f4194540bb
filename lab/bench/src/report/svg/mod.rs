//! The figures, drawn by hand: text, lines and boxes that read in light and in dark, and to whoever
//! sees no colours.

mod page;
mod scale;
mod mark;
mod panels;
mod throughput;
mod latency;
mod layers;
mod distance;
mod lines;
mod old_snapshot;
mod fsync;

use crate::results::Results;

/// A figure's file and how it is drawn, where there are rows for it.
type Figure = (&'static str, fn(&Results) -> Option<String>);

pub const FIGURES: &[Figure] = &[
    ("throughput.svg", throughput::draw),
    ("latency.svg", latency::draw),
    ("old-snapshot.svg", old_snapshot::draw),
    ("layers.svg", layers::draw),
    ("distance.svg", distance::draw),
    ("fsync.svg", fsync::draw),
];
