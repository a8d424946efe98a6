//! Settings of MQSim's `ssdconfig.xml` and of the flows in its `workload.xml`, one per line, with MQSim's defaults.
//! Read from its source at commit 7ec40e3 (`src/exec/*_Parameter_Set.cpp`, and uses of the values). The
//! `calibration.md` of the shipped system `mqsim-default` explains their conversion.

use crate::setting::Class::{Carried, Differs, Inert, Missing};
use crate::setting::Kind::{Flag, Numbers, Real, Text, Whole, Word};
use crate::setting::{Setting, setting};

const U16: u64 = u16::MAX as u64;
const U32: u64 = u32::MAX as u64;
const NS: u64 = 3_600_000_000_000;
const SHARING: &[&str] = &["SHARED", "EQUAL_PARTITIONING"];
const SUSPEND: &str = "without effect in MQSim: the case of a busy chip falls through to `return false` in both schedulers, so no command is ever suspended; flash.die.suspend is off";
const WEAR: &str = "not passed on in MQSim: SSD_Device passes its random seed instead, so levelling is always on, both kinds, at 100; here dynamic levelling is on, and static levelling, which loses requests in MQSim, is left out";
const MISSPELT: &str = "silently ignored by MQSim: its parser uses a different spelling";

/// Settings of its `Host_Parameter_Set`.
pub(super) const HOST: &[Setting] = &[
    setting(
        "PCIe_Lane_Bandwidth",
        Real(0.001, 1000.0),
        "0.4",
        Carried,
        "GB/s, less 28 B of headers for each 128 B of payload",
    ),
    setting("PCIe_Lane_Count", Whole(1, 1024), "4", Carried, ""),
    setting(
        "SATA_Processing_Delay",
        Whole(0, NS),
        "0",
        Missing,
        "see flash.host.ahci; imported with NVMe queues",
    ),
    setting(
        "Enable_ResponseTime_Logging",
        Flag,
        "false",
        Differs,
        "every result has series over time; `--log FILE` writes a line for each request",
    ),
    setting(
        "ResponseTime_Logging_Period_Length",
        Whole(0, NS),
        "400000",
        Differs,
        "windows of a result's series double in width to keep at most 512",
    ),
];

