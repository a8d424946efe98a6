//! Decimal numbers with a unit, read and written exactly.

use std::fmt::Write as _;

use crate::diag::{Diagnostic, is_slip};

/// Unit: its name, and its size as a fraction of the quantity's base unit.
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) numerator: u64,
    pub(super) denominator: u64,
    /// True if `Display` may choose the unit.
    pub(super) shown: bool,
}

/// Kind of quantity with its units, smallest first.
pub(crate) struct Quantity {
    /// Noun, such as `duration`.
    pub(super) noun: &'static str,
    /// Noun with its article, such as `a duration`.
    pub(super) with_article: &'static str,
    /// Example value, such as `65us`.
    pub(super) example: &'static str,
    /// Base unit in words: the smallest representable amount.
    pub(super) finest: &'static str,
    pub(super) units: &'static [Unit],
    /// Minimum that can be simulated, regardless of the key.
    pub(super) least: Option<&'static str>,
    /// Maximum that can be simulated.
    pub(super) most: Option<&'static str>,
    /// Description of an amount below the minimum.
    pub(crate) too_little: &'static str,
    /// Description of an amount above the maximum.
    pub(crate) too_much: &'static str,
}

pub(super) const fn unit(name: &'static str, numerator: u64) -> Unit {
    Unit { name, numerator, denominator: 1, shown: true }
}

/// Creates a unit that is understood but never written.
pub(super) const fn alias(name: &'static str, numerator: u64, denominator: u64) -> Unit {
    Unit { name, numerator, denominator, shown: false }
}

const K: u64 = 1_000;
const M: u64 = K * K;
const G: u64 = K * M;
const T: u64 = K * G;

/// Simulated time, in picoseconds.
pub(super) static DURATION: Quantity = Quantity {
    noun: "duration",
    with_article: "a duration",
    example: "65us",
    finest: "1ps",
    units: &[
        unit("ps", 1),
        unit("ns", K),
        unit("us", M),
        alias("µs", M, 1),
        alias("μs", M, 1),
        unit("ms", G),
        unit("s", T),
        alias("min", 60 * T, 1),
        alias("h", 3600 * T, 1),
        alias("d", 24 * 3600 * T, 1),
    ],
    // A duration in a spec occurs many times in a run.
    least: None,
    most: Some("1h"),
    too_little: "too short",
    too_much: "too long to simulate: the clock ends at 213 days",
};

/// An amount of data, in bytes.
pub(super) static BYTES: Quantity = Quantity {
    noun: "size",
    with_article: "a size",
    example: "4KiB",
    finest: "1B",
    units: &[
        unit("B", 1),
        unit("kB", K),
        alias("KB", K, 1),
        unit("KiB", 1 << 10),
        unit("MB", M),
        unit("MiB", 1 << 20),
        unit("GB", G),
        unit("GiB", 1 << 30),
        unit("TB", T),
        unit("TiB", 1 << 40),
        unit("PB", K * T),
        unit("PiB", 1 << 50),
    ],
    // Sums of a few sizes, and their bits, must be countable.
    least: None,
    most: Some("1PiB"),
    too_little: "too small",
    too_much: "too large to simulate",
};

/// Data per time, in bytes per second.
pub(super) static BANDWIDTH: Quantity = Quantity {
    noun: "bandwidth",
    with_article: "a bandwidth",
    example: "3.2GB/s",
    finest: "1B/s",
    units: &[
        unit("B/s", 1),
        unit("kB/s", K),
        alias("KB/s", K, 1),
        unit("KiB/s", 1 << 10),
        unit("MB/s", M),
        unit("MiB/s", 1 << 20),
        unit("GB/s", G),
        unit("GiB/s", 1 << 30),
        unit("TB/s", T),
        unit("TiB/s", 1 << 40),
        alias("bit/s", 1, 8),
        alias("kbit/s", K, 8),
        alias("Mbit/s", M, 8),
        alias("Gbit/s", G, 8),
        alias("Tbit/s", T, 8),
    ],
    // At this rate 1 GiB, the largest request, still moves within the clock.
    least: Some("1MB/s"),
    most: None,
    too_little: "too slow to simulate",
    too_much: "too fast to simulate",
};

/// Transfers on a bus, per second.
pub(super) static TRANSFER_RATE: Quantity = Quantity {
    noun: "transfer rate",
    with_article: "a transfer rate",
    example: "800MT/s",
    finest: "1T/s",
    units: &[unit("T/s", 1), unit("kT/s", K), unit("MT/s", M), unit("GT/s", G)],
    least: Some("1MT/s"),
    most: None,
    too_little: "too slow to simulate",
    too_much: "too fast to simulate",
};

