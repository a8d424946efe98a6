//! Converts SimpleSSD's drive to spec keys.

use crate::setting::Values;
use crate::spec::{Key, decimal, quoted, share, size, time_ps};

/// Builds the keys of the spec; notes go to `remarks`.
pub(super) fn keys(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    let mut keys = array(values);
    keys.extend(translation(values, remarks));
    keys.extend(collection(values));
    keys.extend(buffer(values, remarks));
    keys.extend(link(values, remarks));
    keys.extend(state(values, remarks));
    keys
}

fn whole(path: &str, values: &Values, name: &'static str) -> Key {
    Key::new(path, values.whole(name).to_string(), &[name])
}

fn array(values: &Values) -> Vec<Key> {
    const READ: [&str; 3] = ["pal.LSBRead", "pal.CSBRead", "pal.MSBRead"];
    const WRITE: [&str; 3] = ["pal.LSBWrite", "pal.CSBWrite", "pal.MSBWrite"];
    let kind = values.whole("pal.NANDType");
    let types: &[usize] = match kind {
        0 => &[0],
        1 => &[0, 2],
        _ => &[0, 1, 2],
    };
    let times = |path: &str, names: &[&'static str; 3]| {
        let from: Vec<&'static str> = types.iter().map(|at| names[*at]).collect();
        let texts: Vec<String> = from.iter().map(|name| quoted(&time_ps(values.whole(name)))).collect();
        Key::new(path, format!("[{}]", texts.join(", ")), &from)
    };
    let lines = values.whole("pal.DMAWidth");
    let (rate, width) = match (values.whole("pal.DMASpeed"), lines) {
        (rate, ..16) => (rate, 8),
        (rate, lines) => (rate * lines / 16, 16),
    };
    vec![
        whole("flash.geometry.channels", values, "pal.Channel"),
        whole("flash.geometry.ways", values, "pal.Package"),
        whole("flash.geometry.dies", values, "pal.Die"),
        whole("flash.geometry.planes", values, "pal.Plane"),
        whole("flash.geometry.blocks", values, "pal.Block"),
        whole("flash.geometry.pages", values, "pal.Page"),
        Key::new("flash.geometry.page_size", quoted(&size(values.whole("pal.PageSize"))), &["pal.PageSize"]),
        Key::new("flash.cell.bits", (kind + 1).to_string(), &["pal.NANDType"]),
        times("flash.cell.read", &READ),
        times("flash.cell.program", &WRITE),
        Key::new("flash.cell.erase", quoted(&time_ps(values.whole("pal.Erase"))), &["pal.Erase"]),
        Key::new("flash.channel.rate", quoted(&format!("{rate}MT/s")), &["pal.DMASpeed", "pal.DMAWidth"]),
        Key::new("flash.channel.width", width.to_string(), &["pal.DMAWidth"]).noted("lines"),
        Key::new("flash.channel.arbiter", quoted("fifo"), &[])
            .noted("commands and data in the order of requests, as in SimpleSSD"),
    ]
}

/// Dimensions of a superblock, with planes if they work as one.
fn spans(values: &Values) -> String {
    let mut spans = values.word("pal.SuperblockSize");
    if values.flag("pal.EnableMultiPlaneOperation") && !spans.contains('P') {
        spans.push('P');
    }
    spans
}

fn translation(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    let spans = spans(values);
    let one_plane = values.whole("pal.Plane") == 1;
    let multi_plane = values.flag("pal.EnableMultiPlaneOperation") && !one_plane;
    let unit = match spans.as_str() {
        all if "CWDP".chars().all(|letter| all.contains(letter)) => "superblock",
        some if some.contains('P') && !one_plane => "plane_set",
        _ => "block",
    };
    if unit != "superblock" && spans.contains(['C', 'W', 'D']) {
        remarks.push(format!("pal.SuperblockSize: superblocks over {spans} alone are not modelled: GC reclaims a block, the blocks of a die's planes, or those of all planes; here {unit}"));
    }
    let mut order = values.word("pal.PageAllocation");
    for letter in "CWDP".chars().filter(|letter| !values.word("pal.PageAllocation").contains(*letter)) {
        order.push(letter);
    }
    if multi_plane {
        order = format!("P{}", order.replace('P', ""));
    }
    let multi = if multi_plane { "same_page" } else { "off" };
    vec![
        Key::new("flash.die.multi_plane", quoted(multi), &["pal.EnableMultiPlaneOperation"]),
        Key::new(
            "flash.ftl.map_unit",
            quoted(&size(values.whole("pal.PageSize"))),
            &["ftl.MappingMode", "pal.PageSize"],
        ),
        Key::new(
            "flash.ftl.reclaim_unit",
            quoted(unit),
            &["pal.SuperblockSize", "pal.EnableMultiPlaneOperation"],
        ),
        Key::new("flash.ftl.stripe", quoted(&order), &["pal.PageAllocation"]),
        Key::new(
            "flash.ftl.over_provisioning",
            quoted(&share(values.real("ftl.OverProvisioningRatio"))),
            &["ftl.OverProvisioningRatio"],
        ),
    ]
}

