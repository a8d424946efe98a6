//! Converts MQSim's drive to spec keys; `systems/mqsim-default/calibration.md` explains each setting.

use crate::setting::Values;
use crate::spec::{Key, quoted, share, size, time_ns};
use config::{Diagnostic, Place};

/// Time that MQSim adds to a page read, in ns (`Flash_Chip.h`).
const READ_EXTRA: u64 = 20;
/// Free blocks of a plane below which user writes wait; also the minimum GC threshold (`SSD_Device.cpp`).
const FREE_LEAST: u64 = 10;
/// Maximum rates of the interfaces with the command cycles of NV-DDR2, in MT/s.
const INTERFACES: [(&str, u64); 3] = [("nv_ddr2", 800), ("nv_ddr3", 1600), ("nv_lpddr4", FASTEST)];
/// Rate of the fastest interface, in MT/s.
const FASTEST: u64 = 3600;
/// Bytes per sector.
pub(super) const SECTOR: u64 = 512;

/// Builds the keys; notes go to `remarks`.
pub(super) fn keys(values: &Values, flows: Option<&Flows>, remarks: &mut Vec<String>) -> Vec<Key> {
    let mut keys = geometry(values);
    keys.extend(cell(values, remarks));
    keys.extend(channel(values, remarks));
    keys.extend(translation(values, remarks));
    keys.extend(collection(values, remarks));
    keys.extend(buffer(values, flows, remarks));
    keys.extend(host(values, flows.map_or(1, |flows| flows.all.len() as u64), remarks));
    keys.extend(state(values, flows, remarks));
    keys
}

fn whole(path: &str, values: &Values, name: &'static str) -> Key {
    Key::new(path, values.whole(name).to_string(), &[name])
}

fn geometry(values: &Values) -> Vec<Key> {
    vec![
        whole("flash.geometry.channels", values, "Flash_Channel_Count"),
        whole("flash.geometry.ways", values, "Chip_No_Per_Channel"),
        whole("flash.geometry.dies", values, "Die_No_Per_Chip"),
        whole("flash.geometry.planes", values, "Plane_No_Per_Die"),
        whole("flash.geometry.blocks", values, "Block_No_Per_Plane"),
        whole("flash.geometry.pages", values, "Page_No_Per_Block"),
        Key::new(
            "flash.geometry.page_size",
            quoted(&size(values.whole("Page_Capacity"))),
            &["Page_Capacity"],
        ),
    ]
}

/// Number of planes of the drive.
pub(super) fn planes(values: &Values) -> u64 {
    ["Flash_Channel_Count", "Chip_No_Per_Channel", "Die_No_Per_Chip", "Plane_No_Per_Die"]
        .iter()
        .fold(1, |all: u64, name| all.saturating_mul(values.whole(name)))
}

fn cell(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    const READ: [&str; 3] = ["Page_Read_Latency_LSB", "Page_Read_Latency_CSB", "Page_Read_Latency_MSB"];
    const PROGRAM: [&str; 3] =
        ["Page_Program_Latency_LSB", "Page_Program_Latency_CSB", "Page_Program_Latency_MSB"];
    let technology = values.word("Flash_Technology");
    let (bits, types): (u64, &[usize]) = match technology.as_str() {
        "SLC" => (1, &[0]),
        "TLC" => (3, &[0, 1, 2]),
        _ => (2, &[0, 2]),
    };
    let list = |names: &[&'static str; 3], extra: u64| {
        let mut all: Vec<u64> =
            types.iter().map(|at| values.whole(names[*at]).saturating_add(extra)).collect();
        let used: Vec<&'static str> = types.iter().map(|at| names[*at]).collect();
        if all.iter().all(|one| *one == all[0]) {
            all.truncate(1);
        }
        let texts: Vec<String> = all.iter().map(|ns| quoted(&time_ns(*ns))).collect();
        (format!("[{}]", texts.join(", ")), used, all.len() > 1)
    };
    let (read, read_from, reads_differ) = list(&READ, READ_EXTRA);
    let (program, program_from, programs_differ) = list(&PROGRAM, 0);
    if bits == 3 && (reads_differ || programs_differ) {
        remarks.push("MQSim's TLC pages are of one type up to the sixth of a block, of the next for two, then two by two (Flash_Chip.h); here types alternate page by page: shares agree but for the first eight pages".to_owned());
    }
    if bits > 1 && !values.whole("Page_No_Per_Block").is_multiple_of(bits) {
        remarks.push(format!("Page_No_Per_Block is not a multiple of the {bits} pages of a word line: the last word line of each block is incomplete"));
    }
    let erase = quoted(&time_ns(values.whole("Block_Erase_Latency")));
    vec![
        Key::new("flash.cell.bits", bits.to_string(), &["Flash_Technology"]),
        Key::new("flash.cell.read", read, &read_from).noted("and 20 ns that the chip adds"),
        Key::new("flash.cell.program", program, &program_from),
        Key::new("flash.cell.erase", erase, &["Block_Erase_Latency"]),
    ]
}

