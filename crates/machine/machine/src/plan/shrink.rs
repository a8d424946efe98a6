//! A part of a drive that ages like the whole: fewer blocks per plane, then fewer pages per block. `docs/shrink.md` has the rule
//! and its measured errors.

use super::Plan;
use crate::result::told::{said, scaled};
use config::Diagnostic;
use serde_json::Value;

/// Spare blocks per plane that a part keeps: *chosen*, below it write amplification is off by more than 10 %.
const SPARE_BLOCKS: f64 = 10.0;
/// Fewest pages per block without a warning: *chosen*, write amplification is then 5 % too low.
const PAGES: u64 = 96;
/// Largest divisor.
const MOST: u64 = 4096;

/// Overrides that shrink one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrunk {
    /// Table of the drive.
    pub drive: String,
    /// Overrides, `key.path=value`.
    pub set: Vec<String>,
    /// Expected errors, for the reader.
    pub note: Option<String>,
}

/// The overrides that leave one part in `by` of each drive of a plan's machine, a power of two.
///
/// # Errors
/// An unusable system or divisor, a machine without a drive, or a drive too small for the divisor.
pub fn shrink(plan: &Plan, by: u64) -> Result<Vec<Shrunk>, Diagnostic> {
    if !by.is_power_of_two() || by > MOST {
        return Err(Diagnostic::new(format!("a drive cannot be divided by {by}"))
            .help(format!("allowed: powers of two up to {MOST}, as in `--scale 1/16`")));
    }
    let spec = plan.load()?.spec.to_json();
    let tables = spec::drives(&plan.system, plan.text.as_deref(), &plan.set)?;
    if tables.is_empty() {
        return Err(Diagnostic::new(format!("`{}` has no drive to scale", plan.system))
            .help("leave out --scale, or choose a system with a drive, such as `d16`"));
    }
    tables.iter().map(|table| of_drive(table, drive(&spec, table)?, by)).collect()
}

/// The resolved table of a drive.
fn drive<'s>(spec: &'s Value, table: &str) -> Result<&'s Value, Diagnostic> {
    let begins = format!("{table}.");
    let named =
        || spec.as_object()?.iter().find(|(name, _)| name.starts_with(&begins)).map(|(_, value)| value);
    spec.get(table).or_else(named).ok_or_else(|| Diagnostic::new(format!("the spec has no table `{table}`")))
}

