//! Numbers of another simulator as a spec writes them.

/// A time in nanoseconds, or in picoseconds if it is no whole number of them.
pub(crate) fn time_ps(ps: u64) -> String {
    const UNITS: [(&str, u64); 5] =
        [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1000), ("ps", 1)];
    // At most two digits behind the point.
    let fits = |(_, unit): &&(&str, u64)| {
        ps >= *unit && (ps.is_multiple_of(*unit) || (*unit >= 100 && ps.is_multiple_of(unit / 100)))
    };
    match UNITS.iter().find(fits) {
        Some((name, unit)) => format!("{}{name}", decimal(ps as f64 / *unit as f64)),
        None => "0us".to_owned(),
    }
}

/// A time in nanoseconds.
pub(crate) fn time_ns(ns: u64) -> String {
    time_ps(ns.saturating_mul(1000))
}

/// A size in the largest unit of which it is a whole number.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
    let (name, unit) =
        UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)).unwrap_or(&("B", 1));
    format!("{}{name}", bytes / unit)
}

/// A share as a percentage.
pub(crate) fn share(share: f64) -> String {
    format!("{}%", decimal(share * 100.0))
}

/// A number with as many digits as it needs, at most six behind the point.
pub(crate) fn decimal(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A word of a spec.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_a_person_would() {
        for (ns, text) in [
            (750_000, "750us"),
            (3_800_000, "3.8ms"),
            (75_020, "75.02us"),
            (7, "7ns"),
            (0, "0us"),
            (2_000_000_000, "2s"),
        ] {
            assert_eq!(time_ns(ns), text);
        }
        assert_eq!((time_ps(40_000_001), time_ps(500)), ("40000001ps".to_owned(), "500ps".to_owned()));
        assert_eq!(
            (size(8192), size(100), size(1 << 28)),
            ("8KiB".to_owned(), "100B".to_owned(), "256MiB".to_owned())
        );
        assert_eq!(
            (share(0.07), share(0.127), share(1.0)),
            ("7%".to_owned(), "12.7%".to_owned(), "100%".to_owned())
        );
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c \"");
    }
}
