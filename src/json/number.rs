//! Integers, in whatever notation, exact to the last digit.

/// Why a JSON number is not an int64.
#[derive(Debug, PartialEq)]
pub enum NoInt64 {
    Fraction,
    Beyond,
}

/// Reads a JSON number whose value is an integer, such as `1.0` or `1e2` (JSON Schema 2020-12, section
/// 6.1.1). Nothing is rounded. `text` must be a number as in RFC 8259, section 6.
pub fn int64_of_json(text: &str) -> Result<i64, NoInt64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The value is `digits` times ten to the power of `shift`, with no zero at either end of `digits`.
    let fraction = fraction.trim_end_matches('0');
    let digits = [whole.trim_start_matches('0'), fraction].concat();
    let kept = digits.trim_end_matches('0');
    let significant = kept.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    let dropped = (digits.len() - kept.len()) as i64;
    let shift = power(exponent).saturating_sub(fraction.len() as i64).saturating_add(dropped);
    if shift < 0 {
        return Err(NoInt64::Fraction);
    }
    // No int64 has more than 19 digits, so 128 bits cannot overflow.
    let length = shift.saturating_add(significant.len() as i64);
    let shift = match u32::try_from(shift) {
        Ok(shift) if length <= 19 => shift,
        _ => return Err(NoInt64::Beyond),
    };
    let number = significant.bytes().fold(0i128, |number, digit| number * 10 + i128::from(digit - b'0'));
    let number = number * 10i128.pow(shift);
    i64::try_from(if negative { -number } else { number }).map_err(|_| NoInt64::Beyond)
}

/// Reads an exponent, capped at more than any int64 needs.
fn power(exponent: &str) -> i64 {
    let (negative, digits) = match exponent.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    // Only digits are left, so if parsing fails, there are too many.
    let power = digits.parse().unwrap_or(i64::MAX);
    if negative { -power } else { power }
}

/// Reads decimal digits, with an optional minus sign, as an int64.
pub fn int64_of_text(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // The standard library would also accept a plus sign.
    (digits.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_however_they_are_written() {
        for (text, number) in [
            ("0", 0),
            ("-0", 0),
            ("0.000", 0),
            ("0e99999999999999999999", 0),
            ("-0.0E-5", 0),
            ("1.0", 1),
            ("1e2", 100),
            ("1E+2", 100),
            ("100e-2", 1),
            ("1000.00e-3", 1),
            ("1.50e1", 15),
            ("0.0015e4", 15),
            ("10", 10),
            ("-12.3e1", -123),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("9223372036854775807", i64::MAX),
            ("9.223372036854775807e18", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("-922337203685477580800e-2", i64::MIN),
            ("1e18", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(int64_of_json(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn fractions_are_told_from_what_is_too_large() {
        for text in ["1.5", "-0.1", "1e-1", "15e-1", "9007199254740993.5", "1e-99999999999999999999", "0.1e0"]
        {
            assert_eq!(int64_of_json(text), Err(NoInt64::Fraction), "{text}");
        }
        for text in [
            "9223372036854775808",
            "-9223372036854775809",
            "9223372036854775808.0",
            "1e19",
            "1e400",
            "-1e99999999999999999999",
            "99999999999999999999999999999999999999999999",
        ] {
            assert_eq!(int64_of_json(text), Err(NoInt64::Beyond), "{text}");
        }
        let long = format!("1{}", "0".repeat(60_000));
        assert_eq!(int64_of_json(&long), Err(NoInt64::Beyond));
        assert_eq!(int64_of_json(&format!("{long}e-60000")), Ok(1));
        assert_eq!(int64_of_json(&format!("0.{}1e60001", "0".repeat(60_000))), Ok(1));
    }

    #[test]
    fn text_takes_plain_digits_only() {
        assert_eq!(int64_of_text("9223372036854775807"), Some(i64::MAX));
        assert_eq!(int64_of_text("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(int64_of_text("007"), Some(7));
        for text in ["", "-", "+1", "--1", "1.0", "1e3", " 1", "0x1", "9223372036854775808", "١"] {
            assert_eq!(int64_of_text(text), None, "{text}");
        }
    }
}