/// Settings of its `Device_Parameter_Set`.
pub(super) const DEVICE: &[Setting] = &[
    setting("Seed", Whole(0, U32), "123", Differs, "random numbers differ: `--seed N` of a run"),
    setting(
        "Enabled_Preconditioning",
        Flag,
        "true",
        Carried,
        "flash.precondition, with Initial_Occupancy_Percentage of the flows; without flows the drive starts empty",
    ),
    setting("Memory_Type", Word(&["FLASH"]), "FLASH", Carried, "flash"),
    setting("HostInterface_Type", Word(&["NVME", "SATA"]), "NVME", Carried, "flash.host.nvme"),
    setting("IO_Queue_Depth", Whole(1, U16), "1024", Carried, ""),
    setting(
        "Queue_Fetch_Size",
        Whole(1, U16),
        "512",
        Carried,
        "per queue in MQSim, for all queues together here: multiplied by the flows",
    ),
    setting(
        "Caching_Mechanism",
        Word(&["SIMPLE", "ADVANCED"]),
        "ADVANCED",
        Carried,
        "flash.buffer; SIMPLE fails in MQSim unless the flows turn caching off",
    ),
    setting(
        "Data_Cache_Sharing_Mode",
        Word(SHARING),
        "SHARED",
        Missing,
        "one buffer for all flows: partitions are not modelled",
    ),
    setting("Data_Cache_Capacity", Whole(0, U32), "536870912", Carried, ""),
    setting(
        "Data_Cache_DRAM_Row_Size",
        Whole(1, U32),
        "8192",
        Inert,
        "MQSim's formula for more than a row divides by the burst time instead of multiplying: 461 ns for 12 KiB, 41 us for 8, 16 and 24 KiB; here every byte takes its time",
    ),
    setting(
        "Data_Cache_DRAM_Data_Rate",
        Whole(1, 1_000_000),
        "800",
        Carried,
        "MT/s, doubled in MQSim, times the burst size",
    ),
    setting("Data_Cache_DRAM_Data_Busrt_Size", Whole(1, 4096), "4", Carried, "bytes per transfer"),
    setting("Data_Cache_DRAM_Data_Burst_Size", Whole(1, 4096), "", Inert, MISSPELT),
    setting("Data_Cache_DRAM_tRCD", Whole(0, NS), "13", Carried, "ns; the latency is tRCD + tCL"),
    setting("Data_Cache_DRAM_tCL", Whole(0, NS), "13", Carried, "ns; the latency is tRCD + tCL"),
    setting(
        "Data_Cache_DRAM_tRP",
        Whole(0, NS),
        "13",
        Inert,
        "used only in the wrong formula for more than a row",
    ),
    setting(
        "Address_Mapping",
        Word(&["PAGE_LEVEL", "HYBRID"]),
        "PAGE_LEVEL",
        Carried,
        "page mapping; HYBRID is a class of empty functions in MQSim",
    ),
    setting("Ideal_Mapping_Table", Flag, "false", Carried, ""),
    setting(
        "CMT_Capacity",
        Whole(0, U32),
        "2097152",
        Carried,
        "MQSim's entries have log2 of all pages bits, and a bit per sector",
    ),
    setting(
        "CMT_Sharing_Mode",
        Word(SHARING),
        "SHARED",
        Missing,
        "all flows share the cached mapping: partitions are not modelled",
    ),
    setting("Plane_Allocation_Scheme", Word(SCHEMES), "CWDP", Carried, "the address determines the plane"),
    setting(
        "Transaction_Scheduling_Policy",
        Word(&["OUT_OF_ORDER", "PRIORITY_OUT_OF_ORDER", "FLIN"]),
        "OUT_OF_ORDER",
        Carried,
        "order: mapping reads, reads, writes, GC; priority classes within a kind are not modelled",
    ),
    setting("Overprovisioning_Ratio", Real(0.0, 0.99), "0.07", Carried, ""),
    setting(
        "GC_Exec_Threshold",
        Real(0.0, 1.0),
        "0.05",
        Carried,
        "share of a plane's blocks, at least 10 blocks in MQSim",
    ),
    setting(
        "GC_Block_Selection_Policy",
        Word(&["GREEDY", "RGA", "RANDOM", "RANDOM_P", "RANDOM_PP", "FIFO"]),
        "RGA",
        Carried,
        "RGA draws log2 of a plane's blocks",
    ),
    setting("Use_Copyback_for_GC", Flag, "false", Carried, ""),
    setting(
        "Preemptible_GC_Enabled",
        Flag,
        "true",
        Differs,
        "if off, GC has precedence on its chip in MQSim, which then loses requests; here it yields to the host until flash.ftl.gc.hard",
    ),
    setting(
        "GC_Hard_Threshold",
        Real(0.0, 1.0),
        "0.005",
        Differs,
        "when preemptible GC takes precedence; flash.ftl.gc.hard sets when writes wait, which in MQSim is always below 10 free blocks",
    ),
    setting("Dynamic_Wearleveling_Enabled", Flag, "true", Inert, WEAR),
    setting("Static_Wearleveling_Enabled", Flag, "true", Inert, WEAR),
    setting("Static_Wearleveling_Threshold", Whole(0, U32), "100", Inert, WEAR),
    setting(
        "Preferred_suspend_erase_time_for_read",
        Whole(0, NS),
        "700000",
        Inert,
        "MQSim's parser reads `Prefered_suspend_erase_time_for_read`, and no command is ever suspended",
    ),
    setting("Prefered_suspend_erase_time_for_read", Whole(0, NS), "700000", Inert, SUSPEND),
    setting("Preferred_suspend_erase_time_for_write", Whole(0, NS), "700000", Inert, SUSPEND),
    setting("Preferred_suspend_write_time_for_read", Whole(0, NS), "100000", Inert, SUSPEND),
    setting("Flash_Channel_Count", Whole(1, 65_536), "8", Carried, ""),
    setting(
        "Flash_Channel_Width",
        Whole(1, 64),
        "1",
        Carried,
        "bytes; above two, the rate is raised instead",
    ),
    setting("Channel_Transfer_Rate", Whole(1, 100_000), "300", Carried, "MT/s"),
    setting("Chip_No_Per_Channel", Whole(1, 65_536), "4", Carried, ""),
    setting("Flash_Comm_Protocol", Word(&["NVDDR2"]), "NVDDR2", Carried, ""),
];

/// Settings of its `Flash_Parameter_Set`.
pub(super) const FLASH: &[Setting] = &[
    setting("Flash_Technology", Word(&["SLC", "MLC", "TLC"]), "MLC", Carried, ""),
    setting(
        "CMD_Suspension_Support",
        Word(&["NONE", "ERASE", "PROGRAM", "PROGRAM_ERASE"]),
        "ERASE",
        Inert,
        SUSPEND,
    ),
    setting("Page_Read_Latency_LSB", Whole(0, NS), "75000", Carried, "ns, plus 20 ns added by the chip"),
    setting("Page_Read_Latency_CSB", Whole(0, NS), "75000", Carried, "TLC only"),
    setting("Page_Read_Latency_MSB", Whole(0, NS), "75000", Carried, "MLC and TLC"),
    setting("Page_Program_Latency_LSB", Whole(0, NS), "750000", Carried, "ns"),
    setting("Page_Program_Latency_CSB", Whole(0, NS), "750000", Carried, "TLC only"),
    setting("Page_Program_Latency_MSB", Whole(0, NS), "750000", Carried, "MLC and TLC"),
    setting("Block_Erase_Latency", Whole(0, NS), "3800000", Carried, "ns"),
    setting(
        "Block_PE_Cycles_Limit",
        Whole(0, U32),
        "10000",
        Inert,
        "length of an erase histogram: blocks do not wear out",
    ),
    setting("Suspend_Erase_Time", Whole(0, NS), "700000", Inert, SUSPEND),
    setting("Suspend_Program_Time", Whole(0, NS), "100000", Inert, SUSPEND),
    setting(
        "Die_No_Per_Chip",
        Whole(1, 65_536),
        "2",
        Carried,
        "one die of a chip works at a time, as in MQSim: flash.die.interleave = false",
    ),
    setting("Plane_No_Per_Die", Whole(1, 16), "2", Carried, ""),
    setting("Block_No_Per_Plane", Whole(1, 1 << 28), "2048", Carried, ""),
    setting("Page_No_Per_Block", Whole(1, 1 << 20), "256", Carried, ""),
    setting("Page_Capacity", Whole(512, 1 << 20), "8192", Carried, "bytes"),
    setting(
        "Page_Metadat_Capacity",
        Whole(0, U32),
        "1872",
        Inert,
        "metadata bytes are never transferred, in MQSim or here",
    ),
    setting("Page_Metadata_Capacity", Text, "", Inert, MISSPELT),
];

