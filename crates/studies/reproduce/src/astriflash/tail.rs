//! Fig. 10: the 99th percentile of the response against throughput, under random arrivals.
//!
//! The paper sweeps the mean time between arrivals "from zero to ten us" at ten us of service, which overloads a core;
//! here the load is swept instead, relative to what DRAM-only does at most. Where AstriFlash's curve meets a latency is
//! interpolated: the reciprocal of a percentile is nearly linear in the load (exactly so for M/M/1).
//!
//! Beside it, in the row's note, stands what the paper's analytic model (Fig. 3) has at the same loads: M/M/1 for
//! DRAM-only, M/M/k for AstriFlash, with the service time and the misses of the simulated programs.

use super::super::expected::Figure;
use super::super::study::{Entry, Found, Point};
use super::suite::Suite;
use super::{latency_p99, misses_of_a_job, service_mean, throughput};
use config::Diagnostic;
use theory::tiered::{Program, Station, cost_ratio, flash_bandwidth};

const PROGRAM: &str = "tatp";
/// The share of DRAM-only's peak at which its latency is taken.
const REFERENCE: f64 = 0.96;
/// The shares of DRAM-only's peak at which jobs come to AstriFlash.
const SHARES: [f64; 6] = [0.80, 0.84, 0.88, 0.91, 0.94, 0.97];

/// The runs at saturation that say what DRAM-only does at most.
struct Peak {
    suite: Suite,
    point: Point,
}

impl Peak {
    /// Jobs a second.
    fn of(&self, found: &Found) -> Result<f64, Diagnostic> {
        throughput(found.get(&self.point)?)
    }

    /// DRAM-only at the reference, then AstriFlash at each share.
    fn points(&self, found: &Found) -> Result<Vec<Point>, Diagnostic> {
        let alone = self.suite.cores() * 1e9 / self.of(found)?;
        let at = |system, share| self.suite.loaded(system, PROGRAM, alone / share);
        Ok([at("dram-only", REFERENCE)].into_iter().chain(SHARES.map(|s| at("astriflash", s))).collect())
    }
}

/// The throughput at which AstriFlash has the latency that DRAM-only has at its reference.
pub(super) fn entry(figure: &Figure, suite: &Suite) -> Entry {
    let point = suite.saturated("dram-only", PROGRAM).swap_remove(0);
    let peak = |point: &Point| Peak { suite: suite.clone(), point: point.clone() };
    let (first, second) = (peak(&point), peak(&point));
    let (id, figure) = (figure.id.clone(), figure.clone());
    let compute = move |found: &Found| {
        let (most, points) = (first.of(found)?, first.points(found)?);
        let service = service_mean(found.get(&first.point)?)?;
        let measured = |point: &Point| {
            let document = found.get(point)?;
            Ok((throughput(document)? / most, latency_p99(document)? / service))
        };
        let curve: Vec<(f64, f64)> = points.iter().map(measured).collect::<Result<_, Diagnostic>>()?;
        let (reference, curve) = (curve[0], &curve[1..]);
        let service = service / 1e3;
        let last = points.last().ok_or_else(|| Diagnostic::new("no load was run"))?;
        let work = service / misses_of_a_job(found.get(last)?)?;
        let program = Program { service, work, flash: FLASH };
        let model = program.overlapped(SWITCH);
        let shown = |station: Station, (x, y): &(f64, f64)| {
            format!("{:.1} % {y:.1} (model {})", 100.0 * x, modelled(station, *x, service))
        };
        let all: Vec<String> = curve.iter().map(|point| shown(model, point)).collect();
        let note = format!(
            "p99 over DRAM-only's mean service time: DRAM-only {}; AstriFlash, model M/M/{}: {}",
            shown(program.dram_only(), &reference),
            model.servers,
            all.join(", ")
        );
        let met = meets(curve, reference.1)
            .ok_or_else(|| Diagnostic::new(format!("AstriFlash is above it at every load: {note}")))?;
        figure.row(100.0 * met, note)
    };
    Entry::new(id, vec![point], compute).then(move |found| second.points(found))
}

