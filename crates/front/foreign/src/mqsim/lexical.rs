//! Texts of settings as MQSim's parser reads them. `std::stoul` and its kin read a number and ignore the rest; a flag
//! is on unless it says FALSE; a list is split by `strtok`. Read from `src/exec/*_Parameter_Set.cpp` of commit 7ec40e3.

use crate::setting::{Kind, Setting};
use config::Diagnostic;

/// Text as MQSim reads it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Value in the form of its table.
    pub(super) text: String,
    /// Difference between value and text, if any.
    pub(super) odd: Option<String>,
}

/// Settings stored in 16 bits.
const SHORT: [&str; 2] = ["IO_Queue_Depth", "Queue_Fetch_Size"];
/// Settings stored in 8 bits, and read as an `int`.
const CHARS: [&str; 2] = ["Read_Percentage", "Percentage_of_Hot_Region"];
/// Settings read as an `int`: beyond 31 bits the parser fails.
const INTS: [&str; 10] = [
    "Seed",
    "Working_Set_Percentage",
    "Address_Alignment_Unit",
    "Average_Request_Size",
    "Variance_Request_Size",
    "Average_No_of_Reqs_in_Queue",
    "Bandwidth",
    "Total_Requests_To_Generate",
    "Relay_Count",
    "Percentage_To_Be_Executed",
];

/// Reads the text of an element, surrounding space included. A text that the parser refuses is returned unchanged, for
/// the table to refuse.
///
/// # Errors
/// The number does not fit an `int`.
pub(super) fn take(setting: &Setting, raw: &str) -> Result<Taken, Diagnostic> {
    let text = raw.trim();
    let as_it_is = || Taken { text: text.to_owned(), odd: None };
    Ok(match setting.kind {
        Kind::Whole(_, most) => whole(setting.name, text, most)?.unwrap_or_else(as_it_is),
        Kind::Real(..) => real(text).unwrap_or_else(as_it_is),
        Kind::Flag => flag(raw),
        Kind::Numbers => list(text).unwrap_or_else(as_it_is),
        Kind::Word(_) | Kind::Letters(_) | Kind::Text => as_it_is(),
    })
}

/// Width in bits of a whole number; times, whose limit needs more, have 64.
fn bits(name: &str, most: u64) -> u32 {
    match name {
        _ if SHORT.contains(&name) => 16,
        _ if CHARS.contains(&name) => 8,
        _ if most > u64::from(u32::MAX) => 64,
        _ => 32,
    }
}

/// Splits a text into a leading number and the rest.
fn number(text: &str) -> Option<(i128, &str)> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let value: i128 = rest[..end].parse().ok()?;
    // `stoull` reads at most 64 bits.
    (value <= i128::from(u64::MAX)).then_some((sign * value, &rest[end..]))
}

fn passed_over(read: &str, rest: &str) -> Option<String> {
    let is_zero = rest.strip_prefix('.').is_some_and(|digits| digits.bytes().all(|digit| digit == b'0'));
    (!rest.is_empty() && !is_zero).then(|| format!("MQSim reads {read} and ignores `{rest}`"))
}

fn whole(name: &str, text: &str, most: u64) -> Result<Option<Taken>, Diagnostic> {
    let Some((value, rest)) = number(text) else { return Ok(None) };
    let bits = bits(name, most);
    if (CHARS.contains(&name) || INTS.contains(&name)) && i32::try_from(value).is_err() {
        let what = format!("`{name}` is `{text}`, which MQSim refuses: it reads an `int`");
        return Err(Diagnostic::new(what).help("it holds numbers from -2147483648 to 2147483647"));
    }
    let kept = value.rem_euclid(1i128 << bits);
    let cut = (kept != value).then(|| format!("MQSim truncates {value} to {bits} bits: {kept}"));
    Ok(Some(Taken { text: kept.to_string(), odd: cut.or_else(|| passed_over(&kept.to_string(), rest)) }))
}

/// Reads a number like `std::stod`; hexadecimal numbers, infinities and other text are left to the table.
fn real(text: &str) -> Option<Taken> {
    let digits = |from: usize| {
        text[from..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| from + length)
    };
    let first = usize::from(text.starts_with(['+', '-']));
    let mut end = digits(first);
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if !text[first..end].contains(|c: char| c.is_ascii_digit()) || text[end..].starts_with(['x', 'X']) {
        return None;
    }
    if text[end..].starts_with(['e', 'E']) {
        let power = end + 1 + usize::from(text[end + 1..].starts_with(['+', '-']));
        if digits(power) > power {
            end = digits(power);
        }
    }
    let (read, rest) = text.split_at(end);
    let odd = (!rest.is_empty()).then(|| format!("MQSim reads {read} and ignores `{rest}`"));
    Some(Taken { text: read.trim_start_matches('+').to_owned(), odd })
}

fn flag(raw: &str) -> Taken {
    let odd = match raw {
        _ if raw.eq_ignore_ascii_case("false") => {
            return Taken { text: "false".to_owned(), odd: None };
        }
        _ if raw.trim().eq_ignore_ascii_case("true") => None,
        _ if raw.trim().eq_ignore_ascii_case("false") => {
            Some("MQSim includes the surrounding space in the word, which is then not FALSE: true".to_owned())
        }
        _ => Some("MQSim reads any word but FALSE as true".to_owned()),
    };
    Taken { text: "true".to_owned(), odd }
}