/// Clock cycles, per second.
pub(super) static FREQUENCY: Quantity = Quantity {
    noun: "frequency",
    with_article: "a frequency",
    example: "1.2GHz",
    finest: "1Hz",
    units: &[unit("Hz", 1), unit("kHz", K), unit("MHz", M), unit("GHz", G)],
    least: Some("1MHz"),
    most: Some("1000GHz"),
    too_little: "too slow to simulate",
    too_much: "too fast to simulate: time is counted in picoseconds",
};

/// Energy of an operation, in attojoules.
pub(super) static ENERGY: Quantity = Quantity {
    noun: "energy",
    with_article: "an energy",
    example: "1.2nJ",
    finest: "1aJ",
    units: &[
        unit("aJ", 1),
        unit("fJ", K),
        unit("pJ", M),
        unit("nJ", G),
        unit("uJ", T),
        alias("µJ", T, 1),
        alias("μJ", T, 1),
        unit("mJ", K * T),
    ],
    // An operation in a spec occurs many times in a run.
    least: None,
    most: Some("1000mJ"),
    too_little: "too little",
    too_much: "too much for one operation",
};

/// Power of a state, in microwatts.
pub(super) static POWER: Quantity = Quantity {
    noun: "power",
    with_article: "a power",
    example: "0.8W",
    finest: "1uW",
    units: &[unit("uW", 1), alias("µW", 1, 1), alias("μW", 1, 1), unit("mW", K), unit("W", M), unit("kW", G)],
    least: None,
    most: Some("1000kW"),
    too_little: "too little",
    too_much: "too much for one part",
};

static ALL: [&Quantity; 7] = [&DURATION, &BYTES, &BANDWIDTH, &TRANSFER_RATE, &FREQUENCY, &ENERGY, &POWER];

impl Quantity {
    /// Returns the quantity with that noun.
    pub(crate) fn named(noun: &str) -> Option<&'static Quantity> {
        ALL.into_iter().find(|quantity| quantity.noun == noun)
    }

    /// Reads text into an amount in base units.
    pub(crate) fn read(&self, text: &str) -> Result<u64, Diagnostic> {
        let text = text.trim();
        if text.starts_with('-') {
            return Err(self.expected(format!("`{text}` is negative")));
        }
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, name) = (&text[..split], text[split..].trim_start());
        let Some(number) = Decimal::read(number) else {
            return Err(self.expected(format!("`{text}` does not begin with a number")));
        };
        let Some(unit) = self.units.iter().find(|u| u.name == name) else {
            return Err(self.wrong_unit(text, name));
        };
        number.scaled(unit).map_err(|fault| {
            let what = match fault {
                Misfit::TooLarge => format!("`{text}` is too large for {}", self.with_article),
                Misfit::TooFine => format!("`{text}` is not a whole multiple of {}", self.finest),
            };
            Diagnostic::new(what)
        })
    }

    /// Returns the shortest exact text of `amount`; among equals, the one with the largest unit.
    pub(crate) fn write(&self, amount: u64) -> String {
        let mut best = format!("{amount}{}", self.units[0].name);
        for unit in self.units.iter().filter(|u| u.shown && u.numerator <= amount) {
            if let Some(text) = write_in(amount, unit)
                && text.len() <= best.len()
            {
                best = text;
            }
        }
        best
    }

    /// Returns the unit names, as a list in words.
    pub(super) fn unit_names(&self) -> Vec<&'static str> {
        self.units.iter().map(|u| u.name).filter(|name| name.is_ascii()).collect()
    }

    fn expected(&self, what: String) -> Diagnostic {
        Diagnostic::new(format!("{what}; expected {} such as `{}`", self.with_article, self.example))
    }

    fn wrong_unit(&self, text: &str, name: &str) -> Diagnostic {
        let other = ALL.iter().find(|q| q.units.iter().any(|u| u.name == name));
        let what = match other {
            _ if name.is_empty() => format!("`{text}` has no unit"),
            Some(other) => format!("`{text}` is {}, not {}", other.with_article, self.with_article),
            None => format!("`{name}` in `{text}` is not a unit of {}", self.with_article),
        };
        let mut fault = self.expected(what).allowed("", self.unit_names());
        fault.nearest = if other.is_some() || name.is_empty() { None } else { self.nearest_unit(name) };
        fault
    }

    /// Returns the unit that a misspelt name means. Letters in a different case are nearer than different letters
    /// (`gb/s` means `GB/s`), unless the first is a prefix of a different size, as in `MW`. Units one letter apart may
    /// be 10^12 apart in size: if several are equally near, none is suggested.
    fn nearest_unit(&self, name: &str) -> Option<String> {
        let is_time = std::ptr::eq(self.units, DURATION.units);
        let same_letters = self.units.iter().find(|u| u.name.eq_ignore_ascii_case(name));
        if let Some(unit) = same_letters {
            let is_another_prefix = name.starts_with(['M', 'P']) && unit.name.starts_with(['m', 'p']);
            return (is_time || !is_another_prefix).then(|| unit.name.to_owned());
        }
        if is_time && let Some(unit) = spelled_out(name) {
            return Some(unit.to_owned());
        }
        // Minutes or milliseconds.
        if is_time && name.eq_ignore_ascii_case("m") {
            return None;
        }
        let shares = |unit: &&Unit| {
            name.chars().count() > 1 || unit.name.to_lowercase().contains(&name.to_lowercase())
        };
        let mut near = self.units.iter().filter(|unit| is_slip(name, unit.name)).filter(shares);
        let first = near.next()?;
        let size = |unit: &Unit| (unit.numerator, unit.denominator);
        near.all(|unit| size(unit) == size(first)).then(|| first.name.to_owned())
    }
}

