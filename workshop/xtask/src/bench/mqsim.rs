//! MQSim on the same device and workload, for ratios, and its two configuration files for a case.
//!
//! The names and the values of [`DEVICE`] and [`FLASH`] are those of the `ssdconfig.xml` that MQSim ships; the D16
//! values state the device that the system `d16` states, with an ideal map and without a data cache.

use super::cases::{Case, Flow};
use super::process::{self, End};
use anyhow::{Result, bail};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);

/// Outcome of a run of MQSim.
pub(super) enum Rival {
    Ran {
        served: u64,
        asked: u64,
        /// CPU time of the simulated part, without preconditioning and building the device.
        simulated: Duration,
        whole: Duration,
    },
    /// Abort or timeout, with the reason in one line.
    Failed(String),
}

/// MQSim binary, given as a file or as its folder.
pub(super) fn locate(path: &Path) -> Result<PathBuf> {
    let file = if path.is_dir() { path.join("MQSim") } else { path.into() };
    if !file.is_file() {
        bail!("no MQSim binary at {}", file.display());
    }
    Ok(file.canonicalize()?)
}

/// Runs a case once, with configuration files in a folder of its own.
pub(super) fn run(binary: &Path, case: &Case, flow: &Flow, workload: &str) -> Result<Rival> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("ssdconfig.xml"), device(flow))?;
    fs::write(folder.path().join("workload.xml"), scenario(flow, case.requests, workload))?;
    let mut command = Command::new(binary);
    command.args(["-i", "ssdconfig.xml", "-w", "workload.xml"]).current_dir(folder.path());
    let mut marks = Marks::default();
    let finished = process::measure(&mut command, LIMIT, &mut |line, cpu| marks.line(line, cpu))?;
    Ok(match finished.end {
        End::TimedOut => Rival::Failed(format!("did not end within {} s", LIMIT.as_secs())),
        End::Exit(status) => marks.rival(finished.cpu).unwrap_or_else(|| {
            let said = finished.stderr.lines().rfind(|line| !line.trim().is_empty());
            Rival::Failed(format!("aborted ({status}): {}", said.unwrap_or(&marks.last)))
        }),
    })
}

/// State read from the lines that MQSim prints.
#[derive(Default)]
struct Marks {
    /// CPU time when the simulated part began: after the last of several set-up steps, else at the start.
    began: Duration,
    ended: Option<Duration>,
    asked: Option<u64>,
    served: Option<u64>,
    last: String,
}

impl Marks {
    fn line(&mut self, line: &str, cpu: Duration) {
        if line.starts_with("Finished preconditioning") || line.ends_with("seems healthy") {
            self.began = cpu;
        } else if line.starts_with("MQSim finished") {
            self.ended = Some(cpu);
        } else if line.starts_with("Flow ") {
            self.asked = number_after(line, "generated:");
            self.served = number_after(line, "serviced:");
        }
        if !line.trim().is_empty() {
            self.last = line.into();
        }
    }

    fn rival(&self, whole: Duration) -> Option<Rival> {
        let simulated = self.ended?.checked_sub(self.began)?;
        Some(Rival::Ran { served: self.served?, asked: self.asked?, simulated, whole })
    }
}

fn number_after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}

type Values = &'static [(&'static str, &'static str)];

const HOST: Values = &[
    ("PCIe_Lane_Bandwidth", "1.00000"),
    ("PCIe_Lane_Count", "4"),
    ("SATA_Processing_Delay", "400000"),
    ("Enable_ResponseTime_Logging", "false"),
    ("ResponseTime_Logging_Period_Length", "1000000"),
];

