//! Standard output, where a reader that has gone away is no panic.

use std::io::{self, Write};

use crate::error::{Error, Result};

/// Writes a text as it is.
pub fn text(text: impl AsRef<[u8]>) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref()).and_then(|()| out.flush()).map_err(|cause| Error::output(&cause))
}

/// Writes a line.
pub fn line(line: impl AsRef<str>) -> Result<()> {
    text(format!("{}\n", line.as_ref()))
}

/// A number with its thousands set apart.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn thousands_are_set_apart() {
        let grouped = [0, 999, 1_000, 12_345, 1_234_567].map(thousands);
        assert_eq!(grouped, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