fn of_drive(table: &str, drive: &Value, by: u64) -> Result<Shrunk, Diagnostic> {
    let number = |path: &str| drive.pointer(path).and_then(Value::as_f64);
    let whole = |path: &str| number(path).map(|value| value as u64);
    let lacks = || Diagnostic::new(format!("the drive `{table}` has no page map to shrink"));
    let (blocks, pages) =
        (whole("/geometry/blocks").ok_or_else(lacks)?, whole("/geometry/pages").ok_or_else(lacks)?);
    let share = number("/ftl/over_provisioning").ok_or_else(lacks)?;
    let thresholds = ["start", "stop", "hard"].map(|name| number(&format!("/ftl/gc/{name}")));
    let [Some(start), Some(stop), Some(hard)] = thresholds else { return Err(lacks()) };
    // Blocks first, as far as spare ones are left; the rest by pages.
    let mut by_blocks = by;
    while by_blocks > 1 && share * blocks as f64 / (by_blocks as f64) < SPARE_BLOCKS {
        by_blocks /= 2;
    }
    let by_pages = by / by_blocks;
    let fewer = (blocks as f64 / by_blocks as f64).round();
    let mut set = Vec::new();
    let mut add = |key: &str, value: String| set.push(format!("{table}.{key}={value}"));
    if by_blocks > 1 {
        let nearest = |value: f64| (value / by_blocks as f64).round();
        let hard_now = nearest(hard).max(1.0);
        let start_now = nearest(start).max(hard_now + 1.0);
        let stop_now = nearest(stop).max(start_now + 1.0);
        // Blocks held free: the middle of the thresholds, and two open blocks, each half full.
        let held = |start: f64, stop: f64| (start + stop) / 2.0 + 1.0;
        let (whole, part) = (held(start, stop), held(start_now, stop_now));
        if part >= fewer || whole >= blocks as f64 {
            let what = format!("`{table}` has {blocks} blocks per plane: too few for 1/{by}");
            return Err(Diagnostic::new(what).help("choose a larger part, such as 1/4"));
        }
        let share = 1.0 - (1.0 - share) * blocks as f64 / (blocks as f64 - whole) * (fewer - part) / fewer;
        add("geometry.blocks", format!("{fewer}"));
        for (name, value) in [("hard", hard_now), ("start", start_now), ("stop", stop_now)] {
            add(&format!("ftl.gc.{name}"), format!("{value}"));
        }
        add("ftl.over_provisioning", format!("{:.3}%", 100.0 * share));
        for name in ["fixed", "foreground", "keep"] {
            if let Some(value) = drive.pointer(&format!("/ftl/slc_cache/{name}")) {
                scaled_into(&mut add, &format!("ftl.slc_cache.{name}"), value, 1.0 / by_blocks as f64);
            }
        }
    }
    let mut kept = pages;
    if by_pages > 1 {
        // A word line keeps its page types.
        let word_line = match drive.pointer("/cell/programming").and_then(Value::as_str) {
            Some("page") | None => 1,
            Some(_) => whole("/cell/bits").unwrap_or(1),
        };
        let lines = (pages as f64 / by_pages as f64 / word_line as f64).round().max(1.0);
        kept = lines as u64 * word_line;
        add("geometry.pages", kept.to_string());
        let factor = kept as f64 / pages as f64;
        for key in ["cell.erase", "energy.erase"] {
            if let Some(value) = drive.pointer(&format!("/{}", key.replace('.', "/"))) {
                scaled_into(&mut add, key, value, factor);
            }
        }
        if let Some(value) = drive.pointer("/cell/errors/reads") {
            scaled_into(&mut add, "cell.errors.reads", value, by_pages as f64);
        }
    }
    if let Some(value) = drive.pointer("/ftl/mapping/demand/capacity") {
        scaled_into(&mut add, "ftl.mapping.demand.capacity", value, 1.0 / by as f64);
    }
    let note = (kept < PAGES.min(pages)).then(|| {
        format!(
            "{kept} pages per block: write amplification will be about {:.0} % too low",
            600.0 / kept as f64
        )
    });
    Ok(Shrunk { drive: table.to_owned(), set, note })
}

/// Adds an override with a scaled value, unless there is nothing to scale.
fn scaled_into(add: &mut impl FnMut(&str, String), key: &str, value: &Value, factor: f64) {
    if let Some(to) = scaled(value, factor, |_| true).filter(|to| *to != said(value)) {
        add(key, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(system: &str, by: u64) -> Vec<String> {
        shrink(&Plan::new(system, ""), by).unwrap().swap_remove(0).set
    }

    /// The rows of the page's table.
    #[test]
    fn drives_shrink_as_the_page_says() {
        for (system, by, expected) in [
            ("ssd256", 16, &["blocks=186", "start=2", "stop=3", "hard=1", "over_provisioning=8.442%"][..]),
            ("d16", 4, &["blocks=128", "start=6", "stop=7", "hard=1", "over_provisioning=12.634%"]),
            ("pm9a3", 16, &["blocks=85", "start=2", "stop=3", "hard=1", "over_provisioning=15.691%"]),
            (
                "p5316",
                128,
                &["blocks=85", "pages=192", "erase=0.625ms", "start=2", "over_provisioning=15.629%"],
            ),
        ] {
            let set = of(system, by);
            for end in expected {
                assert!(set.iter().any(|one| one.ends_with(end)), "{system}: {end} in {set:?}");
            }
        }
    }

    #[test]
    fn a_shrunk_drive_is_a_drive() {
        for (system, by) in [("ssd256", 64), ("d16", 16), ("pm9a3x4", 32), ("980-pro", 16)] {
            let mut plan = Plan::new(system, "");
            let all = shrink(&plan, by).unwrap();
            plan.set.extend(all.into_iter().flat_map(|one| one.set));
            plan.load().unwrap_or_else(|fault| panic!("{system}: {fault}"));
        }
    }

    #[test]
    fn a_divisor_is_a_power_of_two_and_needs_a_drive() {
        let fault = |system: &str, by| shrink(&Plan::new(system, ""), by).unwrap_err().to_string();
        assert!(fault("d16", 3).contains("powers of two"));
        assert!(fault("ideal", 4).contains("no drive to scale"));
    }
}