fn channel(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    let (rate, bytes) = (values.whole("Channel_Transfer_Rate"), values.whole("Flash_Channel_Width"));
    // The width is one byte or two. More lines equal a higher rate over two, and a rate beyond all interfaces half of
    // it over two.
    let (width, rate_here) =
        if bytes >= 2 || rate > FASTEST { (16u64, (rate * bytes / 2).max(1)) } else { (8, rate) };
    let cut = 1000 / rate;
    if cut * rate * 100 < 99 * 1000 {
        let instead = match 1000u64.checked_div(cut) {
            None => "takes no time at all for data".to_owned(),
            Some(runs) => format!(
                "runs at {runs} MT/s; `--set flash.channel.rate={}MT/s` matches it",
                rate_here * runs / rate
            ),
        };
        remarks.push(format!("Channel_Transfer_Rate: MQSim truncates the {:.2} ns of a transfer to {cut} ns, and its channel {instead}", 1000.0 / rate as f64));
    }
    if width != 8 * bytes {
        remarks.push(format!(
            "Flash_Channel_Width: {} lines at {rate} MT/s are {width} here at {rate_here} MT/s, with equal bandwidth",
            8 * bytes
        ));
    }
    let interface = INTERFACES.iter().find(|(_, most)| rate_here <= *most).unwrap_or(&INTERFACES[2]).0;
    let mut keys = vec![];
    if interface != "nv_ddr2" {
        remarks.push(format!("Channel_Transfer_Rate: MQSim's only interface, NVDDR2, takes any rate; parts of it end at 800 MT/s. flash.channel.interface is {interface}, whose command cycles are the same"));
        let from = &["Channel_Transfer_Rate", "Flash_Comm_Protocol"];
        keys.push(Key::new("flash.channel.interface", quoted(interface), from));
    }
    keys.extend([
        Key::new(
            "flash.channel.rate",
            quoted(&format!("{rate_here}MT/s")),
            &["Channel_Transfer_Rate", "Flash_Channel_Width"],
        ),
        Key::new("flash.channel.width", width.to_string(), &["Flash_Channel_Width"]).noted("lines"),
    ]);
    keys
}

