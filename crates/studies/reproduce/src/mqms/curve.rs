//! Section 2: 4 KiB random reads a second against queue depth, of a drive as the PM9A3's data sheet has it, and of
//! MQSim.
//!
//! The data sheet gives the saturation. The paper says of the rise that it is near-linear: what a drive does whose
//! requests do not wait for each other, depth over the latency of an idle drive (Little's law with nothing queued).
//! That latency is not published, so it is our drive's own at depth one: the rows hold the shape, not the latency.

use super::super::Effort;
use super::super::row::{Row, Rule};
use super::super::study::{Entry, Found, Point};
use config::Diagnostic;

/// Queue depths.
const DEPTHS: [u32; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// The data sheet's random reads a second, U.2, all capacities.
const SATURATION: f64 = 900_000.0;
const DATA_SHEET: &str = "900,000 IOPS: heise online 4720224 from Samsung's data sheet";
/// Tolerance of a depth to the line.
const WITHIN: f64 = 0.15;
/// The saturation stands between curves where the deepest queue is.
const DEEPEST: u32 = DEPTHS[DEPTHS.len() - 1];

/// A curve.
#[derive(Clone, Copy)]
struct System {
    /// Name in the rows.
    name: &'static str,
    /// A shipped system.
    on: &'static str,
    set: &'static [&'static str],
}

/// The drive.
const DRIVE: System = System { name: "pm9a3", on: "pm9a3", set: &[] };

/// MQSim with what its `ssdconfig.xml` can say of the drive: dies, pages, times, interface and link; what it does with
/// them stays. The unit of the map is the page, and the cache of the map is as large as by default.
const ENTERPRISE: System = System {
    name: "mqsim_as_pm9a3",
    on: "mqsim-default",
    set: &[
        "flash.geometry.ways=8",
        "flash.geometry.dies=1",
        "flash.geometry.blocks=1366",
        "flash.geometry.pages=1536",
        "flash.geometry.page_size=16KiB",
        "flash.cell.bits=3",
        "flash.cell.programming=one_shot",
        "flash.cell.read=[\"45us\"]",
        "flash.cell.program=[\"1.2ms\"]",
        "flash.cell.erase=3.5ms",
        "flash.channel.interface=toggle",
        "flash.channel.rate=1200MT/s",
        "flash.ftl.map_unit=16KiB",
        "flash.ftl.over_provisioning=12.7138%",
        // PCIe 4.0 x4.
        "flash.host.link.plain.bandwidth=7877MB/s",
    ],
};

/// MQSim as it comes: a client drive.
const CLIENT: System = System { name: "mqsim_default", on: "mqsim-default", set: &[] };

/// The rows of the curves, and how far the simulators stay below the data sheet.
pub(super) fn entries(effort: Effort) -> Vec<Entry> {
    let drive = DEPTHS.map(|depth| of_drive(depth, effort));
    let others =
        [ENTERPRISE, CLIENT].into_iter().flat_map(|s| DEPTHS.map(|depth| of_simulator(s, depth, effort)));
    drive.into_iter().chain(others).chain([gap(effort)]).collect()
}

fn point(system: System, depth: u32, effort: Effort) -> Point {
    let (few, many) = if effort == Effort::Quick { (2_000, 20_000) } else { (20_000, 200_000) };
    let requests = if depth < 8 { few } else { many };
    Point {
        system: system.on.into(),
        set: system.set.iter().map(|set| (*set).to_owned()).collect(),
        workloads: vec![format!("fio:rw=randread,bs=4k,iodepth={depth},number_ios={requests}")],
        seed: 1,
        ..Point::default()
    }
}

fn iops(found: &Found, point: &Point) -> Result<f64, Diagnostic> {
    Ok(found.get(point)?.io.kinds.all.iops)
}

/// Depth over the latency of an idle drive, up to the saturation.
fn line(depth: u32, idle_iops: f64) -> f64 {
    (f64::from(depth) * idle_iops).min(SATURATION)
}

fn row(system: System, depth: u32, reference: f64, measured: f64, rule: Rule) -> Row {
    Row::new(id(system, depth), "IOPS", reference, measured, rule)
        .place(format!("section 2; {DATA_SHEET}; below it depth over the idle drive's latency"))
}

fn id(system: System, depth: u32) -> String {
    format!("mqms.curve.{}.{depth}", system.name)
}

/// A depth of the drive. That its planes read independently was decided when the curve without had been seen, and the
/// saturation chose the controller's time: the rows do not count.
fn of_drive(depth: u32, effort: Effort) -> Entry {
    let (idle, loaded) = (point(DRIVE, 1, effort), point(DRIVE, depth, effort));
    let points = vec![idle.clone(), loaded.clone()];
    let compute = move |found: &Found| {
        let reference = line(depth, iops(found, &idle)?);
        Ok(row(DRIVE, depth, reference, iops(found, &loaded)?, Rule::Share(WITHIN)))
    };
    Entry::new(id(DRIVE, depth), points, compute).fitted()
}

/// A depth of a simulator beside the same line: never above it.
fn of_simulator(system: System, depth: u32, effort: Effort) -> Entry {
    let (idle, loaded) = (point(DRIVE, 1, effort), point(system, depth, effort));
    let points = vec![idle.clone(), loaded.clone()];
    let compute = move |found: &Found| {
        let reference = line(depth, iops(found, &idle)?);
        let row = row(system, depth, reference, iops(found, &loaded)?, Rule::AtMost);
        Ok(row.swept())
    };
    Entry::new(id(system, depth), points, compute)
}

/// By how many orders of magnitude the simulators stay below the data sheet, at the deepest queue; the paper cites one.
fn gap(effort: Effort) -> Entry {
    const ID: &str = "mqms.motivation.enterprise_gap";
    let points = [CLIENT, ENTERPRISE].map(|system| point(system, DEEPEST, effort));
    let [client, enterprise] = points.clone();
    let compute = move |found: &Found| {
        let orders = |point: &Point| Ok::<f64, Diagnostic>(libm::log10(SATURATION / iops(found, point)?));
        let (measured, other) = (orders(&client)?, orders(&enterprise)?);
        let note = format!(
            "MQSim as it comes, at queue depth {DEEPEST}; with the drive's dies, pages, times and link {other:.2}"
        );
        let row = Row::new(ID, "log10", 1.0, measured, Rule::Points(0.5)).place("section 2").note(note);
        Ok(Row { kind: "cited", ..row })
    };
    Entry::new(ID, points.into(), compute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_rises_with_the_depth_to_the_data_sheet() {
        // An idle drive of 50 us: 20,000 a second at depth one; 45 of them are the saturation.
        let values = [1, 2, 44, 45, 46, 512].map(|depth| line(depth, 20_000.0));
        assert_eq!(values, [20_000.0, 40_000.0, 880_000.0, 900_000.0, 900_000.0, 900_000.0]);
    }
}
