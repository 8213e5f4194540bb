//! Floating point numbers in Postgres' text form, which differs from Rust's.

use std::{
    fmt::{LowerExp, Write},
    str::FromStr,
};

/// A type of floating point numbers.
pub trait Float: Copy + FromStr + LowerExp {
    /// The power of ten at which Postgres starts to write an exponent. It is also the number of
    /// digits that the type always preserves.
    const DIGITS: i32;
    fn is_infinite(self) -> bool;
    fn is_zero(self) -> bool;
    /// Returns the number without its sign, as a whole number and the power of two to multiply it
    /// by.
    fn parts(self) -> (u64, i32);
}

impl Float for f32 {
    const DIGITS: i32 = 6;

    fn is_infinite(self) -> bool {
        self.is_infinite()
    }

    fn is_zero(self) -> bool {
        self.to_bits() << 1 == 0
    }

    fn parts(self) -> (u64, i32) {
        parts(u64::from(self.to_bits() << 1 >> 1), Self::MANTISSA_DIGITS, Self::MIN_EXP)
    }
}

impl Float for f64 {
    const DIGITS: i32 = 15;

    fn is_infinite(self) -> bool {
        self.is_infinite()
    }

    fn is_zero(self) -> bool {
        self.to_bits() << 1 == 0
    }

    fn parts(self) -> (u64, i32) {
        parts(self.to_bits() << 1 >> 1, Self::MANTISSA_DIGITS, Self::MIN_EXP)
    }
}

/// Computes [`Float::parts`] from the bits of the number, without the sign bit.
fn parts(bits: u64, digits: u32, least: i32) -> (u64, i32) {
    let hidden = 1 << (digits - 1);
    let (fraction, exponent) = (bits & (hidden - 1), (bits >> (digits - 1)) as i32);
    let fraction = if exponent == 0 { fraction } else { fraction | hidden };
    (fraction, exponent.max(1) - 1 + least - digits as i32)
}

/// Parses a number. Like Postgres, refuses a number that is too large or too small for the type.
pub fn parse<T: Float>(text: &str) -> Result<T, String> {
    let text = text.trim();
    let number: T = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let says_infinite = text.contains(['i', 'I']);
    if (number.is_infinite() && !says_infinite) || (number.is_zero() && mantissa.contains(|c| matches!(c, '1'..='9'))) {
        return Err(format!("{text:?} is out of range"));
    }
    Ok(number)
}

/// Formats a number as Postgres does: with the fewest digits that identify the number.
pub fn text<T: Float>(number: T) -> String {
    let mut scientific = format!("{number:e}"); // always with one digit before the point
    while let Some((digits, _)) = whole(&scientific) {
        let after_point = digits.ilog10() as usize;
        scientific = format!("{number:.after_point$e}"); // rounds a tie to the even digit
        if !whole(&scientific).is_some_and(|digits| is_between(number.parts(), digits)) {
            break;
        }
        // Adds a digit: these digits may lie exactly half way between two numbers. Parsing would
        // round them to the right number, but Postgres avoids such digits.
        scientific = format!("{number:.*e}", after_point + 1);
    }
    let Some((mantissa, exponent)) = scientific.split_once('e').and_then(|(m, e)| Some((m, e.parse::<i32>().ok()?)))
    else {
        return if number.is_infinite() { scientific.replace("inf", "Infinity") } else { "NaN".to_owned() };
    };
    let sign = if mantissa.starts_with('-') { "-" } else { "" };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let mut out = sign.to_owned();
    if !(-4..T::DIGITS).contains(&exponent) {
        let mark = if exponent < 0 { '-' } else { '+' };
        // writing to a string cannot fail
        let _ = write!(out, "{}e{mark}{:02}", mantissa.trim_start_matches('-'), exponent.abs());
    } else if exponent < 0 {
        out.push_str("0.");
        out.extend((1..-exponent).map(|_| '0'));
        out.push_str(&digits);
    } else {
        let whole = exponent.unsigned_abs() as usize + 1;
        let (before, after) = digits.split_at(whole.min(digits.len()));
        out.push_str(before);
        out.extend((digits.len()..whole).map(|_| '0'));
        if !after.is_empty() {
            out.push('.');
            out.push_str(after);
        }
    }
    out
}

/// Returns the digits as a whole number and a power of ten. Returns `None` for zero, and for text
/// without digits.
fn whole(scientific: &str) -> Option<(u64, i32)> {
    let (mantissa, exponent) = scientific.trim_start_matches('-').split_once('e')?;
    let after = mantissa.split_once('.').map_or(0, |(_, after)| after.len()) as i32;
    let digits: u64 = mantissa.replace('.', "").parse().ok().filter(|digits| *digits > 0)?;
    Some((digits, exponent.parse::<i32>().ok()? - after))
}

/// Returns true if the digits are exactly half way between a number and the next one, on either
/// side.
fn is_between((fraction, two): (u64, i32), (digits, ten): (u64, i32)) -> bool {
    let (even, digits) = (digits.trailing_zeros() as i32, u128::from(digits >> digits.trailing_zeros()));
    let Some(fives) = 5_u128.checked_pow(ten.unsigned_abs()) else { return false };
    // The point half way is an odd number of half steps. So the numbers can only be equal if both
    // sides have the same power of two.
    let halfway = |odd: u64| match ten {
        0.. => digits.checked_mul(fives) == Some(odd.into()),
        _ => Some(digits) == fives.checked_mul(odd.into()),
    };
    even + ten == two - 1 && (halfway(2 * fraction + 1) || (fraction > 0 && halfway(2 * fraction - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_those_of_postgres() {
        for (number, wanted) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (-1.5e-4, "-0.00015"),
            (1e-5, "1e-05"),
            (1e300, "1e+300"),
            (5e-324, "5e-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text(number), wanted);
        }
        assert_eq!(
            [0.1, 999_999.0, 1e6, -114_044_064.0].map(text::<f32>),
            ["0.1", "999999", "1e+06", "-1.14044064e+08"]
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(parse::<f64>(" 1e300 "), Ok(1e300));
        assert!(
            parse::<f64>("Infinity").is_ok_and(f64::is_infinite) && parse::<f64>("-inf").is_ok_and(f64::is_infinite)
        );
        assert!(parse::<f64>("0e5").is_ok_and(Float::is_zero) && parse::<f32>("-0.00").is_ok_and(Float::is_zero));
        assert!(["1e400", "1e-400", "x", ""].iter().all(|text| parse::<f64>(text).is_err()));
        assert!(["1e39", "1e-46"].iter().all(|text| parse::<f32>(text).is_err() && parse::<f64>(text).is_ok()));
    }
}
