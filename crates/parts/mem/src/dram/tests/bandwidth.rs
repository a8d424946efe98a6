//! Bandwidths by formula.

use super::*;
use engine::Rng;

/// The share of time that refresh leaves.
fn unrefreshed(spec: &DramSpec) -> f64 {
    spec.refresh.as_ref().map_or(1.0, |refresh| {
        1.0 - refresh.duration.time().as_ns_f64() / refresh.interval.time().as_ns_f64()
    })
}

fn stream(spec: &DramSpec, write: bool) -> f64 {
    let commands: Vec<_> = (0..12_000 * u64::from(spec.controllers)).map(|n| line(n * LINE, write)).collect();
    Bench::new(spec).closed_loop(commands, 128 * u32::from(spec.controllers))
}

#[test]
fn peaks_are_those_of_the_data_sheets() {
    let peak = |spec: &DramSpec| Dram::new(spec, LINE).expect("can be built").peak_bandwidth();
    assert_eq!(peak(&presets::gddr5()), 192_384_000_000);
    assert_eq!(peak(&presets::ddr4()), 19_200_000_000);
    assert_eq!(peak(&presets::lpddr4()), 25_600_000_000);
    assert_eq!(peak(&presets::ddr3_buffer()), 6_400_000_000);
    assert_eq!(peak(&presets::optane()), 39_000_000_000);
}

#[test]
fn a_stream_reaches_the_bus() {
    for (name, spec) in presets::all() {
        if name == "optane" {
            continue;
        }
        let bus = Dram::new(&spec, LINE).expect("can be built").peak_bandwidth() as f64 * unrefreshed(&spec);
        let share = stream(&spec, false) / bus;
        assert!((0.98..1.001).contains(&share), "{name}: reads reach {share} of the bus");
        let share = stream(&spec, true) / bus;
        assert!((0.98..1.001).contains(&share), "{name}: writes reach {share} of the bus");
    }
}

/// Optane: 39 GB/s of sequential reads over six modules; 13.9 GB/s of writes (Izraelevitz et al.: 39.4 and 13.9).
#[test]
fn optane_streams_as_measured() {
    let spec = presets::optane();
    let reads = stream(&spec, false) / 1e9;
    assert!((39.0 * 0.95..39.0 * 1.001).contains(&reads), "reads: {reads} GB/s");
    let writes = stream(&spec, true) / 1e9;
    assert!((13.9 * 0.95..13.9 * 1.05).contains(&writes), "writes: {writes} GB/s");
    // 128 B of every row: a bank gives 0.134 GB/s, 25 of them in six modules 20.
    let rows: Vec<_> = (0..40_000).map(|n| read(n * 256)).collect();
    let single = Bench::new(&spec).closed_loop(rows, 1500) / 1e9;
    let bank = 128.0 / (190.0 + 128.0 / 6.5 / 2.0 + 763.0);
    let formula = bank * 25.0 * 6.0;
    assert!((formula * 0.95..formula * 1.01).contains(&single), "half rows: {single} GB/s, not {formula}");
}

/// Random rows: every bank gives a line a row cycle.
#[test]
fn random_reads_are_limited_by_the_banks() {
    for (name, spec) in presets::all() {
        let mut spec = plain(spec);
        spec.banks.count = 4;
        let t = &spec.timing;
        let (rcd, rtp, ras, rp) = (t.rcd.time(), t.rtp.time(), t.ras.time(), t.rp.time());
        let bursts = LINE / (u64::from(spec.bus.width / 8) * u64::from(spec.bus.burst));
        let columns = Time::from_ps(on_the_bus(&spec, 1).ps() / bursts * (bursts - 1));
        let cycle = ras.max(rcd + columns + rtp) + rp;
        let banks = 4.0 * LINE as f64 / cycle.as_s_f64();
        let bus = LINE as f64 / on_the_bus(&spec, 1).as_s_f64();
        let formula = banks.min(bus);
        let mut random = Rng::stream(1, name);
        let mut row = 0;
        let commands: Vec<_> = (0..20_000)
            .map(|_| {
                // Never the same row twice in a while.
                row = (row + 1 + random.below(1000)) % (1 << 20);
                read(row_of(&spec, random.below(4), row))
            })
            .collect();
        let measured = Bench::new(&spec).closed_loop(commands, 64);
        let share = measured / formula;
        assert!((0.95..1.01).contains(&share), "{name}: {share} of {formula} B/s");
    }
}

/// Two lines in every activation: they come one after the other, and the second finds the row open.
#[test]
fn half_of_the_lines_of_row_pairs_are_hits() {
    let spec = plain(presets::gddr5());
    let mut bench = Bench::new(&spec);
    let commands: Vec<_> = (0..2_000u64)
        .flat_map(|n| [0, LINE].map(|column| read(row_of(&spec, n % 16, n / 16) + column)))
        .collect();
    bench.closed_loop(commands, 64);
    assert_eq!((bench.dram.stats.row_hits, bench.dram.stats.activations), (2_000, 2_000));
}