/// Orders of channel, way (chip), die and plane that its parser accepts.
const SCHEMES: &[&str] = &[
    "CDPW", "CDWP", "CPDW", "CPWD", "CWDP", "CWPD", "DCPW", "DCWP", "DPCW", "DPWC", "DWCP", "DWPC", "PCDW",
    "PCWD", "PDCW", "PDWC", "PWCD", "PWDC", "WCDP", "WCPD", "WDCP", "WDPC", "WPCD", "WPDC",
];

// Settings of the flows in MQSim's `workload.xml`, one per line. Read from `src/exec/IO_Flow_Parameter_Set.cpp`,
// `src/host/IO_Flow_*.cpp` and `src/host/PCIe_Switch.cpp` of commit 7ec40e3. Fields without a default are uninitialised
// in MQSim where the file does not set them.

const FLOW_NS: u64 = 18_000_000_000_000_000;

const SHARE_OF_FLOW: &str = "the flow's share of the logical space has MQSim's size; its data goes to all planes, because the drive allocates here";

/// Settings of both kinds of flows.
pub(super) const BOTH: &[Setting] = &[
    setting(
        "Priority_Class",
        Word(&["URGENT", "HIGH", "MEDIUM", "LOW"]),
        "HIGH",
        Missing,
        "requests of a flow have no priority at the dies; `flash.host.nvme.arbitration.weighted` is per queue",
    ),
    setting(
        "Device_Level_Data_Caching_Mode",
        Word(&["TURNED_OFF", "WRITE_CACHE", "READ_CACHE", "WRITE_READ_CACHE"]),
        "WRITE_CACHE",
        Carried,
        "per drive here, per flow in MQSim",
    ),
    setting("Channel_IDs", Numbers, "", Differs, SHARE_OF_FLOW),
    setting("Chip_IDs", Numbers, "", Differs, SHARE_OF_FLOW),
    setting("Die_IDs", Numbers, "", Differs, SHARE_OF_FLOW),
    setting("Plane_IDs", Numbers, "", Differs, SHARE_OF_FLOW),
    setting(
        "Initial_Occupancy_Percentage",
        Whole(0, 100),
        "0",
        Carried,
        "flash.precondition, if Enabled_Preconditioning is on; else without effect in MQSim",
    ),
];

/// Additional settings of a synthetic flow.
pub(super) const SYNTHETIC: &[Setting] = &[
    setting("Working_Set_Percentage", Whole(0, 100), "100", Carried, "size; 0 means 100 in MQSim"),
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
        "a standard deviation in MQSim, and so here; bssplit",
    ),
    setting("Seed", Whole(0, u32::MAX as u64), "1", Differs, "randseed: random numbers differ"),
    setting("Average_No_of_Reqs_in_Queue", Whole(1, 65_535), "16", Carried, "iodepth"),
    setting(
        "Bandwidth",
        Whole(0, i32::MAX as u64),
        "0",
        Carried,
        "bytes per second of all requests; rate_iops, where Synthetic_Generator_Type is BANDWIDTH",
    ),
    setting(
        "Intensity",
        Whole(0, i32::MAX as u64),
        "",
        Inert,
        "silently ignored by MQSim: its parser reads `Bandwidth`",
    ),
    setting("Stop_Time", Whole(0, FLOW_NS), "0", Carried, "runtime, in ns"),
    setting(
        "Total_Requests_To_Generate",
        Whole(0, i32::MAX as u64),
        "0",
        Carried,
        "number_ios, where Stop_Time is 0",
    ),
];

/// Additional settings of a flow from a trace.
pub(super) const TRACE: &[Setting] = &[
    setting("File_Path", Text, "", Carried, "the trace, as --workload"),
    setting(
        "Percentage_To_Be_Executed",
        Whole(0, 100),
        "100",
        Carried,
        "--max-requests; in MQSim only if Relay_Count is 1",
    ),
    setting("Relay_Count", Whole(1, 1 << 30), "1", Missing, "a trace is replayed once"),
    setting(
        "Time_Unit",
        Word(&["PICOSECOND", "NANOSECOND", "MICROSECOND"]),
        "NANOSECOND",
        Inert,
        "never used in MQSim: times are always ns",
    ),
];