fn collection(values: &Values) -> Vec<Key> {
    let blocks = values.real("pal.Block");
    let of = |name: &str| libm::ceil(values.real(name) * blocks) as u64;
    // GC begins below the threshold.
    let start = of("ftl.GCThreshold").saturating_sub(1).max(3);
    let (stop, from): (u64, &'static str) = match values.whole("ftl.GCMode") {
        0 => (
            start + values.whole("ftl.GCReclaimBlocks").min(values.whole("pal.Block")),
            "ftl.GCReclaimBlocks",
        ),
        _ => (of("ftl.GCReclaimThreshold").max(start + 1), "ftl.GCReclaimThreshold"),
    };
    let victim = match values.whole("ftl.EvictPolicy") {
        0 => quoted("greedy"),
        1 => quoted("cost_benefit"),
        2 => quoted("random"),
        _ => format!("{{ d_choices = {{ d = {} }} }}", values.whole("ftl.DChoiceParam")),
    };
    vec![
        Key::new("flash.ftl.gc.victim", victim, &["ftl.EvictPolicy", "ftl.DChoiceParam"]),
        Key::new("flash.ftl.gc.start", start.to_string(), &["ftl.GCThreshold"]),
        Key::new("flash.ftl.gc.stop", stop.to_string(), &["ftl.GCMode", from]),
    ]
}

/// Bytes of one page in every plane.
fn stripe(values: &Values) -> u64 {
    ["pal.Channel", "pal.Package", "pal.Die", "pal.Plane", "pal.PageSize"]
        .iter()
        .fold(1, |all: u64, name| all.saturating_mul(values.whole(name)))
}

fn buffer(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    let (reads, writes) = (values.flag("icl.EnableReadCache"), values.flag("icl.EnableWriteCache"));
    if !reads && !writes {
        return Vec::new();
    }
    let capacity = values.whole("icl.CacheSize");
    let evicted =
        if values.whole("icl.EvictMode") == 0 { values.whole("pal.PageSize") } else { stripe(values) };
    let low = (1.0 - evicted as f64 / (capacity.max(1)) as f64).clamp(0.0, 1.0);
    let eviction = match values.whole("icl.EvictPolicy") {
        1 => "fifo",
        2 => "lru",
        _ => {
            remarks.push(
                "icl.EvictPolicy: random eviction is not modelled; the least recently used line is evicted"
                    .to_owned(),
            );
            "lru"
        }
    };
    let transfer = values.real("dram.Channel") * values.real("dram.BusWidth") / 8.0 * 2.0;
    let bandwidth = (transfer / values.real("dram.tCK") * 1e6).max(1.0);
    let latency = values.whole("dram.tRCD").saturating_add(values.whole("dram.tCL"));
    let key = |key: &str, value: String, from: &[&'static str]| {
        Key::new(&format!("flash.buffer.{key}"), value, from)
    };
    let mut keys = vec![
        key("capacity", quoted(&size(capacity)), &["icl.CacheSize"]),
        key("reads", reads.to_string(), &["icl.EnableReadCache"]),
        key("writes", writes.to_string(), &["icl.EnableWriteCache"]),
        key("admission", quoted(if reads { "always" } else { "writes_only" }), &["icl.EnableReadCache"]),
        key("eviction", quoted(eviction), &["icl.EvictPolicy"]),
        key("destage", quoted("when_full"), &[]).noted("a write that finds no line evicts, as in SimpleSSD"),
        key("high", quoted("100%"), &[]),
        key("low", quoted(&share(low)), &["icl.EvictMode", "icl.CacheSize"]),
        key(
            "in_flight",
            quoted(&size(evicted.min(capacity).max(values.whole("pal.PageSize")))),
            &["icl.EvictMode"],
        ),
        key("moves", quoted("units"), &[]),
        key("protected", "true".to_owned(), &[])
            .noted("in SimpleSSD, a flush writes nothing back unless the host asks"),
        key(
            "bandwidth",
            quoted(&format!("{}MB/s", decimal(libm::round(bandwidth)))),
            &["dram.Channel", "dram.BusWidth", "dram.tCK"],
        ),
        key("latency", quoted(&time_ps(latency)), &["dram.tRCD", "dram.tCL"]),
    ];
    keys.extend(look_ahead(values, reads, remarks));
    keys
}

