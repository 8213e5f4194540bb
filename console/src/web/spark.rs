//! A small line of the last hour, as SVG.

use std::fmt::Write;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 24.0;

/// The points of a `polyline` in a box of 120 by 24. The highest value reaches the top, zero the bottom.
pub fn points(values: impl ExactSizeIterator<Item = u64> + Clone) -> String {
    let most = values.clone().max().unwrap_or(0).max(1) as f64;
    let step = WIDTH / (values.len().max(2) - 1) as f64;
    let mut points = String::new();
    for (place, value) in values.enumerate() {
        let (x, y) = (place as f64 * step, (HEIGHT - 1.0) - (HEIGHT - 2.0) * value as f64 / most);
        let _ = write!(points, "{x:.1},{y:.1} ");
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_is_on_top_and_nothing_at_the_bottom() {
        assert_eq!(points([0, 5, 10].into_iter()), "0.0,23.0 60.0,12.0 120.0,1.0 ");
        assert_eq!(points([0].into_iter()), "0.0,23.0 ");
        assert_eq!(points([].into_iter()), "");
    }
}
