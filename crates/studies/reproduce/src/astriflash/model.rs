//! Rows that follow from the paper's constants: what flash costs, and its analytic model of throughput and latency.

use super::super::expected::Figure;
use super::super::study::Entry;
use theory::tiered::{Program, cost_ratio, flash_bandwidth};

/// Section III-A: 10 us of execution, then an access to flash of 50 us. A job is taken to be one such period.
const PROGRAM: Program = Program { service: 10.0, work: 10.0, flash: FLASH };
/// An access to flash, us.
pub(super) const FLASH: f64 = 50.0;
/// Section III-A: overhead of an access in OS-Swap, us.
const OS_SWAP: f64 = 10.0;
/// Section III-B1: a switch between user-level threads, us.
pub(super) const SWITCH: f64 = 0.1;
/// "Within about 20 % of the DRAM-only system", at the 99th percentile.
const WITHIN: f64 = 0.8;
pub(super) const PERCENTILE: f64 = 0.99;
/// Section II-A: flash is 50 times cheaper, and 3 % of the data have DRAM.
const CHEAPER: f64 = 50.0;
const DRAM: f64 = 0.03;
/// Section II-A: cores, bytes a second from the DRAM of each, a block and a page.
const CORES: f64 = 64.0;
const PER_CORE: f64 = 0.5e9;
const BLOCK: f64 = 64.0;
const PAGE: f64 = 4096.0;
/// Figure 1 has the miss ratio as a curve only. 3 % is what 60 GB/s come from, to the paper's one digit.
const MISSING: f64 = 0.03;

/// A figure's entry; none if it follows from no constants.
pub(super) fn entry(figure: &Figure) -> Option<Entry> {
    let (value, note) = computed(figure.id.strip_prefix("astriflash.")?)?;
    let (id, figure) = (figure.id.clone(), figure.clone());
    Some(Entry::new(id, Vec::new(), move |_| figure.row(value, note.clone())))
}

fn computed(id: &str) -> Option<(f64, String)> {
    let dram = PROGRAM.dram_only();
    let lost = |capacity: f64| 100.0 * (1.0 - capacity / dram.capacity());
    Some(match id {
        "cost.memory" => (cost_ratio(CHEAPER, DRAM), "1 / (3 % + 1/50)".into()),
        "motivation.flash_bw_64core" => {
            let value = CORES * flash_bandwidth(PER_CORE, BLOCK, MISSING, PAGE) / 1e9;
            let exact = MISSING * 60.0 / value;
            (value, format!("equation 1 at a miss ratio of 3 %; exactly 60 GB/s are {:.2} %", 100.0 * exact))
        }
        "analytic.flash_sync_loss" => {
            (lost(PROGRAM.synchronous().capacity()), "M/M/1 of 10 us and 60 us at saturation".into())
        }
        "analytic.os_swap_loss" => {
            let station = PROGRAM.overlapped(OS_SWAP);
            let note = format!("at saturation: M/M/{} of {} us", station.servers, station.service);
            (lost(station.capacity()), note)
        }
        "analytic.slo" => {
            let limit = |overhead| PROGRAM.limit_within(WITHIN, overhead, PERCENTILE) / PROGRAM.service;
            let station = PROGRAM.overlapped(0.0);
            let at = |limit: f64| {
                let within = |s: theory::tiered::Station| s.rate_within(PERCENTILE, limit * PROGRAM.service);
                within(station) / within(dram)
            };
            let note = format!(
                "M/M/{} of {} us against M/M/1 of 10 us; with 100 ns a switch {:.1}; at 40 it does {:.1} % of DRAM-only",
                station.servers,
                station.service,
                limit(SWITCH),
                100.0 * at(40.0)
            );
            (limit(0.0), note)
        }
        _ => return None,
    })
}