const DEVICE: Values = &[
    ("Seed", "321"),
    ("Enabled_Preconditioning", "false"),
    ("Memory_Type", "FLASH"),
    ("HostInterface_Type", "NVME"),
    ("IO_Queue_Depth", "65535"),
    ("Queue_Fetch_Size", "512"),
    ("Caching_Mechanism", "ADVANCED"),
    ("Data_Cache_Sharing_Mode", "SHARED"),
    ("Data_Cache_Capacity", "268435456"),
    ("Data_Cache_DRAM_Row_Size", "8192"),
    ("Data_Cache_DRAM_Data_Rate", "100"),
    // The misspelt names are MQSim's.
    ("Data_Cache_DRAM_Data_Busrt_Size", "1"),
    ("Data_Cache_DRAM_tRCD", "13"),
    ("Data_Cache_DRAM_tCL", "13"),
    ("Data_Cache_DRAM_tRP", "13"),
    ("Address_Mapping", "PAGE_LEVEL"),
    ("Ideal_Mapping_Table", "false"),
    ("CMT_Capacity", "2097152"),
    ("CMT_Sharing_Mode", "SHARED"),
    ("Plane_Allocation_Scheme", "CWDP"),
    ("Transaction_Scheduling_Policy", "PRIORITY_OUT_OF_ORDER"),
    ("Overprovisioning_Ratio", "0.07"),
    ("GC_Exec_Threshold", "0.05000"),
    ("GC_Block_Selection_Policy", "RGA"),
    ("Use_Copyback_for_GC", "false"),
    ("Preemptible_GC_Enabled", "false"),
    ("GC_Hard_Threshold", "0.005000"),
    ("Dynamic_Wearleveling_Enabled", "true"),
    ("Static_Wearleveling_Enabled", "true"),
    ("Static_Wearleveling_Threshold", "100"),
    ("Prefered_suspend_erase_time_for_read", "700000"),
    ("Preferred_suspend_erase_time_for_write", "700000"),
    ("Preferred_suspend_write_time_for_read", "100000"),
    ("Flash_Channel_Count", "8"),
    ("Flash_Channel_Width", "1"),
    ("Channel_Transfer_Rate", "333"),
    ("Chip_No_Per_Channel", "4"),
    ("Flash_Comm_Protocol", "NVDDR2"),
];

const FLASH: Values = &[
    ("Flash_Technology", "MLC"),
    ("CMD_Suspension_Support", "ERASE"),
    ("Page_Read_Latency_LSB", "75000"),
    ("Page_Read_Latency_CSB", "75000"),
    ("Page_Read_Latency_MSB", "75000"),
    ("Page_Program_Latency_LSB", "750000"),
    ("Page_Program_Latency_CSB", "750000"),
    ("Page_Program_Latency_MSB", "750000"),
    ("Block_Erase_Latency", "3800000"),
    ("Block_PE_Cycles_Limit", "10000"),
    ("Suspend_Erase_Time", "700000"),
    ("Suspend_Program_Time", "100000"),
    ("Die_No_Per_Chip", "2"),
    ("Plane_No_Per_Die", "2"),
    ("Block_No_Per_Plane", "2048"),
    ("Page_No_Per_Block", "256"),
    ("Page_Capacity", "8192"),
    ("Page_Metadat_Capacity", "448"),
];

/// D16, where it differs.
const D16: Values = &[
    ("PCIe_Lane_Bandwidth", "4.00000"),
    ("Ideal_Mapping_Table", "true"),
    ("Overprovisioning_Ratio", "0.12"),
    ("GC_Block_Selection_Policy", "GREEDY"),
    ("Static_Wearleveling_Enabled", "false"),
    ("Channel_Transfer_Rate", "800"),
    ("CMD_Suspension_Support", "NONE"),
    ("Page_Read_Latency_LSB", "50000"),
    ("Page_Read_Latency_CSB", "50000"),
    ("Page_Read_Latency_MSB", "50000"),
    ("Page_Program_Latency_LSB", "600000"),
    ("Page_Program_Latency_CSB", "600000"),
    ("Page_Program_Latency_MSB", "600000"),
    ("Block_Erase_Latency", "3000000"),
    ("Die_No_Per_Chip", "1"),
    ("Block_No_Per_Plane", "512"),
    ("Page_No_Per_Block", "128"),
    ("Page_Capacity", "4096"),
    ("Page_Metadat_Capacity", "224"),
];

/// Share of the device to fill: a random workload needs a full one; with a sequential one MQSim's preconditioning would
/// not end.
const PRECONDITIONED: Values = &[("Enabled_Preconditioning", "true")];

