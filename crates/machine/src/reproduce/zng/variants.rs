//! Systems and their variants that the paper's figures compare.

use super::super::study::Point;
use super::suite::Suite;

/// Redirection of dirty pages into the shared cache, off: no share is above all.
const NO_REDIRECTION: [&str; 2] = ["memory.direct.redirect.threshold=100%", "l2.parked=0B"];

fn with(point: Point, sets: &[&str]) -> Point {
    sets.iter().fold(point, |point, set| point.set(set))
}

/// Fig. 12, in its order: SRAM, STT-MRAM, dynamic prefetch, redirection. All have ZnG's registers.
pub(super) fn read_designs(suite: &Suite, pair: &str) -> [Point; 4] {
    let zng = || with(suite.point("zng", pair, 1, 1), &NO_REDIRECTION);
    [
        with(zng(), &["l2.write_latency=1", "l2.prefetch=none"])
            .set(&format!("l2.sets={}", suite.sram_sets())),
        with(zng(), &["l2.prefetch=none"]),
        zng(),
        suite.point("zng", pair, 1, 1),
    ]
}

/// Fig. 13, in its order: eight private registers a plane, registers grouped by the network in flash, redirection.
pub(super) fn write_designs(suite: &Suite, pair: &str) -> [Point; 3] {
    let zng = || with(suite.point("zng", pair, 1, 1), &NO_REDIRECTION);
    [zng().set("memory.direct.registers.network=private"), zng(), suite.point("zng", pair, 1, 1)]
}

/// Fig. 14, in its order: SWnet, HW-FCnet, HW-NiF.
pub(super) fn networks(suite: &Suite, pair: &str) -> [Point; 3] {
    let zng = |network: &str| {
        suite.point("zng", pair, 1, 1).set(&format!("memory.direct.registers.network={network}"))
    };
    [zng("swnet"), zng("fcnet"), suite.point("zng", pair, 1, 1)]
}

/// Fig. 16b, in its order, with the names of its legend.
pub(super) fn prefetchers(suite: &Suite, pair: &str) -> [(&'static str, Point); 5] {
    let zng = |prefetch: &str| suite.point("zng", pair, 1, 1).set(&format!("l2.prefetch={prefetch}"));
    [
        ("nopref", zng("none")),
        ("1kb", zng("{ fixed = { chunk = \"1KiB\" } }")),
        ("4kb", zng("{ fixed = { chunk = \"4KiB\" } }")),
        ("predict-4kb", zng("{ predicted = { entries = 512, cutoff = 12, chunk = \"4KiB\" } }")),
        ("dyn-pref", suite.point("zng", pair, 1, 1)),
    ]
}

/// Fig. 16a: thresholds of the access monitor, high and low.
pub(super) fn thresholds(suite: &Suite, pair: &str) -> Vec<((&'static str, &'static str), Point)> {
    let mut all = Vec::new();
    for high in ["10%", "30%", "50%", "70%"] {
        for low in ["1%", "5%", "10%"] {
            let point = suite
                .point("zng", pair, 1, 1)
                .set(&format!("l2.prefetch.dynamic.high={high}"))
                .set(&format!("l2.prefetch.dynamic.low={low}"));
            all.push(((high, low), point));
        }
    }
    all
}
