//! Limits of a spec that its parts do not know: what the simulated clock, the memory of this program and the meaning of
//! zero allow.

use config::units::{Bandwidth, Duration, TransferRate};
use config::{Diagnostic, Resolved};
use kernel::Time;

/// The longest single duration. The clock ends at 213 days; everything that a spec names happens many times in a run.
const LONGEST: Time = Time::from_s(3_600);
/// The slowest link or memory, bytes a second: 1 GiB, the largest request, still moves within the clock.
const SLOWEST: u64 = 1_000_000;
/// The slowest channel, transfers a second.
const SLOWEST_CHANNEL: u64 = 1_000_000;

/// Whole numbers that have other bounds than their type. A least of zero leaves zero to the part, which says why not.
const COUNTS: &[(&str, u64, u64)] = &[
    ("flash.geometry.channels", 0, 65_536),
    ("flash.geometry.ways", 0, 65_536),
    ("flash.geometry.dies", 0, 65_536),
    ("flash.host.controller.cores", 0, 65_536),
    ("flash.host.nvme.arbitration.round_robin.burst", 1, u32::MAX as u64),
    ("flash.host.nvme.arbitration.weighted.burst", 1, u32::MAX as u64),
    ("flash.host.nvme.arbitration.weighted.high", 1, u32::MAX as u64),
    ("flash.host.nvme.arbitration.weighted.medium", 1, u32::MAX as u64),
    ("flash.host.nvme.arbitration.weighted.low", 1, u32::MAX as u64),
    ("flash.ftl.allocation.least_queued.look", 1, u32::MAX as u64),
    ("flash.ftl.gc.victim.d_choices.d", 1, u32::MAX as u64),
    ("flash.ftl.gc.victim.windowed_greedy.window", 1, u32::MAX as u64),
    ("flash.ftl.wear.static_gap", 1, u32::MAX as u64),
    ("flash.buffer.eviction.cflru.window", 1, u32::MAX as u64),
    ("flash.buffer.admission.second_touch.ghosts", 1, 1 << 28),
];

/// Products that memory must hold a record for each of.
const RECORDS: &[(&[&str], u64, &str)] = &[
    (&["channels", "ways", "dies"], 1 << 16, "dies"),
    (&["channels", "ways", "dies", "planes", "blocks"], 1 << 28, "blocks"),
];

/// Refuses values that cannot be simulated.
///
/// # Errors
/// Every value that lies beyond a limit, with the limit.
pub(crate) fn check(resolved: &Resolved) -> Result<(), Diagnostic> {
    let table = resolved.table();
    let mut faults = Vec::new();
    for param in crate::catalogue::params() {
        let Some(value) = find(&table, &param.key) else { continue };
        let texts = match value {
            toml::Value::Array(items) => items.iter().filter_map(toml::Value::as_str).collect(),
            one => one.as_str().map_or(Vec::new(), |text| vec![text]),
        };
        let kind = param.kind.trim_start_matches("array of ");
        let refused = texts.into_iter().find_map(|text| beyond(kind, text));
        faults.extend(refused.map(|what| resolved.diagnose(&param.key, what)));
    }
    for (key, least, most) in COUNTS {
        let count = find(&table, key).and_then(toml::Value::as_integer);
        let is_beyond = |n: i64| u64::try_from(n).map_or(true, |n| !(*least..=*most).contains(&n));
        if let Some(n) = count.filter(|n| is_beyond(*n)) {
            faults.push(
                resolved
                    .diagnose(key, format!("{n} is out of range; allowed are {} to {most}", least.max(&1))),
            );
        }
    }
    // The product of numbers that are out of range says nothing new.
    if faults.is_empty() {
        faults.extend(RECORDS.iter().filter_map(|(keys, most, what)| {
            let of = |key: &&str| find(&table, &format!("flash.geometry.{key}"))?.as_integer();
            let product =
                keys.iter().filter_map(of).fold(1_u128, |n, x| n.saturating_mul(x.unsigned_abs().into()));
            let said = format!("{product} {what} in all; at most {most} can be simulated");
            (product > u128::from(*most)).then(|| resolved.diagnose("flash.geometry", said))
        }));
    }
    let mut faults = faults.into_iter();
    match faults.next() {
        Some(first) => Err(first.also(faults)),
        None => Ok(()),
    }
}

fn find<'t>(table: &'t toml::Table, key: &str) -> Option<&'t toml::Value> {
    let mut path = key.split('.');
    let first = table.get(path.next()?)?;
    path.try_fold(first, |value, name| value.get(name))
}

/// What is wrong with a quantity of a kind. What is no quantity has been refused before.
fn beyond(kind: &str, text: &str) -> Option<String> {
    let too_slow =
        |rate: &str, least: &str| Some(format!("{rate} is too slow to simulate; {least} is the least"));
    match kind {
        "duration" => {
            let duration = text.parse::<Duration>().ok()?;
            let what =
                format!("{duration} is too long to simulate: the clock ends at 213 days; 1h is the most");
            (duration.time() > LONGEST).then_some(what)
        }
        "bandwidth" => {
            let rate = text.parse::<Bandwidth>().ok().filter(|rate| rate.bytes_per_s() < SLOWEST)?;
            too_slow(&rate.to_string(), "1MB/s")
        }
        "transfer rate" => {
            let rate = text.parse::<TransferRate>().ok().filter(|rate| rate.per_s() < SLOWEST_CHANNEL)?;
            too_slow(&rate.to_string(), "1MT/s")
        }
        _ => None,
    }
}
