//! Draws the last hour as a small SVG line.

use std::fmt::Write;

/// The number of points of the line, in a box of 120 by 24.
const PLACES: usize = 30;

/// Returns the points of a `polyline` for the values of successive minutes; the last value is the
/// current one. Each point is the higher value of two minutes. The highest value is at the top, and
/// zero is at the bottom.
pub fn points(values: impl DoubleEndedIterator<Item = u64> + Clone) -> String {
    let most = values.clone().max().unwrap_or(0).max(1) as f64;
    let mut last_first = values.rev();
    let mut places = Vec::with_capacity(PLACES);
    while let (true, Some(one)) = (places.len() < PLACES, last_first.next()) {
        places.push(one.max(last_first.next().unwrap_or(0)));
    }
    let first = PLACES - places.len();
    let mut points = String::new();
    for (place, value) in (first..).zip(places.into_iter().rev()) {
        let (x, y) = (120 * place / (PLACES - 1), 23.0 - 22.0 * value as f64 / most);
        let _ = write!(points, "{x},{y:.0} ");
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spark_line_has_highest_on_top_and_now_on_right() {
        assert_eq!(points([9, 9, 0, 0, 5, 1, 10, 0].into_iter()), "107,3 111,23 115,12 120,1 ");
        assert_eq!(points([0].into_iter()), "120,23 ");
        assert_eq!(points([].into_iter()), "");
        let hour = points((0..60).map(|minute| minute % 2));
        assert!(hour.starts_with("0,1 4,1 ") && hour.len() < 200, "{hour}");
    }
}
