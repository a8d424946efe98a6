//! Devices at both ends of load: with one request at a time, the latency is the sum of its parts; saturated, the
//! slowest resource decides.

use super::constants::{Constants, Part};
use crate::stand::{d16, device, drive, fio};
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use proto::IoOp;

const TOLERANCE: f64 = 0.01;

/// A device with one bottleneck, and the work that finds it.
struct Bottleneck {
    name: &'static str,
    overrides: &'static [&'static str],
    op: IoOp,
    /// Pattern, size, depth and pages of work; a tenth of the pages for tests.
    job: &'static str,
    pages: u64,
    planes: u32,
    resource: Resource,
    place: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Resource {
    Die,
    Channel,
    /// A channel whose dies work in step, because data goes before commands.
    Convoy,
    Link,
}

const ALONE_ON_ITS_CHANNEL: &[&str] = &["flash.geometry.ways=1", "flash.geometry.planes=1"];
const SLOW_CHANNEL: &[&str] = &[
    "flash.geometry.channels=1",
    "flash.geometry.ways=16",
    "flash.geometry.planes=1",
    "flash.channel.rate=100MT/s",
    "flash.channel.arbiter=command_first",
];
const CONVOY: &[&str] = &[
    "flash.geometry.channels=1",
    "flash.geometry.ways=16",
    "flash.geometry.planes=1",
    "flash.channel.rate=100MT/s",
    "flash.channel.arbiter=data_first",
];
const SLOW_LINK: &[&str] = &["flash.host.link.plain.bandwidth=100MB/s"];
const PLANES_SIDE_BY_SIDE: &[&str] = &["flash.geometry.ways=1", "flash.ftl.stripe=PCWD"];

const BOTTLENECKS: &[Bottleneck] = &[
    Bottleneck {
        name: "read.die",
        overrides: ALONE_ON_ITS_CHANNEL,
        op: IoOp::Read,
        job: "rw=read,bs=4k,iodepth=64",
        pages: 400_000,
        planes: 1,
        resource: Resource::Die,
        place: "dies / (command + tR + data out), one die a channel",
    },
    Bottleneck {
        name: "read.die.random",
        overrides: ALONE_ON_ITS_CHANNEL,
        op: IoOp::Read,
        job: "rw=randread,bs=4k,iodepth=1024",
        pages: 1_600_000,
        planes: 1,
        resource: Resource::Die,
        place: "dies / (command + tR + data out), one die a channel",
    },
    Bottleneck {
        name: "read.channel",
        overrides: SLOW_CHANNEL,
        op: IoOp::Read,
        job: "rw=randread,bs=4k,iodepth=256",
        pages: 400_000,
        planes: 1,
        resource: Resource::Channel,
        place: "channels / (command + data out), 16 dies on a channel of 100 MB/s, commands before data",
    },
    Bottleneck {
        name: "read.convoy",
        overrides: CONVOY,
        op: IoOp::Read,
        job: "rw=randread,bs=4k,iodepth=256",
        pages: 400_000,
        planes: 1,
        resource: Resource::Convoy,
        place: "16 / (command + tR + 16 data out): data before commands makes the dies of a channel work in step",
    },
    Bottleneck {
        name: "read.link",
        overrides: SLOW_LINK,
        op: IoOp::Read,
        job: "rw=randread,bs=4k,iodepth=64",
        pages: 400_000,
        planes: 1,
        resource: Resource::Link,
        place: "link rate, of which 16 of 4,112 bytes are the completion entry",
    },
    Bottleneck {
        name: "read.planes",
        overrides: PLANES_SIDE_BY_SIDE,
        op: IoOp::Read,
        job: "rw=read,bs=8k,iodepth=64",
        pages: 400_000,
        planes: 2,
        resource: Resource::Die,
        place: "2 pages x dies / (2 commands + tR + 2 data out): multi-plane reads",
    },
    Bottleneck {
        name: "write.die",
        overrides: ALONE_ON_ITS_CHANNEL,
        op: IoOp::Write,
        job: "rw=write,bs=4k,iodepth=64",
        pages: 400_000,
        planes: 1,
        resource: Resource::Die,
        place: "dies / (command + data in + tPROG), onto an empty device",
    },
    Bottleneck {
        name: "write.channel",
        overrides: &[
            "flash.geometry.channels=1",
            "flash.geometry.ways=32",
            "flash.geometry.planes=1",
            "flash.channel.rate=100MT/s",
        ],
        op: IoOp::Write,
        job: "rw=write,bs=4k,iodepth=128",
        pages: 400_000,
        planes: 1,
        resource: Resource::Channel,
        place: "channels / (command + data in), 32 dies on a channel of 100 MB/s",
    },
    Bottleneck {
        name: "write.link",
        overrides: SLOW_LINK,
        op: IoOp::Write,
        job: "rw=randwrite,bs=4k,iodepth=128",
        pages: 400_000,
        planes: 1,
        resource: Resource::Link,
        place: "link rate; completion entries go the other way",
    },
    Bottleneck {
        name: "write.planes",
        overrides: PLANES_SIDE_BY_SIDE,
        op: IoOp::Write,
        job: "rw=write,bs=8k,iodepth=64",
        pages: 400_000,
        planes: 2,
        resource: Resource::Die,
        place: "2 pages x dies / (2 commands + 2 data in + tPROG): multi-plane programs",
    },
];

