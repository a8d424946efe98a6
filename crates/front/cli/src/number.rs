//! Whole numbers of options: what is wrong with one is said of its value.

/// Reads a whole number for clap.
///
/// # Errors
/// What the text is instead, and what is allowed.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    between(text, 0, u64::MAX)
}

/// As [`whole`], up to 2^63 - 1: what a document of TOML can hold.
///
/// # Errors
/// As [`whole`].
pub(crate) fn whole_i63(text: &str) -> Result<u64, String> {
    between(text, 0, i64::MAX as u64)
}

/// As [`whole`], from 1.
///
/// # Errors
/// As [`whole`].
pub(crate) fn from_one(text: &str) -> Result<u64, String> {
    between(text, 1, u64::MAX)
}

/// As [`whole`], up to 2^32 - 1.
///
/// # Errors
/// As [`whole`].
pub(crate) fn whole_u32(text: &str) -> Result<u32, String> {
    between(text, 0, u32::MAX.into()).map(|n| n as u32)
}

/// As [`whole`], for counts of things in memory.
///
/// # Errors
/// As [`whole`].
pub(crate) fn count(text: &str) -> Result<usize, String> {
    between(text, 0, u32::MAX.into()).map(|n| n as usize)
}

/// How many go on at once: from 1.
///
/// # Errors
/// As [`whole`].
pub(crate) fn jobs(text: &str) -> Result<usize, String> {
    between(text, 1, 65_536).map(|n| n as usize)
}

fn between(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let expected = format!("a whole number from {least} to {most} is expected");
    if let Ok(number) = text.parse::<u64>() {
        let fault = || format!("`{text}` is out of range: {expected}");
        return Some(number).filter(|n| (least..=most).contains(n)).ok_or_else(fault);
    }
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    let what = match text.strip_prefix('-') {
        Some(_) if is_number => "is below zero",
        _ if is_number && text.contains(['.', 'e', 'E']) => "is not written as a whole number",
        _ if is_number => "is out of range",
        _ => "is not a number",
    };
    Err(format!("`{text}` {what}: {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_for_what_it_is() {
        assert_eq!((whole("0"), whole("18446744073709551615")), (Ok(0), Ok(u64::MAX)));
        for (text, what) in [
            ("-1", "is below zero"),
            ("-0.5", "is below zero"),
            ("1e3", "is not written as a whole number"),
            ("1.5", "is not written as a whole number"),
            ("18446744073709551616", "is out of range"),
            ("0", "is out of range"),
            ("x", "is not a number"),
            ("", "is not a number"),
            ("inf", "is not a number"),
        ] {
            let said = from_one(text).unwrap_err();
            assert_eq!(said, format!("`{text}` {what}: a whole number from 1 to {} is expected", u64::MAX));
        }
        assert!(whole_u32("4294967296").unwrap_err().contains("from 0 to 4294967295"));
    }
}
