//! `random_distribution=` and `bssplit=`: lists of shares.

use config::Diagnostic;

use super::spec::Distribution;
use super::value::Value;
use crate::synth::{Each, Popularity, Share, Zipf};

type Parsed<T> = Result<T, Diagnostic>;

/// Limits of fio on the length of the lists.
const MOST_SIZES: usize = 64;
const MOST_ZONES: usize = 256;

/// `random_distribution=kind:parameter[:center]` or `zoned[_abs]:share/size:...`.
pub(super) fn parse_distribution(v: Value) -> Parsed<Distribution> {
    let text = v.text()?;
    let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
    let kinds = ["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"];
    if let Some((popularity, center)) = parse_popularity(v)? {
        return Ok(Distribution::Popular { popularity, center });
    }
    match kind {
        "random" if rest.is_none() => Ok(Distribution::Random),
        "random" => Err(Diagnostic::new("`random` takes no parameter")),
        "zoned" => {
            let mut zones: Each<Vec<(u8, u8)>> = Default::default();
            zone_list(v, rest)?.each(&mut zones, parse_zones)?;
            Ok(Distribution::Zoned(zones))
        }
        "zoned_abs" => {
            let mut zones: Each<Vec<(u8, u64)>> = Default::default();
            zone_list(v, rest)?.each(&mut zones, parse_absolute_zones)?;
            Ok(Distribution::ZonedAbs(zones))
        }
        other => Err(Diagnostic::new(format!("unknown value `{other}`")).allowed(other, kinds)),
    }
}

/// Reads `zipf[:theta]`, `pareto[:h]` or `normal[:deviation]`, each with an optional `[:center]`; none for other
/// kinds.
pub(super) fn parse_popularity(v: Value) -> Parsed<Option<(Popularity, Option<f64>)>> {
    let text = v.text()?;
    let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
    let numbers = |default| parameters(v, rest, default);
    Ok(Some(match kind {
        "zipf" => {
            let (theta, center) = numbers(1.1)?;
            if !(theta > 0.0 && theta <= Zipf::MAX_THETA) {
                return Err(Diagnostic::new(format!("zipf theta {theta} is out of range: above 0, to 50")));
            }
            (Popularity::Zipf { theta }, center)
        }
        "pareto" => {
            let (h, center) = numbers(0.2)?;
            if !(h > 0.0 && h < 1.0) {
                return Err(Diagnostic::new(format!("pareto power {h} is out of range: above 0, below 1")));
            }
            (Popularity::Pareto { h }, center)
        }
        "normal" => {
            let (deviation, center) = numbers(0.0)?;
            if !(0.0..100.0).contains(&deviation) {
                let what = format!("normal deviation {deviation} is out of range: 0 or more, below 100");
                return Err(Diagnostic::new(what));
            }
            (Popularity::Normal { deviation }, center)
        }
        _ => return Ok(None),
    }))
}

fn zone_list<'a>(v: Value<'a>, rest: Option<&'a str>) -> Parsed<Value<'a>> {
    let help = "write PERCENT/SIZE for each zone, zones separated by colons: zoned:60/10:40/90";
    rest.map(|rest| v.with(rest)).ok_or_else(|| Diagnostic::new("zones are missing").help(help))
}

/// `parameter[:center]`.
fn parameters(v: Value, rest: Option<&str>, default: f64) -> Parsed<(f64, Option<f64>)> {
    let Some(rest) = rest else { return Ok((default, None)) };
    let (parameter, center) = rest.split_once(':').map_or((rest, None), |(p, c)| (p, Some(c)));
    let real = |text: &str| Value { text: Some(text), kb_base: v.kb_base }.real();
    let center = center.map(real).transpose()?;
    match center {
        Some(c) if !(0.0..=1.0).contains(&c) => {
            Err(Diagnostic::new(format!("center {c} is out of range: 0 to 1")))
        }
        _ => Ok((real(parameter)?, center)),
    }
}

/// Reads `a/b:c/d`; a part without a slash, or with nothing after it, has no second value.
fn pairs<'a>(v: Value<'a>, most: usize) -> Parsed<Vec<(&'a str, Option<&'a str>)>> {
    let pair = |part: &'a str| match part.split_once('/') {
        Some((first, "")) => (first, None),
        Some((first, second)) => (first, Some(second)),
        None => (part, None),
    };
    let pairs: Vec<_> = v.text()?.split(':').filter(|part| !part.is_empty()).map(pair).collect();
    if pairs.is_empty() || pairs.len() > most {
        return Err(Diagnostic::new(format!("{} entries; expected 1 to {most}", pairs.len())));
    }
    Ok(pairs)
}

