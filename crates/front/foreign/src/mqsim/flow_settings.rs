//! Settings of the flows in MQSim's `workload.xml`: a line each, as those of the drive. Read from `src/exec/IO_Flow_Parameter_Set.cpp`, `src/host/IO_Flow_*.cpp` and `src/host/PCIe_Switch.cpp` of
//! commit 7ec40e3. Fields without a default are not set where the file is silent: MQSim then runs with whatever was in its memory.

use crate::setting::Class::{Carried, Differs, Inert, Missing};
use crate::setting::Kind::{Flag, Numbers, Text, Whole, Word};
use crate::setting::{Setting, setting};

const NS: u64 = 18_000_000_000_000_000;
const RESOURCES: &str = "the flow's share of the logical space is as large as there; its data goes to all planes, because allocation is the drive's here";

/// What both kinds of flows hold.
pub(super) const BOTH: &[Setting] = &[
    setting(
        "Priority_Class",
        Word(&["URGENT", "HIGH", "MEDIUM", "LOW"]),
        "HIGH",
        Missing,
        "requests of a flow carry no priority to the dies; `flash.host.nvme.arbitration.weighted` is by queue",
    ),
    setting(
        "Device_Level_Data_Caching_Mode",
        Word(&["TURNED_OFF", "WRITE_CACHE", "READ_CACHE", "WRITE_READ_CACHE"]),
        "WRITE_CACHE",
        Carried,
        "of the drive here, of each flow there",
    ),
    setting("Channel_IDs", Numbers, "", Differs, RESOURCES),
    setting("Chip_IDs", Numbers, "", Differs, RESOURCES),
    setting("Die_IDs", Numbers, "", Differs, RESOURCES),
    setting("Plane_IDs", Numbers, "", Differs, RESOURCES),
    setting(
        "Initial_Occupancy_Percentage",
        Whole(0, 100),
        "0",
        Carried,
        "flash.precondition, if Enabled_Preconditioning is on; else without effect there",
    ),
];

/// What a synthetic flow holds besides.
pub(super) const SYNTHETIC: &[Setting] = &[
    setting("Working_Set_Percentage", Whole(0, 100), "100", Carried, "size; 0 is 100 there"),
    setting(
        "Synthetic_Generator_Type",
        Word(&["QUEUE_DEPTH", "BANDWIDTH"]),
        "QUEUE_DEPTH",
        Carried,
        "iodepth, or rate_iops with rate_process=poisson",
    ),
    setting("Read_Percentage", Whole(0, 100), "100", Carried, "rw and rwmixread"),
    setting(
        "Address_Distribution",
        Word(&["RANDOM_UNIFORM", "RANDOM_HOTCOLD", "STREAMING"]),
        "RANDOM_UNIFORM",
        Carried,
        "rw and random_distribution",
    ),
    setting(
        "Percentage_of_Hot_Region",
        Whole(0, 100),
        "0",
        Carried,
        "h % of the space gets 100 - h % of the requests: random_distribution=zoned",
    ),
    setting("Generated_Aligned_Addresses", Flag, "true", Carried, "blockalign"),
    setting("Address_Alignment_Unit", Whole(1, 1 << 24), "16", Carried, "blockalign, in sectors of 512 B"),
    setting("Request_Size_Distribution", Word(&["FIXED", "NORMAL"]), "FIXED", Carried, "bs, or bssplit"),
    setting("Average_Request_Size", Whole(1, 1 << 20), "8", Carried, "bs, in sectors of 512 B"),
    setting(
        "Variance_Request_Size",
        Whole(0, 1 << 20),
        "0",
        Carried,
        "taken for a standard deviation there, and so here; bssplit",
    ),
    setting(
        "Seed",
        Whole(0, u32::MAX as u64),
        "1",
        Differs,
        "randseed: another generator draws other numbers from it",
    ),
    setting("Average_No_of_Reqs_in_Queue", Whole(1, 65_535), "16", Carried, "iodepth"),
    setting(
        "Bandwidth",
        Whole(0, i32::MAX as u64),
        "0",
        Carried,
        "bytes a second of all requests; rate_iops, where Synthetic_Generator_Type is BANDWIDTH",
    ),
    setting(
        "Intensity",
        Whole(0, i32::MAX as u64),
        "",
        Inert,
        "passed over in silence there: its parser reads `Bandwidth`",
    ),
    setting("Stop_Time", Whole(0, NS), "0", Carried, "runtime, in ns"),
    setting(
        "Total_Requests_To_Generate",
        Whole(0, i32::MAX as u64),
        "0",
        Carried,
        "number_ios, where Stop_Time is 0",
    ),
];

/// What a flow from a trace holds besides.
pub(super) const TRACE: &[Setting] = &[
    setting("File_Path", Text, "", Carried, "the trace, as --workload"),
    setting(
        "Percentage_To_Be_Executed",
        Whole(0, 100),
        "100",
        Carried,
        "--max-requests; counts there only if Relay_Count is 1",
    ),
    setting("Relay_Count", Whole(1, 1 << 30), "1", Missing, "a trace is replayed once"),
    setting(
        "Time_Unit",
        Word(&["PICOSECOND", "NANOSECOND", "MICROSECOND"]),
        "NANOSECOND",
        Inert,
        "read and never used there: times are always taken for ns",
    ),
];
