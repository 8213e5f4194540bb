//! The nesting depth of JSON.

use pyo3::prelude::*;

/// Returns the maximum nesting depth of lists and objects in a JSON text.
#[pyfunction]
pub fn depth(json: &str) -> usize {
    let (mut depth, mut most, mut is_text) = (0_usize, 0, false);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => _ = bytes.next(),
            b'[' | b'{' if !is_text => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}
