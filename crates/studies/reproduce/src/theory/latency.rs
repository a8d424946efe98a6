//! One request at a time: the latency is the sum of its parts.

use super::constants::{Constants, Part};
use crate::stand::{d16, device, drive, fio};
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use proto::IoOp;

/// A PCI Express link, a firmware, an interrupt and host software that all take time.
const WHOLE_PATH: &[&str] = &[
    r#"flash.host.link={ pcie = { generation = 4, lanes = 4, max_payload = "256B", latency = "150ns" } }"#,
    "flash.host.controller.command=800ns",
    "flash.host.controller.unit=130ns",
    "flash.host.nvme.doorbell=20ns",
    "flash.host.nvme.fetch=70ns",
    "flash.host.nvme.interrupt=2us",
    "host.submit=1.1us",
    "host.complete=1.7us",
];
/// A 16-bit channel of another interface, with larger pages and times that are no round numbers.
const OTHER_CHANNEL: &[&str] = &[
    "flash.channel.interface=toggle",
    "flash.channel.rate=333MT/s",
    "flash.channel.width=16",
    "flash.geometry.page_size=16KiB",
    "flash.ftl.map_unit=16KiB",
    "flash.cell.read=[\"61.3us\"]",
    "flash.cell.program=[\"703.9us\"]",
];

/// Name and overrides of each device.
const DEVICES: &[(&str, &[&str])] = &[("d16", &[]), ("path", WHOLE_PATH), ("toggle", OTHER_CHANNEL)];

pub(super) fn cases() -> Vec<Case> {
    DEVICES
        .iter()
        .flat_map(|(name, overrides)| {
            [IoOp::Read, IoOp::Write].map(|op| {
                let verb = if op == IoOp::Read { "read" } else { "write" };
                let id = format!("latency.{verb}.{name}");
                let ids = [id.clone()];
                Case::new(ids, move |context| rows(&id, overrides, op, context))
            })
        })
        .collect()
}

fn rows(id: &str, overrides: &[&str], op: IoOp, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let loaded = d16(overrides)?;
    let read = op == IoOp::Read;
    let device = device(&loaded, read)?;
    let constants = Constants::of(loaded.drive()?);
    let (parts, rw) =
        if read { (constants.read_parts(), "randread") } else { (constants.write_parts(), "randwrite") };
    let expected = parts.iter().map(|part| part.1).sum();
    let job = format!("fio:rw={rw},bs={},iodepth=1,number_ios=2000", constants.page());
    let source = fio(&job, &device)?;
    let ran = drive(&loaded, device, source, context)?;
    let latency = ran.of(op).latency;
    // Of the shortest and the longest, the one that is further off.
    let ends = [latency.min(), latency.max()].map(Option::unwrap_or_default);
    let worst = if ends[0].abs_diff(expected) > ends[1].abs_diff(expected) { ends[0] } else { ends[1] };
    let row = Row::new(id, "ps", expected as f64, worst as f64, Rule::Exact)
        .place("sum of the parts of one request on an idle device, from the constants of the spec")
        .note(format!("{} requests at queue depth 1; {}", ran.of(op).requests, sum(&parts)));
    Ok(vec![row])
}

/// The parts that take time.
fn sum(parts: &[Part]) -> String {
    let list: Vec<String> =
        parts.iter().filter(|p| p.1 > 0).map(|(name, ps)| format!("{name} {ps}")).collect();
    list.join(" + ")
}