/// A station's 99th percentile of the response over the mean service time, at a share of what a core does at most.
fn modelled(station: Station, share: f64, service: f64) -> String {
    let rate = share / service;
    if rate >= station.capacity() {
        return "saturated".into();
    }
    format!("{:.1}", station.at(rate).response_quantile(PERCENTILE) / service)
}

/// The highest throughput at which a curve of throughput and latency is at most `limit`, interpolated up to the
/// next point; none if the curve is above it everywhere.
fn meets(curve: &[(f64, f64)], limit: f64) -> Option<f64> {
    let last = curve.iter().rposition(|(_, latency)| *latency <= limit)?;
    let (x, y) = curve[last];
    let Some((next_x, next_y)) = curve.get(last + 1) else { return Some(x) };
    Some(x + (next_x - x) * (1.0 / y - 1.0 / limit) / (1.0 / y - 1.0 / next_y))
}

// Rows that follow from the paper's constants: what flash costs, and its analytic model of throughput and latency.

/// Section III-A: 10 us of execution, then an access to flash of 50 us. A job is taken to be one such period.
const MODELLED: Program = Program { service: 10.0, work: 10.0, flash: FLASH };

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
pub(super) fn constants_entry(figure: &Figure) -> Option<Entry> {
    let (value, note) = computed(figure.id.strip_prefix("astriflash.")?)?;
    let (id, figure) = (figure.id.clone(), figure.clone());
    Some(Entry::new(id, Vec::new(), move |_| figure.row(value, note.clone())))
}

fn computed(id: &str) -> Option<(f64, String)> {
    let dram = MODELLED.dram_only();
    let lost = |capacity: f64| 100.0 * (1.0 - capacity / dram.capacity());
    Some(match id {
        "cost.memory" => (cost_ratio(CHEAPER, DRAM), "1 / (3 % + 1/50)".into()),
        "motivation.flash_bw_64core" => {
            let value = CORES * flash_bandwidth(PER_CORE, BLOCK, MISSING, PAGE) / 1e9;
            let exact = MISSING * 60.0 / value;
            (value, format!("equation 1 at a miss ratio of 3 %; exactly 60 GB/s are {:.2} %", 100.0 * exact))
        }
        "analytic.flash_sync_loss" => {
            (lost(MODELLED.synchronous().capacity()), "M/M/1 of 10 us and 60 us at saturation".into())
        }
        "analytic.os_swap_loss" => {
            let station = MODELLED.overlapped(OS_SWAP);
            let note = format!("at saturation: M/M/{} of {} us", station.servers, station.service);
            (lost(station.capacity()), note)
        }
        "analytic.slo" => {
            let limit = |overhead| MODELLED.limit_within(WITHIN, overhead, PERCENTILE) / MODELLED.service;
            let station = MODELLED.overlapped(0.0);
            let at = |limit: f64| {
                let within = |s: theory::tiered::Station| s.rate_within(PERCENTILE, limit * MODELLED.service);
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

#[cfg(test)]
mod tests {
    use super::{Program, meets, modelled};
    use theory::queue::mm1;

    /// M/M/1: ln 100 / (1 - load) mean service times.
    #[test]
    fn the_model_beside_the_curve_by_hand() {
        let program = Program { service: 10.0, work: 10.0, flash: 50.0 };
        assert_eq!(modelled(program.dram_only(), 0.5, 10.0), "9.2");
        assert_eq!(modelled(program.synchronous(), 0.5, 10.0), "saturated");
        assert_eq!(modelled(program.overlapped(0.0), 1.0, 10.0), "saturated");
    }

    #[test]
    fn the_load_of_a_latency_is_found_exactly_for_one_exponential_server() {
        let curve: Vec<(f64, f64)> =
            [0.5, 0.8, 0.9, 0.97].map(|load| (load, mm1(load, 1.0).response_quantile(0.99))).into();
        for load in [0.5, 0.62, 0.8, 0.88, 0.95] {
            let limit = mm1(load, 1.0).response_quantile(0.99);
            assert!((meets(&curve, limit).expect("met") - load).abs() < 1e-9, "{load}");
        }
        assert_eq!(meets(&curve, 9.0), None);
        assert_eq!(meets(&curve, 1e9), Some(0.97));
    }
}