/// Text of `ssdconfig.xml`.
fn device(flow: &Flow) -> String {
    let changed: [Values; 2] = match flow {
        Flow::Random { .. } => [D16, PRECONDITIONED],
        Flow::Sequential { .. } => [D16, &[]],
        Flow::Trace => [&[], &[]],
    };
    let changed = changed.concat();
    let flash = element("Flash_Parameter_Set", &values(FLASH, &changed));
    let device = element("Device_Parameter_Set", &format!("{}{flash}", values(DEVICE, &changed)));
    let host = element("Host_Parameter_Set", &values(HOST, &changed));
    document("Execution_Parameter_Set", &format!("{host}{device}"))
}

/// Text of `workload.xml`: one scenario with one flow of this many requests.
fn scenario(flow: &Flow, requests: u64, workload: &str) -> String {
    let flow = match *flow {
        Flow::Random { read_percent, queue_depth } => {
            synthetic("RANDOM_UNIFORM", read_percent, 8, queue_depth, requests)
        }
        Flow::Sequential { sectors, queue_depth } => {
            synthetic("STREAMING", 100, sectors, queue_depth, requests)
        }
        Flow::Trace => trace(workload),
    };
    document("MQSim_IO_Scenarios", &element("IO_Scenario", &flow))
}

fn synthetic(distribution: &str, read_percent: u32, sectors: u32, queue_depth: u32, requests: u64) -> String {
    let sectors = sectors.to_string();
    let mut text = place("TURNED_OFF", "0", "100");
    text += &values(
        &[
            ("Working_Set_Percentage", "100"),
            ("Synthetic_Generator_Type", "QUEUE_DEPTH"),
            ("Read_Percentage", &read_percent.to_string()),
            ("Address_Distribution", distribution),
            ("Percentage_of_Hot_Region", "0"),
            ("Generated_Aligned_Addresses", "true"),
            ("Address_Alignment_Unit", &sectors),
            ("Request_Size_Distribution", "FIXED"),
            ("Average_Request_Size", &sectors),
            ("Variance_Request_Size", "0"),
            ("Seed", "798"),
            ("Average_No_of_Reqs_in_Queue", &queue_depth.to_string()),
            ("Bandwidth", "262144"),
            // No limit in time: the number of requests ends the run.
            ("Stop_Time", "0"),
            ("Total_Requests_To_Generate", &requests.to_string()),
        ],
        &[],
    );
    element("IO_Flow_Parameter_Set_Synthetic", &text)
}

/// Trace flow of the `workload.xml` that MQSim ships.
fn trace(path: &str) -> String {
    let mut text = place("WRITE_CACHE", "0,1", "70");
    text += &values(
        &[
            ("File_Path", path),
            ("Percentage_To_Be_Executed", "100"),
            ("Relay_Count", "1"),
            ("Time_Unit", "NANOSECOND"),
        ],
        &[],
    );
    element("IO_Flow_Parameter_Set_Trace_Based", &text)
}

/// Common beginning of both kinds of flow.
fn place(cache: &str, dies: &str, occupancy: &str) -> String {
    values(
        &[
            ("Priority_Class", "HIGH"),
            ("Device_Level_Data_Caching_Mode", cache),
            ("Channel_IDs", "0,1,2,3,4,5,6,7"),
            ("Chip_IDs", "0,1,2,3"),
            ("Die_IDs", dies),
            ("Plane_IDs", "0,1"),
            ("Initial_Occupancy_Percentage", occupancy),
        ],
        &[],
    )
}

/// One element per value; changed values replace the first.
fn values(base: &[(&str, &str)], changed: &[(&str, &str)]) -> String {
    base.iter().fold(String::new(), |mut text, (name, value)| {
        let changed = changed.iter().find(|(other, _)| other == name);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "<{name}>{}</{name}>", changed.map_or(*value, |(_, value)| value));
        text
    })
}

fn element(name: &str, content: &str) -> String {
    format!("<{name}>\n{content}</{name}>\n")
}

