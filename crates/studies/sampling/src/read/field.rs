//! What stands in a field: sizes, times, numbers.

use crate::profile::Dims;

/// Nanoseconds in a unit of time, as profilers abbreviate it.
pub(super) fn unit_ns(name: &str) -> Option<f64> {
    Some(match name {
        "ns" | "nsec" | "nsecond" | "nanosecond" | "nanoseconds" => 1.0,
        "us" | "usec" | "usecond" | "µs" | "μs" | "microsecond" | "microseconds" => 1e3,
        "ms" | "msec" | "msecond" | "millisecond" | "milliseconds" => 1e6,
        "s" | "sec" | "second" | "seconds" => 1e9,
        _ => return None,
    })
}

/// Units that are read.
pub(super) const UNITS: [&str; 8] = ["ns", "us", "ms", "s", "nsecond", "usecond", "msecond", "second"];

/// Three sizes: `564x1x1`, `(564, 1, 1)` or `564 1 1`; nothing is `Ok(None)`.
pub(super) fn dims(text: &[u8]) -> Result<Option<Dims>, ()> {
    let mut sides = [0_u32; 3];
    let mut found = 0;
    let is_between = |byte: &u8| matches!(byte, b'x' | b',' | b'(' | b')' | b' ' | b'\t');
    for side in text.split(is_between).filter(|side| !side.is_empty()) {
        let parsed = size(side).ok_or(())?;
        *sides.get_mut(found).ok_or(())? = parsed;
        found += 1;
    }
    match found {
        0 => Ok(None),
        3 => Ok(Some(Dims(sides))),
        _ => Err(()),
    }
}

/// A size in blocks or threads: a whole number from one.
pub(super) fn size(digits: &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
    }
    (value > 0).then_some(value)
}

/// A real number.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    str::from_utf8(text).ok()?.trim().parse().ok()
}

/// A real number that may have commas between thousands, as Nsight Compute prints them: `1,234.5`.
pub(super) fn grouped(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?.trim();
    if !text.contains(',') {
        return text.parse().ok();
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let mut groups = whole.split(',');
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next()?;
    if !(1..=3).contains(&first.len()) || !digits(first) || !digits(part) {
        return None;
    }
    if !groups.all(|group| group.len() == 3 && digits(group)) {
        return None;
    }
    text.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_three_spellings() {
        for text in ["564x2x1", "(564, 2, 1)", "  564    2    1", "564,2,1"] {
            assert_eq!(dims(text.as_bytes()), Ok(Some(Dims([564, 2, 1]))), "{text}");
        }
        assert_eq!(dims(b""), Ok(None));
        for text in ["564", "1x1x1x1", "0x1x1", "-1x1x1", "1x1x5000000000", "axbxc", "1.0x1x1"] {
            assert_eq!(dims(text.as_bytes()), Err(()), "{text}");
        }
    }

    #[test]
    fn commas_stand_between_thousands_only() {
        for (text, value) in
            [("1,234.5", 1234.5), ("152,192", 152_192.0), ("12.40", 12.4), ("1,000,000", 1e6)]
        {
            assert_eq!(grouped(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["9,00", "1,234,5", ",123", "1234,567", "1,23a.0", "1.234,50"] {
            assert_eq!(grouped(text.as_bytes()), None, "{text}");
        }
    }
}