fn translation(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    let page = values.whole("Page_Capacity");
    let policy = values.word("Transaction_Scheduling_Policy");
    if policy == "FLIN" {
        remarks.push("Transaction_Scheduling_Policy: FLIN is commented out in MQSim, which then ends with an exception; flash.die.scheduler is `priority`".to_owned());
    }
    if values.word("Address_Mapping") == "HYBRID" {
        remarks.push("Address_Mapping: HYBRID is a class of empty functions in MQSim and cannot run; page mapping is used".to_owned());
    }
    let ratio = values.real("Overprovisioning_Ratio");
    let mut keys = vec![
        Key::new("flash.die.scheduler", quoted("priority"), &["Transaction_Scheduling_Policy"]),
        Key::new("flash.ftl.map_unit", quoted(&size(page)), &["Address_Mapping", "Page_Capacity"]),
        Key::new(
            "flash.ftl.stripe",
            quoted(&values.word("Plane_Allocation_Scheme")),
            &["Plane_Allocation_Scheme"],
        ),
        Key::new("flash.ftl.over_provisioning", quoted(&share(ratio)), &["Overprovisioning_Ratio"]),
    ];
    keys.push(if values.flag("Ideal_Mapping_Table") {
        Key::new("flash.ftl.mapping", quoted("table"), &["Ideal_Mapping_Table"])
    } else {
        let (cached, stored) = entries(values);
        let capacity = size(values.whole("CMT_Capacity").max(cached));
        let value = format!(
            "{{ demand = {{ capacity = \"{capacity}\", granularity = \"entry\", cached_entry = \"{cached}B\", stored_entry = \"{stored}B\", read = \"512B\" }} }}"
        );
        Key::new("flash.ftl.mapping", value, &["Ideal_Mapping_Table", "CMT_Capacity"])
    });
    keys
}

/// Bytes of a mapping entry in memory and on flash (`Address_Mapping_Unit_Page_Level.cpp`).
fn entries(values: &Values) -> (u64, u64) {
    let per_plane = values.whole("Block_No_Per_Plane").saturating_mul(values.whole("Page_No_Per_Block"));
    let address = libm::log2(planes(values) as f64 * per_plane as f64);
    let sectors = (values.whole("Page_Capacity") / SECTOR) as f64;
    let bytes = |bits: f64| (libm::ceil(bits / 8.0) as u64).clamp(1, 64);
    (bytes(2.0 * address + sectors), bytes(address + sectors))
}

/// Blocks of a plane that can be free while the logical space is full and every frontier is open.
fn can_be_free(values: &Values) -> u64 {
    let (blocks, pages) = (values.whole("Block_No_Per_Plane"), values.whole("Page_No_Per_Block"));
    let planes = planes(values).max(1);
    let raw = blocks.saturating_mul(pages).saturating_mul(planes);
    let spare = libm::round(raw as f64 * values.real("Overprovisioning_Ratio")) as u64;
    let logical = raw.saturating_sub(spare);
    let mut units = logical;
    // Frontiers of host writes and of moved data.
    let mut frontiers = 2;
    if !values.flag("Ideal_Mapping_Table") {
        let per_page = (values.whole("Page_Capacity") / entries(values).1).max(1);
        units = units.saturating_add(logical.div_ceil(per_page));
        frontiers += 1;
    }
    blocks.saturating_sub(units.div_ceil(planes).div_ceil(pages) + frontiers)
}

fn collection(values: &Values, remarks: &mut Vec<String>) -> Vec<Key> {
    let blocks = values.whole("Block_No_Per_Plane");
    let asked = (values.real("GC_Exec_Threshold") * blocks as f64) as u64;
    let wanted = asked.max(FREE_LEAST);
    // GC must be able to leave as many blocks free as it begins with.
    let most = can_be_free(values) + 1;
    let threshold = if most >= 2 { wanted.min(most) } else { wanted };
    if threshold < wanted {
        remarks.push(format!("GC_Exec_Threshold: {wanted} blocks of a plane are more than Overprovisioning_Ratio leaves free while the logical space is full, {}; MQSim then runs GC with every block that it opens; here GC begins below {threshold}", most - 1));
    }
    if asked < FREE_LEAST {
        remarks.push(format!("GC_Exec_Threshold: {asked} blocks of a plane; MQSim runs GC below {FREE_LEAST} regardless. Preconditioned, it then starts with fewer free blocks than writes need, and every write waits forever"));
    }
    // In MQSim a write waits below ten free blocks; here GC must have begun before one waits.
    let hard = (FREE_LEAST - 1).min(threshold.saturating_sub(2)).max(1);
    let policy = values.word("GC_Block_Selection_Policy");
    let victim = match policy.as_str() {
        "GREEDY" => quoted("greedy"),
        "FIFO" => quoted("fifo"),
        "RGA" => format!("{{ d_choices = {{ d = {} }} }}", blocks.max(2).ilog2()),
        _ => quoted("random"),
    };
    if policy == "RANDOM_PP" {
        remarks.push("GC_Block_Selection_Policy: RANDOM_PP requires a minimum number of invalid pages; here any closed block may be drawn".to_owned());
    }
    if policy == "RANDOM" {
        remarks.push("GC_Block_Selection_Policy: RANDOM may choose blocks that are not yet full in MQSim; here only closed blocks are drawn".to_owned());
    }
    let gc = |key: &str, value: String, from: &[&'static str]| {
        Key::new(&format!("flash.ftl.gc.{key}"), value, from)
    };
    vec![
        gc("victim", victim, &["GC_Block_Selection_Policy"]),
        gc("start", (threshold - 1).to_string(), &["GC_Exec_Threshold"]),
        gc("stop", threshold.to_string(), &["GC_Exec_Threshold"]),
        gc("hard", hard.to_string(), &[]).noted("10 in MQSim's code, whatever GC_Hard_Threshold says"),
        gc("copy_back", values.flag("Use_Copyback_for_GC").to_string(), &["Use_Copyback_for_GC"]),
    ]
}

