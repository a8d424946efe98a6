//! Section 4: schedulers of blocks against orders of channel, way, die and plane.

use super::super::expected::Figure;
use super::super::mean::Metric;
use super::super::study::{Entry, Found, Point};
use super::{MapOf, PROGRAMS, Suite, end, iops, response};
use config::Diagnostic;
use machine::result::Document;

const SCHEDULERS: [&str; 2] = ["round_robin", "large_chunk"];
const ORDERS: [&str; 3] = ["CWDP", "CDWP", "WCDP"];

/// A scheduler and an order, static: the reading that counts (`papers/mqms/README.md`).
fn combination(suite: &Suite, program: &str, scheduler: &str, order: &str, map: MapOf) -> Point {
    let workload =
        PROGRAMS.iter().find(|(name, _)| *name == program).map_or(program, |(_, workload)| workload);
    let point = suite.point("mqms", workload);
    let point = match map {
        MapOf::Pages => point.set("flash.ftl.map_unit=16KiB"),
        MapOf::Sectors => point,
    };
    point
        .set("flash.ftl.allocation=striped")
        .set(&format!("flash.ftl.stripe={order}"))
        .set(&format!("gpu.blocks={scheduler}"))
}

/// Combinations compared by a figure: the better and the worse one.
struct Pair {
    program: &'static str,
    over: (&'static str, &'static str),
    under: (&'static str, &'static str),
}

const WORST: (&str, &str) = ("round_robin", "CDWP");

/// The row of a figure of section 4.
pub(super) fn entry(figure: &Figure, suite: &Suite, id: &str, map: MapOf) -> Option<Entry> {
    let rise = |over: f64, under: f64| 100.0 * (over / under - 1.0);
    let fall = |over: f64, under: f64| 100.0 * (1.0 - over / under);
    Some(match id {
        "backprop_iops" => {
            let pair = Pair { program: "backprop", over: ("large_chunk", "WCDP"), under: WORST };
            compared(figure, suite, &pair, (iops, rise), map)
        }
        "backprop_response" => {
            let pair = Pair { program: "backprop", over: ("large_chunk", "CWDP"), under: WORST };
            compared(figure, suite, &pair, (response, fall), map)
        }
        "lavamd_end_time" => {
            let pair = Pair { program: "lavamd", over: WORST, under: ("large_chunk", "WCDP") };
            compared(figure, suite, &pair, (end, fall), map)
        }
        "hotspot_iops_spread" => spread(figure, suite, map),
        _ => return None,
    })
}

fn compared(
    figure: &Figure,
    suite: &Suite,
    pair: &Pair,
    (metric, of): (Metric, fn(f64, f64) -> f64),
    map: MapOf,
) -> Entry {
    let point = |(scheduler, order): (&str, &str)| combination(suite, pair.program, scheduler, order, map);
    let (over, under) = (point(pair.over), point(pair.under));
    let all = grid(suite, pair.program, map);
    let points = all.iter().map(|(_, point)| point.clone()).collect();
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, points, move |found| {
        let value = of(metric(found.get(&over)?)?, metric(found.get(&under)?)?);
        figure.row(value, described(found, &all, metric)?)
    })
}

/// The best of all combinations against the worst.
fn spread(figure: &Figure, suite: &Suite, map: MapOf) -> Entry {
    let all = grid(suite, "hotspot", map);
    let points = all.iter().map(|(_, point)| point.clone()).collect();
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, points, move |found| {
        let values =
            all.iter().map(|(_, point)| iops(found.get(point)?)).collect::<Result<Vec<_>, Diagnostic>>()?;
        let (most, least) = (
            values.iter().copied().fold(f64::MIN, f64::max),
            values.iter().copied().fold(f64::MAX, f64::min),
        );
        figure.row(100.0 * (most / least - 1.0), described(found, &all, iops)?)
    })
}

/// Every combination, with its name.
fn grid(suite: &Suite, program: &str, map: MapOf) -> Vec<(String, Point)> {
    let name = |scheduler: &str, order: &str| format!("{scheduler}+{order}");
    let row = |scheduler: &'static str| {
        ORDERS.map(|order| (name(scheduler, order), combination(suite, program, scheduler, order, map)))
    };
    SCHEDULERS.into_iter().flat_map(row).collect()
}

/// The metric of every combination over that of the first; then commands and end time, without which commands a second
/// mislead.
fn described(
    found: &Found,
    all: &[(String, Point)],
    metric: fn(&Document) -> Result<f64, Diagnostic>,
) -> Result<String, Diagnostic> {
    let first = metric(found.get(&all[0].1)?)?;
    let each = all.iter().map(|(name, point)| {
        let document = found.get(point)?;
        let (ratio, commands) = (metric(document)? / first, document.io.kinds.all.requests);
        Ok(format!("{name} {ratio:.3} ({commands} commands, end {:.2} ms)", end(document)? / 1e6))
    });
    Ok(format!("static orders; {}", each.collect::<Result<Vec<_>, Diagnostic>>()?.join(", ")))
}
