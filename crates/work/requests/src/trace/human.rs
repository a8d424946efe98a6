//! Formatting of numbers for people.

/// Formats `1234567` as `1,234,567`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats picoseconds in the largest unit that gives at least one whole: `6.9 days`.
pub(crate) fn span(ps: u128) -> String {
    const UNITS: [(u128, &str); 8] = [
        (31_557_600_000_000_000_000, "years"),
        (86_400_000_000_000_000, "days"),
        (3_600_000_000_000_000, "hours"),
        (60_000_000_000_000, "minutes"),
        (1_000_000_000_000, "s"),
        (1_000_000_000, "ms"),
        (1_000_000, "us"),
        (1_000, "ns"),
    ];
    match UNITS.iter().find(|(scale, _)| ps >= *scale) {
        Some((scale, unit)) => format!("{} {unit}", short(ps as f64 / *scale as f64)),
        None => format!("{ps} ps"),
    }
}

/// Formats bytes in binary units: `1.35 GiB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", short(value))
}

/// Formats a rate: `14.2 req/s`.
pub(crate) fn rate(per_s: f64) -> String {
    if per_s >= 1000.0 {
        format!("{} req/s", count(per_s.round() as u64))
    } else {
        format!("{} req/s", short(per_s))
    }
}

/// Formats a share: `62.6 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats three significant digits, or all digits before the point.
fn short(value: f64) -> String {
    let decimals = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_read_well() {
        assert_eq!(super::count(1_234_567), "1,234,567");
        assert_eq!(super::count(999), "999");
        assert_eq!(super::span(595_003_214_017_868_000), "6.89 days");
        assert_eq!(super::span(136_488_990_000), "136 ms");
        assert_eq!(super::bytes(1 << 30), "1 GiB");
        assert_eq!(super::bytes(512), "512 B");
        assert_eq!(super::rate(14.23), "14.2 req/s");
        assert_eq!(super::percent(0.6259), "62.6 %");
    }
}