/// Splits what is left of 100 percent evenly over the blank percentages.
fn fill_percent(percents: &[Option<u64>]) -> Parsed<Vec<u8>> {
    let given: u64 = percents.iter().flatten().sum();
    let blanks = percents.iter().filter(|p| p.is_none()).count() as u64;
    if given > 100 || (given < 100 && blanks == 0) {
        return Err(Diagnostic::new(format!("the percentages add up to {given}, not 100")));
    }
    let rest = 100 - given;
    let mut blank = 0;
    let mut fill = |p: &Option<u64>| match p {
        Some(p) => *p as u8,
        None => {
            // fio drops the remainder of the division; here the first blanks get one percent more each.
            blank += 1;
            (rest / blanks + u64::from(blank <= rest % blanks)) as u8
        }
    };
    Ok(percents.iter().map(&mut fill).collect())
}

fn percent(v: Value, text: Option<&str>) -> Parsed<Option<u64>> {
    text.map(|text| Value { text: Some(text), kb_base: v.kb_base }.number(0, 100)).transpose()
}

/// Reads one direction of `bssplit=`: the sizes that occur, with percentages.
pub(super) fn parse_bssplit(v: Value) -> Parsed<Vec<Share>> {
    let pairs = pairs(v, MOST_SIZES)?;
    let percents = pairs.iter().map(|(_, second)| percent(v, *second)).collect::<Parsed<Vec<_>>>()?;
    let weights = fill_percent(&percents)?;
    let share = |((size, _), weight): (&(&str, _), u8)| {
        let bytes = Value { text: Some(size), kb_base: v.kb_base }.some_bytes()?;
        Ok(Share { bytes, weight: weight as u32 })
    };
    let shares = pairs.iter().zip(weights).map(share).collect::<Parsed<Vec<Share>>>()?;
    Ok(shares.into_iter().filter(|share| share.weight > 0).collect())
}

/// Reads one direction of `zoned:`: percent of the requests, percent of the region.
fn parse_zones(v: Value) -> Parsed<Vec<(u8, u8)>> {
    let pairs = pairs(v, MOST_ZONES)?;
    let shares = pairs.iter().map(|(first, _)| percent(v, Some(first))).collect::<Parsed<Vec<_>>>()?;
    let sizes = pairs.iter().map(|(_, second)| percent(v, *second)).collect::<Parsed<Vec<_>>>()?;
    let all_given = sizes.iter().all(Option::is_some);
    let total: u64 = sizes.iter().flatten().sum();
    // Zones may leave out the end of the region.
    let sizes = if all_given && total < 100 {
        sizes.iter().flatten().map(|&size| size as u8).collect()
    } else {
        fill_percent(&sizes)?
    };
    Ok(fill_percent(&shares)?.into_iter().zip(sizes).collect())
}

/// Reads one direction of `zoned_abs:`: percent of the requests, bytes.
fn parse_absolute_zones(v: Value) -> Parsed<Vec<(u8, u64)>> {
    let pairs = pairs(v, MOST_ZONES)?;
    let shares = pairs.iter().map(|(first, _)| percent(v, Some(first))).collect::<Parsed<Vec<_>>>()?;
    let bytes = |(first, second): &(&str, Option<&str>)| match second {
        Some(second) => Value { text: Some(second), kb_base: v.kb_base }.some_bytes(),
        None => Err(Diagnostic::new(format!("zone `{first}` has no size"))),
    };
    let sizes = pairs.iter().map(bytes).collect::<Parsed<Vec<_>>>()?;
    Ok(fill_percent(&shares)?.into_iter().zip(sizes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        Value { text: Some(text), kb_base: 1024 }
    }

    #[test]
    fn the_splits_of_the_howto() {
        // fio's HOWTO, `bssplit`: 50 % 4k, and 25 % each of 1k and 32k.
        let shares = parse_bssplit(value("4k/50:1k/:32k/")).unwrap();
        let pairs: Vec<(u64, u32)> = shares.iter().map(|s| (s.bytes, s.weight)).collect();
        assert_eq!(pairs, [(4096, 50), (1024, 25), (32_768, 25)]);
        for wrong in ["4k/60:8k/60", "4k/60:8k/30", "4k/x", "", ":", "0/100"] {
            assert!(parse_bssplit(value(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_zones_of_the_howto() {
        let zones = parse_distribution(value("zoned:60/10:30/20:8/30:2/40")).unwrap();
        assert_eq!(
            zones,
            Distribution::Zoned(std::array::from_fn(|_| vec![(60, 10), (30, 20), (8, 30), (2, 40)]))
        );
        let zones = parse_distribution(value("zoned_abs:60/20G:30/100G:10/500g,100/1m")).unwrap();
        let g = 1u64 << 30;
        let reads = vec![(60, 20 * g), (30, 100 * g), (10, 500 * g)];
        assert_eq!(zones, Distribution::ZonedAbs([reads, vec![(100, 1 << 20)], vec![(100, 1 << 20)]]));
        for wrong in
            ["zoned", "zoned:50/10", "zoned:50/60:50/60", "zoned_abs:100", "zoned:", "zipf:0", "pareto:1"]
        {
            assert!(parse_distribution(value(wrong)).is_err(), "{wrong}");
        }
    }
}