fn document(name: &str, content: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"us-ascii\"?>\n{}", element(name, content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cases::{CASES, Case};

    fn marks(lines: &[(&str, u64)]) -> Marks {
        let mut marks = Marks::default();
        lines.iter().for_each(|(line, ms)| marks.line(line, Duration::from_millis(*ms)));
        marks
    }

    #[test]
    fn the_simulated_part_lies_between_set_up_and_the_end() {
        let marks = marks(&[
            ("Executing scenario 1 out of 1 .......", 5),
            ("SSD Device preconditioning started .........", 40),
            ("Finished preconditioning. Duration of preconditioning: 0:0:46", 46_000),
            ("[==>] 10% progress in Host.IO_Flow.Synth.No_0", 47_000),
            ("MQSim finished at Sat Nov 21 02:40:00 2026", 59_000),
            (
                "Flow Host.IO_Flow.Synth.No_0 - total requests generated: 1000000 total requests serviced:999937",
                59_100,
            ),
        ]);
        let Some(Rival::Ran { served, asked, simulated, whole }) = marks.rival(Duration::from_secs(60))
        else {
            panic!("no result")
        };
        assert_eq!((served, asked), (999_937, 1_000_000));
        assert_eq!((simulated, whole), (Duration::from_secs(13), Duration::from_secs(60)));
    }

    #[test]
    fn a_trace_begins_after_it_is_read_and_an_abort_has_no_figures() {
        assert_eq!(marks(&[("Trace file: x.trace seems healthy", 1650)]).began, Duration::from_millis(1650));
        let aborted =
            marks(&[("ERROR:Illegal operation: Unlocking an LPA that has not been locked!", 9), ("", 9)]);
        assert!(aborted.rival(Duration::from_secs(1)).is_none());
        assert!(aborted.last.starts_with("ERROR"));
    }

    fn case(name: &str) -> &'static Case {
        CASES.iter().find(|case| case.name == name).unwrap()
    }

    fn device_of(name: &str) -> String {
        device(case(name).flow.as_ref().unwrap())
    }

    fn scenario_of(name: &str, workload: &str) -> String {
        scenario(case(name).flow.as_ref().unwrap(), case(name).requests, workload)
    }

    fn number(text: &str, name: &str) -> u64 {
        let (_, rest) = text.split_once(&format!("<{name}>")).unwrap();
        rest.split_once('<').unwrap().0.parse().unwrap()
    }

    fn capacity(text: &str) -> u64 {
        [
            "Flash_Channel_Count",
            "Chip_No_Per_Channel",
            "Die_No_Per_Chip",
            "Plane_No_Per_Die",
            "Block_No_Per_Plane",
        ]
        .into_iter()
        .chain(["Page_No_Per_Block", "Page_Capacity"])
        .map(|name| number(text, name))
        .product()
    }

    #[test]
    fn the_capacities_are_16_and_512_gib() {
        assert_eq!(capacity(&device_of("randread")), 16 << 30);
        assert_eq!(capacity(&device_of("tpcc-small")), 512 << 30);
    }

    #[test]
    fn every_change_of_d16_is_used() {
        let text = device_of("randwrite");
        for (name, value) in D16.iter().chain(PRECONDITIONED) {
            assert!(text.contains(&format!("<{name}>{value}</{name}>")), "{name}");
        }
        assert!(device_of("seqread").contains("<Enabled_Preconditioning>false<"));
    }

    #[test]
    fn the_scenario_has_the_requests_of_the_case() {
        let text = scenario_of("seqread", "");
        assert_eq!(number(&text, "Total_Requests_To_Generate"), case("seqread").requests);
        assert_eq!((number(&text, "Average_Request_Size"), number(&text, "Read_Percentage")), (256, 100));
        assert_eq!(number(&scenario_of("mixed", ""), "Read_Percentage"), 70);
        assert!(scenario_of("tpcc-small", "x.trace").contains("<File_Path>x.trace</File_Path>"));
    }

    #[test]
    fn every_element_is_closed_in_order() {
        for flow in CASES.iter().filter_map(|case| case.flow.as_ref()) {
            for text in [device(flow), scenario(flow, 1, "x")] {
                let mut open = Vec::new();
                for tag in text.split('<').skip(2).map(|rest| rest.split_once('>').unwrap().0) {
                    match tag.strip_prefix('/') {
                        Some(name) => assert_eq!(open.pop(), Some(name)),
                        None => open.push(tag),
                    }
                }
                assert!(open.is_empty());
            }
        }
    }
}