pub(super) fn saturated_cases() -> Vec<Case> {
    BOTTLENECKS
        .iter()
        .map(|b| {
            let id = format!("throughput.{}", b.name);
            let ids = [id];
            Case::new(ids, move |context| saturated_rows(b, context))
        })
        .collect()
}

fn saturated_rows(b: &Bottleneck, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let loaded = d16(b.overrides)?;
    let constants = Constants::of(loaded.drive()?);
    let [command, data_out, data_in] = constants.cycles();
    let (set_up, completion) = if b.op == IoOp::Read { (data_out, 16) } else { (data_in, 0) };
    let model = constants.device(b.planes, command + set_up);
    let limits = if b.op == IoOp::Read { model.read_limits() } else { model.program_limits() };
    let link = limits.link * constants.page() as f64 / (constants.page() + completion) as f64;
    let (bound, others) = match b.resource {
        Resource::Die => (limits.die, limits.channel.min(link)),
        Resource::Channel => (limits.channel, limits.die.min(link)),
        Resource::Convoy => {
            let dies = f64::from(model.dies_per_channel);
            let data = data_out as f64 + model.page as f64 / model.channel_rate;
            let cycle = command as f64 + model.read + dies * data;
            (f64::from(model.channels) * dies * model.page as f64 / cycle, limits.die.min(link))
        }
        Resource::Link => (link, limits.die.min(limits.channel)),
    };
    let device = device(&loaded, b.op == IoOp::Read)?;
    let bytes = context.choose(b.pages, b.pages / 10) * constants.page();
    let source = fio(&format!("fio:{},size=100%,io_size={bytes}", b.job), &device)?;
    let ran = drive(&loaded, device, source, context)?;
    // Bytes a picosecond are terabytes a second.
    let row = Row::new(
        format!("throughput.{}", b.name),
        "MB/s",
        bound * 1e6,
        ran.bytes_per_s(b.op) / 1e6,
        Rule::Share(TOLERANCE),
    )
    .place(b.place)
    .note(format!("{}; the next resource would allow {:.2} times as much", b.job, others / bound));
    Ok(vec![row])
}

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

/// A 16-bit channel of a different interface, with larger pages and odd times.
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
const IDLE_DEVICES: &[(&str, &[&str])] = &[("d16", &[]), ("path", WHOLE_PATH), ("toggle", OTHER_CHANNEL)];

pub(super) fn idle_cases() -> Vec<Case> {
    IDLE_DEVICES
        .iter()
        .flat_map(|(name, overrides)| {
            [IoOp::Read, IoOp::Write].map(|op| {
                let verb = if op == IoOp::Read { "read" } else { "write" };
                let id = format!("latency.{verb}.{name}");
                let ids = [id.clone()];
                Case::new(ids, move |context| idle_rows(&id, overrides, op, context))
            })
        })
        .collect()
}

fn idle_rows(id: &str, overrides: &[&str], op: IoOp, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
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
    // The shortest or the longest, whichever deviates more.
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