fn buffer(values: &Values, flows: Option<&Flows>, remarks: &mut Vec<String>) -> Vec<Key> {
    const MODE: &str = "Device_Level_Data_Caching_Mode";
    let modes: Vec<String> =
        flows.map(|flows| flows.all.iter().map(|flow| flow.values.word(MODE)).collect()).unwrap_or_default();
    let mode = modes.first().map_or("WRITE_CACHE", String::as_str);
    if modes.iter().any(|other| other != mode) {
        remarks.push(format!(
            "{MODE}: the flows say {}; the drive has one buffer for all, configured by the first",
            modes.join(", ")
        ));
    }
    if values.word("Caching_Mechanism") == "SIMPLE" && mode != "TURNED_OFF" {
        remarks.push("Caching_Mechanism: in MQSim, SIMPLE lacks a `break` and fails for every mode but TURNED_OFF; the buffer is that of ADVANCED".to_owned());
    }
    let (reads, writes) = (mode.contains("READ"), mode.contains("WRITE"));
    let capacity = quoted(&size(values.whole("Data_Cache_Capacity")));
    let throttle = planes(values).saturating_mul(values.whole("Page_Capacity"));
    let rate =
        2 * values.whole("Data_Cache_DRAM_Data_Rate") * values.whole("Data_Cache_DRAM_Data_Busrt_Size");
    let latency = values.whole("Data_Cache_DRAM_tRCD").saturating_add(values.whole("Data_Cache_DRAM_tCL"));
    let key = |key: &str, value: String, from: &[&'static str]| {
        Key::new(&format!("flash.buffer.{key}"), value, from)
    };
    let admission = if reads { "always" } else { "writes_only" };
    vec![
        key("capacity", capacity.clone(), &["Data_Cache_Capacity"]),
        key("in_flight", capacity, &["Data_Cache_Capacity"]).noted("without a separate limit in MQSim"),
        key("reads", reads.to_string(), &[MODE]),
        key("writes", writes.to_string(), &[MODE]),
        key("admission", quoted(admission), &[MODE]),
        key("throttle", quoted(&size(throttle)), &["Page_Capacity"]).noted("one page in every plane"),
        key(
            "bandwidth",
            quoted(&format!("{rate}MB/s")),
            &["Data_Cache_DRAM_Data_Rate", "Data_Cache_DRAM_Data_Busrt_Size"],
        ),
        key("latency", quoted(&time_ns(latency)), &["Data_Cache_DRAM_tRCD", "Data_Cache_DRAM_tCL"]),
    ]
}

