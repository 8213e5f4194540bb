//! Parsers for arguments that are numbers.

use std::num::NonZeroUsize;

pub fn count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number: u64 = text.trim().parse().map_err(|_| "expected a whole number, such as 100".to_owned())?;
    T::try_from(number).map_err(|_| "the number is too large".to_owned())
}

pub fn more_than_zero(text: &str) -> Result<NonZeroUsize, String> {
    NonZeroUsize::new(count(text)?).ok_or_else(|| "it must be more than zero".to_owned())
}

pub fn priority(text: &str) -> Result<u8, String> {
    text.trim().parse().map_err(|_| "expected a whole number from 0 to 9".to_owned())
}

/// Parses a number of messages per second. The server refuses numbers that are out of bounds.
pub fn rate(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| "expected a number of messages, such as 50 or 0.5".to_owned())
}

pub fn id(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| "expected the id of a message, as `enqueue` and `peek` print it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_told_what_is_wanted() {
        assert_eq!((count::<u32>(" 7 "), count::<u32>("4294967295")), (Ok(7), Ok(u32::MAX)));
        assert!(["", "x", "-1", "1.5"].iter().all(|text| count::<u64>(text).is_err_and(|why| why.contains("as 100"))));
        assert!(count::<u32>("4294967296").is_err_and(|why| why.contains("too large")));
        assert!(more_than_zero("0").is_err() && more_than_zero("1").is_ok());
        assert!(priority("2") == Ok(2) && priority("high").is_err_and(|why| why.contains("0 to 9")));
        assert!(rate("0.5") == Ok(0.5) && rate("5/s").is_err_and(|why| why.contains("50 or 0.5")));
        assert!(id("1024") == Ok(1024) && id("all").is_err_and(|why| why.contains("`peek`")));
    }
}
