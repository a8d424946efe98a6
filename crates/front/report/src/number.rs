//! Numbers formatted for people.

use serde_json::Value;

/// Unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Plain number without a known unit.
    Plain,
    /// Nanoseconds, shown as ns, µs, ms or s.
    Ns,
    /// Bytes, shown with binary prefixes.
    Bytes,
    /// Bytes per second, shown with decimal prefixes.
    BytesPerS,
    /// A rate.
    PerS,
    /// Share from zero to one, shown in per cent.
    Share,
    /// Joules.
    Joules,
    /// Watts.
    Watts,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Name of the unit in a page's figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Plain => "plain",
            Unit::Ns => "ns",
            Unit::Bytes => "bytes",
            Unit::BytesPerS => "bytes_per_s",
            Unit::PerS => "per_s",
            Unit::Share => "share",
            Unit::Joules => "joules",
            Unit::Watts => "watts",
            Unit::Seconds => "seconds",
        }
    }

    /// Unit of the value of a key: units come last in names.
    pub(crate) fn of_key(key: &str) -> Unit {
        let parts = || key.rsplit('.').map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
        parts().find_map(Unit::of_name).unwrap_or(Unit::Plain)
    }

    fn of_name(name: &str) -> Option<Unit> {
        let is = |unit: &str| name == unit || name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_'));
        let named = [
            ("bytes_per_s", Unit::BytesPerS),
            ("per_cpu_s", Unit::PerS),
            ("per_s", Unit::PerS),
            ("iops", Unit::PerS),
            ("ns", Unit::Ns),
            ("ns_mean", Unit::Ns),
            ("ns_max", Unit::Ns),
            ("bytes", Unit::Bytes),
            ("bytes_mean", Unit::Bytes),
            ("share", Unit::Share),
            ("utilisation", Unit::Share),
            ("j", Unit::Joules),
            ("w", Unit::Watts),
            ("w_mean", Unit::Watts),
            ("w_max", Unit::Watts),
            ("s", Unit::Seconds),
        ];
        named.into_iter().find(|(suffix, _)| is(suffix)).map(|(_, unit)| unit)
    }
}

/// Formats a number with its unit: four significant digits and a prefix; whole counts keep all of their digits.
pub(crate) fn shown(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    match unit {
        Unit::Plain if value.fract() == 0.0 && value.abs() < 1e15 => grouped(value),
        Unit::Plain => digits(value),
        Unit::Ns => scaled(value, &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]),
        Unit::Bytes => {
            let kib = 1024.0;
            let prefixes = [(1.0, "B"), (kib, "KiB"), (kib * kib, "MiB"), (kib * kib * kib, "GiB")];
            scaled(value, &prefixes)
        }
        Unit::BytesPerS => scaled(value, &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")]),
        Unit::PerS => scaled(value, &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")]),
        Unit::Share => format!("{} %", digits(100.0 * value)),
        Unit::Joules => scaled(value, &[(1e-9, "nJ"), (1e-6, "µJ"), (1e-3, "mJ"), (1.0, "J"), (1e3, "kJ")]),
        Unit::Watts => scaled(value, &[(1e-3, "mW"), (1.0, "W")]),
        Unit::Seconds => format!("{} s", digits(value)),
    }
}

/// A metric's value as people read it, in the unit that its key names.
pub fn shown_as(key: &str, value: f64) -> String {
    shown(value, Unit::of_key(key))
}

/// Formats a leaf of a document.
pub(crate) fn leaf(value: &Value, unit: Unit) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |n| shown(n, unit)),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

fn scaled(value: f64, prefixes: &[(f64, &str)]) -> String {
    let fits = |(scale, _): &&(f64, &str)| value.abs() >= *scale * 0.9995;
    let (scale, name) = prefixes.iter().rev().find(fits).or(prefixes.first()).copied().unwrap_or((1.0, ""));
    if value == 0.0 {
        return format!(
            "0 {}",
            prefixes.iter().find(|(scale, _)| *scale == 1.0).map_or(name, |(_, name)| name)
        );
    }
    format!("{} {name}", digits(value / scale))
}

/// Formats four significant digits, without trailing zeros after the point.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = libm::log10(value.abs()).floor();
    if !(-6.0..15.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let places = (3.0 - magnitude).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.places$}");
    if !text.contains('.') {
        return grouped(value.round());
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a whole number with grouped thousands.
fn grouped(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut out = String::with_capacity(text.len() + text.len() / 3 + 1);
    if value < 0.0 {
        out.push('-');
    }
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && (text.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Rounds to six significant digits, enough for a picture and shorter in a page.
pub(crate) fn rounded(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return Value::from(value as i64);
    }
    format!("{value:.5e}").parse::<f64>().map_or(Value::Null, Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_prefix_that_makes_them_short() {
        let cases = [
            (257.0, Unit::Ns, "257 ns"),
            (1_650_819.1, Unit::Ns, "1.651 ms"),
            (999_999.0, Unit::Ns, "1 ms"),
            (0.0, Unit::Ns, "0 ns"),
            (0.0, Unit::Joules, "0 J"),
            (4096.0, Unit::Bytes, "4 KiB"),
            (65_029_248.4, Unit::BytesPerS, "65.03 MB/s"),
            (15_876.28, Unit::PerS, "15.88 k/s"),
            (0.512_34, Unit::Share, "51.23 %"),
            (200_000.0, Unit::Plain, "200,000"),
            (-1_234.5, Unit::Plain, "-1,234"),
            (3.180_94, Unit::Plain, "3.181"),
            (2.9e-7, Unit::Joules, "290 nJ"),
            (270_049.8, Unit::Joules, "270 kJ"),
        ];
        for (value, unit, expected) in cases {
            let expected = if expected == "-1,234" { ["-1,234", "-1,235"] } else { [expected, expected] };
            assert!(expected.contains(&shown(value, unit).as_str()), "{} {expected:?}", shown(value, unit));
        }
    }

    #[test]
    fn units_are_read_from_names() {
        for (key, unit) in [
            ("io.read.latency_ns.p99", Unit::Ns),
            ("io.read.iops", Unit::PerS),
            ("io.all.bandwidth_bytes_per_s", Unit::BytesPerS),
            ("gpu.0.l1_hit_share", Unit::Share),
            ("flash.0.utilisation.die.3", Unit::Share),
            ("flash.0.erases", Unit::Plain),
            ("energy.total.energy_j", Unit::Joules),
            ("run.wall_s", Unit::Seconds),
        ] {
            assert_eq!(Unit::of_key(key), unit, "{key}");
        }
    }
}