/// Reads numbers separated by one or more commas; as with `std::stoi`, each may be followed by other text.
fn list(text: &str) -> Option<Taken> {
    let (mut all, mut odd) = (Vec::new(), None);
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (value, rest) = number(part.trim())?;
        odd = odd.or_else(|| passed_over(&value.to_string(), rest));
        all.push(value.to_string());
    }
    (!all.is_empty()).then(|| Taken { text: all.join(","), odd })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{Class, setting};

    fn taken(name: &'static str, kind: Kind, text: &str) -> (String, String) {
        let taken = take(&setting(name, kind, "", Class::Carried, ""), text).unwrap();
        (taken.text, taken.odd.unwrap_or_default())
    }

    /// Results of `stoul`, `stoull`, `stoi` and casts to 16, 8 and 32 bits.
    #[test]
    fn whole_numbers_are_read_up_to_what_is_no_digit_and_cut() {
        let wide = Kind::Whole(0, u64::from(u32::MAX));
        for (name, kind, text, value, odd) in [
            ("Flash_Channel_Count", wide, "8", "8", ""),
            ("Flash_Channel_Count", wide, " 8.00\n", "8", ""),
            ("Flash_Channel_Count", wide, "+8", "8", ""),
            ("Flash_Channel_Count", wide, "8.75", "8", "ignores `.75`"),
            ("Data_Cache_Capacity", wide, "1e9", "1", "ignores `e9`"),
            ("Data_Cache_Capacity", wide, "256MB", "256", "ignores `MB`"),
            ("Data_Cache_Capacity", wide, "4294967296", "0", "truncates 4294967296 to 32 bits: 0"),
            ("Data_Cache_Capacity", wide, "-1", "4294967295", "to 32 bits: 4294967295"),
            ("IO_Queue_Depth", Kind::Whole(1, 65_535), "70000", "4464", "to 16 bits: 4464"),
            ("Read_Percentage", Kind::Whole(0, 100), "300", "44", "to 8 bits: 44"),
            ("Seed", wide, "-5", "4294967291", "to 32 bits"),
            ("Block_Erase_Latency", Kind::Whole(0, 3_600_000_000_000), "8589934592", "8589934592", ""),
        ] {
            let (found, said) = taken(name, kind, text);
            assert_eq!(found, value, "{name} {text}");
            assert_eq!(said.is_empty(), odd.is_empty(), "{name} {text}: {said}");
            assert!(said.contains(odd), "{name} {text}: {said}");
        }
        // No number, and more than 64 bits.
        for text in ["", "many", "18446744073709551616"] {
            assert_eq!(taken("Flash_Channel_Count", wide, text).0, text);
        }
        let beyond = setting("Bandwidth", wide, "", Class::Carried, "");
        assert!(take(&beyond, "2147483648").unwrap_err().to_string().contains("`int`"));
        assert_eq!(take(&beyond, "2147483647").unwrap().text, "2147483647");
    }

    #[test]
    fn real_numbers_are_read_as_far_as_they_go() {
        for (text, value, odd) in [
            ("0.05", "0.05", ""),
            (".05", ".05", ""),
            ("5.", "5.", ""),
            ("5e-2", "5e-2", ""),
            ("0,05", "0", "`,05`"),
            ("5%", "5", "`%`"),
            ("0.05f", "0.05", "`f`"),
            ("1e", "1", "`e`"),
            ("0x1", "0x1", ""),
            ("inf", "inf", ""),
        ] {
            let (found, said) = taken("GC_Exec_Threshold", Kind::Real(0.0, 1.0), text);
            assert_eq!((found.as_str(), said.is_empty()), (value, odd.is_empty()), "{text}: {said}");
            assert!(said.contains(odd), "{text}: {said}");
        }
    }

    #[test]
    fn a_flag_is_on_unless_it_says_false() {
        for (text, value, is_odd) in [
            ("false", "false", false),
            ("FALSE", "false", false),
            ("True", "true", false),
            (" true ", "true", false),
            ("no", "true", true),
            ("0", "true", true),
            ("flase", "true", true),
            ("", "true", true),
            ("\nfalse\n", "true", true),
        ] {
            let (found, said) = taken("Ideal_Mapping_Table", Kind::Flag, text);
            assert_eq!((found.as_str(), !said.is_empty()), (value, is_odd), "{text:?}: {said}");
        }
    }

    #[test]
    fn lists_may_have_commas_too_many() {
        for (text, value, odd) in [
            ("0,1,2", "0,1,2", ""),
            ("0,", "0", ""),
            (",0,,1,", "0,1", ""),
            (" 0, 1 ,\n2", "0,1,2", ""),
            ("0-7", "0", "`-7`"),
            ("0 1", "0", "` 1`"),
            (",", ",", ""),
            ("a", "a", ""),
        ] {
            let (found, said) = taken("Chip_IDs", Kind::Numbers, text);
            assert_eq!((found.as_str(), said.is_empty()), (value, odd.is_empty()), "{text}: {said}");
            assert!(said.contains(odd), "{text}: {said}");
        }
    }
}