fn look_ahead(values: &Values, reads: bool, remarks: &mut Vec<String>) -> Option<Key> {
    const FROM: [&str; 3] = ["icl.EnableReadPrefetch", "icl.ReadPrefetchCount", "icl.ReadPrefetchMode"];
    if !values.flag("icl.EnableReadPrefetch") {
        return None;
    }
    if !reads {
        remarks.push(
            "icl.EnableReadPrefetch: omitted: without EnableReadCache, prefetched pages are not kept"
                .to_owned(),
        );
        return None;
    }
    let window =
        if values.whole("icl.ReadPrefetchMode") == 0 { values.whole("pal.PageSize") } else { stripe(values) };
    let trigger = values.whole("icl.ReadPrefetchCount") + 1;
    let value =
        format!("{{ sequential = {{ streams = 1, trigger = {trigger}, window = \"{}\" }} }}", size(window));
    Some(Key::new("flash.buffer.look_ahead", value, &FROM))
}

fn link(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    let lanes = values.whole("nvme.PCIELane");
    let here = [1, 2, 4, 8, 16].into_iter().find(|known| *known >= lanes).unwrap_or(16);
    if here != lanes {
        remarks.push(format!("nvme.PCIELane: a link has 1, 2, 4, 8 or 16 lanes: {here} here"));
    }
    remarks.push("cpu: imported firmware takes no time; SimpleSSD's sample serves a command in 1.5 us of its HIL core: `--set flash.host.controller.command=1.5us`".to_owned());
    let generation = values.whole("nvme.PCIEGeneration") + 1;
    let value = format!(
        "{{ pcie = {{ generation = {generation}, lanes = {here}, max_payload = \"256B\", latency = \"250ns\" }} }}"
    );
    vec![
        Key::new("flash.host.link", value, &["nvme.PCIEGeneration", "nvme.PCIELane"]),
        Key::new(
            "flash.host.nvme.queues",
            values.whole("nvme.MaxIOSQueue").to_string(),
            &["nvme.MaxIOSQueue"],
        ),
    ]
}

fn state(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    const FROM: &[&str] = &["ftl.FillingMode", "ftl.FillRatio", "ftl.InvalidPageRatio"];
    let (mode, fill, invalid) =
        (values.whole("ftl.FillingMode"), values.real("ftl.FillRatio"), values.real("ftl.InvalidPageRatio"));
    let value = if fill == 0.0 {
        quoted("none")
    } else if mode == 0 || invalid == 0.0 {
        if invalid > 0.0 {
            remarks.push("ftl.InvalidPageRatio: sequential invalid pages are not modelled: the drive is written once, in order".to_owned());
        }
        format!("{{ sequential = {{ share = \"{}\" }} }}", share(fill))
    } else {
        if mode == 2 {
            remarks.push("ftl.FillingMode: mode 2 of SimpleSSD draws with replacement, so a FillRatio of 0.9 fills 61 %; here each page of the share is written".to_owned());
        }
        format!(
            "{{ uniform = {{ share = \"{}\", invalid = \"{}\" }} }}",
            share(fill),
            share(invalid / (fill + invalid))
        )
    };
    vec![Key::new("flash.precondition", value, FROM)]
}