fn host(values: &Values, flows: u64, remarks: &mut Vec<String>) -> Vec<Key> {
    let (lane, lanes) = (values.real("PCIe_Lane_Bandwidth"), values.whole("PCIe_Lane_Count"));
    if values.word("HostInterface_Type") == "SATA" {
        remarks.push("HostInterface_Type: SATA is not carried; the drive has NVMe queues of IO_Queue_Depth (for a SATA drive, use `flash.host.link.sata` with `flash.host.ahci` instead)".to_owned());
    }
    // Headers and link: 28 B per packet of at most 128 B (`PCIe_Link.h`).
    const PAYLOAD: f64 = 128.0;
    const HEAD: u64 = 28;
    let payload = lane * lanes as f64 * 1000.0 * PAYLOAD / (PAYLOAD + HEAD as f64);
    let message = |bytes: u64| libm::floor((bytes + HEAD).div_ceil(lanes) as f64 / lane) as u64;
    let link: &[&'static str] = &["PCIe_Lane_Bandwidth", "PCIe_Lane_Count"];
    let nvme = |key: &str, value: String, from: &[&'static str]| {
        Key::new(&format!("flash.host.nvme.{key}"), value, from)
    };
    let held = values.whole("Queue_Fetch_Size") * flows;
    vec![
        Key::new(
            "flash.host.link.plain.bandwidth",
            quoted(&format!("{}MB/s", libm::round(payload).max(1.0))),
            link,
        ),
        nvme("queues", flows.to_string(), &[]).noted("one queue per flow"),
        nvme("depth", values.whole("IO_Queue_Depth").to_string(), &["IO_Queue_Depth"]),
        nvme("in_controller", held.to_string(), &["Queue_Fetch_Size"]),
        nvme("doorbell", quoted(&time_ns(message(2))), link),
        nvme("fetch", quoted(&time_ns(message(4) + message(72))), link),
    ]
}

/// Precondition: the steady state under random writes of the share that flows fill in MQSim.
fn state(values: &Values, flows: Option<&Flows>, remarks: &mut Vec<String>) -> Vec<Key> {
    const FROM: &[&str] = &["Enabled_Preconditioning", "Initial_Occupancy_Percentage"];
    if !values.flag("Enabled_Preconditioning") {
        return vec![Key::new("flash.precondition", quoted("none"), &["Enabled_Preconditioning"])];
    }
    let Some(flows) = flows else {
        remarks.push("Enabled_Preconditioning: the fill level is set by the flows; without them the drive starts empty. Give workload.xml too, or `--precondition analytic:share=75%`".to_owned());
        return vec![Key::new("flash.precondition", quoted("none"), &["Enabled_Preconditioning"])];
    };
    let filled = flows.occupancy();
    if filled <= 0.0 {
        return vec![Key::new("flash.precondition", quoted("none"), FROM)];
    }
    remarks.push(format!("Initial_Occupancy_Percentage: {} of the logical space, from its beginning, in the steady state of random writes; MQSim draws the filled pages inside each flow's share, and always leaves half of GC_Exec_Threshold free", share(filled)));
    vec![Key::new(
        "flash.precondition",
        format!("{{ analytic = {{ share = \"{}\" }} }}", share(filled)),
        FROM,
    )]
}

// Flows of a scenario, and the part of the drive that each has.

/// Flow of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Settings of the flow.
    pub(super) values: Values,
    /// True if the flow replays a trace.
    pub(super) is_trace: bool,
    /// Place in the file.
    pub(super) place: Place,
    /// First byte of its share of the logical space.
    pub(super) first: u64,
    /// Size of its share in bytes.
    pub(super) bytes: u64,
}

/// Flows of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    /// Flows in file order.
    pub(super) all: Vec<Flow>,
}

/// Settings that select channels, chips, dies and planes, with the setting that bounds each.
const SETS: [(&str, &str); 4] = [
    ("Channel_IDs", "Flash_Channel_Count"),
    ("Chip_IDs", "Chip_No_Per_Channel"),
    ("Die_IDs", "Die_No_Per_Chip"),
    ("Plane_IDs", "Plane_No_Per_Die"),
];

/// Maximum size of a drive in bytes.
const LARGEST: u64 = 1 << 62;

/// Maximum number of planes for which shares are counted one by one.
const MOST: u64 = 1 << 20;

