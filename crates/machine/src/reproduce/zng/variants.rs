//! Systems and their variants that the paper's figures compare.

use super::super::study::Point;

/// Redirection of dirty pages into the shared cache, off: no share is above all.
const NO_REDIRECTION: [&str; 2] = ["memory.direct.redirect.threshold=100%", "l2.parked=0B"];

fn with(point: Point, sets: &[&str]) -> Point {
    sets.iter().fold(point, |point, set| point.set(set))
}

/// Fig. 12, in its order: SRAM, STT-MRAM, dynamic prefetch, redirection. All have ZnG's registers.
pub(super) fn read_designs(workload: &str) -> [Point; 4] {
    let zng = || with(Point::new("zng", workload), &NO_REDIRECTION);
    [
        with(zng(), &["l2.sets=1024", "l2.write_latency=1", "l2.prefetch=none"]),
        with(zng(), &["l2.prefetch=none"]),
        zng(),
        Point::new("zng", workload),
    ]
}

/// Fig. 13, in its order: eight private registers a plane, registers grouped by the network in flash, redirection.
pub(super) fn write_designs(workload: &str) -> [Point; 3] {
    let zng = || with(Point::new("zng", workload), &NO_REDIRECTION);
    [zng().set("memory.direct.registers.network=private"), zng(), Point::new("zng", workload)]
}

/// Fig. 14, in its order: SWnet, HW-FCnet, HW-NiF.
pub(super) fn networks(workload: &str) -> [Point; 3] {
    let zng = |network: &str| {
        Point::new("zng", workload).set(&format!("memory.direct.registers.network={network}"))
    };
    [zng("swnet"), zng("fcnet"), Point::new("zng", workload)]
}

/// Fig. 16b, in its order, with the names of its legend.
pub(super) fn prefetchers(workload: &str) -> [(&'static str, Point); 5] {
    let zng = |prefetch: &str| Point::new("zng", workload).set(&format!("l2.prefetch={prefetch}"));
    [
        ("nopref", zng("none")),
        ("1kb", zng("{ fixed = { chunk = \"1KiB\" } }")),
        ("4kb", zng("{ fixed = { chunk = \"4KiB\" } }")),
        ("predict-4kb", zng("{ predicted = { entries = 512, cutoff = 12, chunk = \"4KiB\" } }")),
        ("dyn-pref", Point::new("zng", workload)),
    ]
}

/// Fig. 16a: thresholds of the access monitor, high and low.
pub(super) fn thresholds(workload: &str) -> Vec<((&'static str, &'static str), Point)> {
    let mut all = Vec::new();
    for high in ["10%", "30%", "50%", "70%"] {
        for low in ["1%", "5%", "10%"] {
            let point = Point::new("zng", workload)
                .set(&format!("l2.prefetch.dynamic.high={high}"))
                .set(&format!("l2.prefetch.dynamic.low={low}"));
            all.push(((high, low), point));
        }
    }
    all
}
