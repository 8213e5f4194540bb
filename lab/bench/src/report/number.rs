//! Formats numbers for readers, with three digits and a unit.

/// The placeholder for a missing figure.
pub const NONE: &str = "–";

/// Formats a number: `1.44 M`, `555 k`, `12.3`.
pub fn rate(value: f64) -> String {
    scaled(value, &[(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")])
}

/// Formats a time: `0.73 µs`, `4.75 ms`, `12.0 s`.
pub fn time(microseconds: f64) -> String {
    scaled(microseconds, &[(1e6, " s"), (1e3, " ms"), (1.0, " µs")])
}

/// Formats a range of times: `1.38–8.28 ms`. The unit appears once if both times have the same
/// unit.
pub fn span(from: f64, to: f64) -> String {
    let (from, to) = (time(from), time(to));
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((digits, unit)), Some((_, same))) if unit == same => format!("{digits}–{to}"),
        _ => format!("{from} – {to}"),
    }
}

pub fn bytes(value: f64) -> String {
    scaled(value, &[(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")])
}

/// Formats a ratio: `×1.84`, or `1/312` below 0.1.
pub fn times(ratio: f64) -> String {
    match ratio {
        ratio if !ratio.is_finite() => NONE.into(),
        ratio if ratio > 0.0 && ratio < 0.1 => format!("1/{}", rate(1.0 / ratio)),
        ratio => format!("×{}", rate(ratio)),
    }
}

/// Formats a share: `12.3 %`.
pub fn percent(share: f64) -> String {
    match share.is_finite() {
        true => format!("{} %", three(share * 100.0)),
        false => NONE.into(),
    }
}

/// Formats a number with all of its digits, because settings are exact: `100`, `20,000`.
pub fn whole(value: f64) -> String {
    if value.fract() != 0.0 {
        return three(value);
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Shortens `1.00 k` to `1 k`, because all labels of an axis are round.
pub fn short(figure: &str) -> String {
    let (digits, unit) = figure.split_at(figure.find(' ').unwrap_or(figure.len()));
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{digits}{unit}")
}

/// Formats the day and minute of a Unix time in seconds.
pub fn date(seconds: u64) -> String {
    let (mut days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", days + 1, minutes / 60, minutes % 60)
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let value = rounded(value);
    let (scale, unit) = units.iter().find(|(scale, _)| value.abs() >= *scale).or(units.last()).unwrap_or(&(1.0, ""));
    format!("{}{unit}", three(value / scale))
}

/// Formats three digits. A value below a ten-thousandth is shown as zero.
fn three(value: f64) -> String {
    let value = rounded(value);
    if value.abs() < 1e-4 {
        return "0".into();
    }
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 4.0) as usize;
    format!("{value:.decimals$}")
}

/// Rounds before the unit is chosen, so that 999.7 becomes `1.00 k` and not `1000`.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let rates = [1_441_000.0, 555_400.0, 4_754.0, 12.34, 999.7, 0.0, f64::NAN, f64::INFINITY].map(super::rate);
        assert_eq!(rates, ["1.44 M", "555 k", "4.75 k", "12.3", "1.00 k", "0", "–", "–"]);
        assert_eq!([0.731, 169.0, 4_750.0, 12e6].map(super::time), ["0.731 µs", "169 µs", "4.75 ms", "12.0 s"]);
        assert_eq!([100.0, 20_000.0, 1_000_000.0].map(super::whole), ["100", "20,000", "1,000,000"]);
        assert_eq!([super::times(1.0), super::times(0.0032), super::percent(0.123)], ["×1.00", "1/312", "12.3 %"]);
        assert_eq!([super::span(1_380.0, 8_280.0), super::span(300.0, 1_800.0)], ["1.38–8.28 ms", "300 µs – 1.80 ms"]);
    }

    #[test]
    fn an_axis_has_no_idle_noughts() {
        assert_eq!(
            ["1.00 k", "100 µs", "10.0 ms", "2.50", "0"].map(super::short),
            ["1 k", "100 µs", "10 ms", "2.5", "0"]
        );
    }

    #[test]
    fn dates_know_leap_years() {
        assert_eq!(super::date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(super::date(1_763_737_440), "2025-11-21 15:04 UTC");
    }
}