impl Flows {
    /// Gives each flow its share of the logical space, as MQSim does: the flows that name a plane share it evenly, and
    /// follow each other.
    ///
    /// # Errors
    /// A flow names a channel, chip, die or plane that the drive does not have.
    pub(super) fn place(&mut self, drive: &Values) -> Result<(), Diagnostic> {
        let sets: Vec<[Vec<u64>; 4]> =
            self.all.iter().map(|flow| sets(flow, drive)).collect::<Result<_, _>>()?;
        let usable = usable_sectors(drive);
        let whole = |set: &[Vec<u64>; 4]| {
            set.iter().zip(SETS).all(|(set, (_, bound))| set.len() as u64 == drive.whole(bound))
        };
        let sectors: Vec<u64> = if sets.iter().all(whole) || planes(drive) > MOST {
            let sharing = sets.len().max(1) as f64;
            sets.iter().map(|_| ((usable / sharing) as u64).saturating_mul(planes(drive))).collect()
        } else {
            shares(&sets, usable)
        };
        let page = drive.whole("Page_Capacity");
        let mut first = 0u64;
        for (flow, sectors) in self.all.iter_mut().zip(sectors) {
            flow.first = first.div_ceil(page) * page;
            first = first.saturating_add(sectors.saturating_mul(SECTOR)).min(LARGEST);
            flow.bytes = first.saturating_sub(flow.first) / page * page;
        }
        Ok(())
    }

    /// Share of the logical space that the flows fill before they begin.
    pub(super) fn occupancy(&self) -> f64 {
        let all: f64 = self.all.iter().map(|flow| flow.bytes as f64).sum();
        let filled =
            |flow: &Flow| flow.bytes as f64 * flow.values.real("Initial_Occupancy_Percentage") / 100.0;
        let share = self.all.iter().map(filled).sum::<f64>() / all.max(1.0);
        // Rounded to a hundredth of a percent.
        libm::round(share * 1e4) / 1e4
    }
}

/// Sectors of a plane that are visible to the host.
fn usable_sectors(drive: &Values) -> f64 {
    let raw =
        ["Block_No_Per_Plane", "Page_No_Per_Block"].iter().fold(1.0, |all, name| all * drive.real(name));
    raw * (drive.whole("Page_Capacity") / SECTOR) as f64 * (1.0 - drive.real("Overprovisioning_Ratio"))
}

/// Channels, chips, dies and planes that a flow names; all of them if it names none.
fn sets(flow: &Flow, drive: &Values) -> Result<[Vec<u64>; 4], Diagnostic> {
    let one = |(name, bound): (&'static str, &'static str)| {
        let there = drive.whole(bound);
        if !flow.values.is_given(name) {
            return Ok((0..there).collect());
        }
        let named = flow.values.numbers(name);
        match named.iter().find(|id| **id >= there) {
            Some(id) => {
                let what = format!("`{name}` names {id}, and `{bound}` is {there}");
                let help = format!("they count from 0 to {}", there - 1);
                Err(Diagnostic::new(what).at(flow.values.place(name)).help(help))
            }
            None => Ok(named),
        }
    };
    let [channels, chips, dies, planes] = SETS.map(one);
    Ok([channels?, chips?, dies?, planes?])
}

/// Sectors of each flow, added up over planes.
fn shares(sets: &[[Vec<u64>; 4]], usable: f64) -> Vec<u64> {
    let names = |set: &[Vec<u64>; 4], at: &[u64; 4]| {
        set.iter().zip(at).all(|(set, id)| set.binary_search(id).is_ok())
    };
    let of = |set: &[Vec<u64>; 4]| {
        let [channels, chips, dies, planes] = set;
        let mut sectors = 0;
        for c in channels {
            for w in chips {
                for d in dies {
                    for p in planes {
                        let sharing = sets.iter().filter(|other| names(other, &[*c, *w, *d, *p])).count();
                        sectors += (usable / sharing as f64) as u64;
                    }
                }
            }
        }
        sectors
    };
    sets.iter().map(of).collect()
}