/// Returns the unit of time that a word means.
fn spelled_out(word: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 13] = [
        ("picos", "ps"),
        ("psec", "ps"),
        ("nanos", "ns"),
        ("nsec", "ns"),
        ("micros", "us"),
        ("usec", "us"),
        ("millis", "ms"),
        ("msec", "ms"),
        ("sec", "s"),
        ("min", "min"),
        ("hour", "h"),
        ("hr", "h"),
        ("day", "d"),
    ];
    let word = word.to_ascii_lowercase();
    WORDS.iter().find(|(begins, _)| word.starts_with(begins)).map(|(_, unit)| *unit)
}

/// Writes `amount` in `unit` if twelve decimals (one picosecond in a second) suffice for the exact amount.
fn write_in(amount: u64, unit: &Unit) -> Option<String> {
    let (whole, mut rest) = (amount / unit.numerator, amount % unit.numerator);
    let mut text = whole.to_string();
    for decimal in 0..12 {
        if rest == 0 {
            text.push_str(unit.name);
            return Some(text);
        }
        if decimal == 0 {
            text.push('.');
        }
        // The remainder is below 2^50, so ten times that fits.
        rest *= 10;
        let _ = write!(text, "{}", rest / unit.numerator);
        rest %= unit.numerator;
    }
    (rest == 0).then(|| text + unit.name)
}

/// Non-negative decimal number: `digits / 10^decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
    overflow: bool,
}

enum Misfit {
    TooLarge,
    TooFine,
}

impl Decimal {
    /// Reads `12` or `1.5`; returns `None` for anything else.
    fn read(text: &str) -> Option<Decimal> {
        let (whole, fraction) = match text.split_once('.') {
            None => (text, ""),
            Some((_, "")) => return None,
            Some(parts) => parts,
        };
        if whole.is_empty() || fraction.contains('.') {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let mut digits: u128 = 0;
        let mut overflow = false;
        for c in whole.bytes().chain(fraction.bytes()) {
            let next = digits.checked_mul(10).and_then(|d| d.checked_add(u128::from(c - b'0')));
            overflow |= next.is_none();
            digits = next.unwrap_or(digits);
        }
        Some(Decimal { digits, decimals: fraction.len() as u32, overflow })
    }

    /// Returns the exact number of base units in `self` times `unit`.
    fn scaled(&self, unit: &Unit) -> Result<u64, Misfit> {
        // More decimals than u128 holds are finer than any base unit; more digits before the point are too large.
        if self.overflow {
            return Err(if self.decimals > 18 { Misfit::TooFine } else { Misfit::TooLarge });
        }
        let numerator = self.digits.checked_mul(u128::from(unit.numerator)).ok_or(Misfit::TooLarge)?;
        let power = 10u128.checked_pow(self.decimals);
        let denominator = power.and_then(|p| p.checked_mul(u128::from(unit.denominator)));
        let denominator = denominator.ok_or(Misfit::TooFine)?;
        if numerator % denominator != 0 {
            return Err(Misfit::TooFine);
        }
        u64::try_from(numerator / denominator).map_err(|_| Misfit::TooLarge)
    }
}
