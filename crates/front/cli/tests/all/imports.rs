//! `import`, and files of MQSim that are run as they are.

use crate::common::{file, nandscape};
use serde_json::Value;
use std::path::Path;

/// Values of MQSim's `ssdconfig.xml` at commit 7ec40e3, set by set.
const HOST: &str = "PCIe_Lane_Bandwidth 1.00000 PCIe_Lane_Count 4 SATA_Processing_Delay 400000 Enable_ResponseTime_Logging false ResponseTime_Logging_Period_Length 1000000";
const DEVICE: &str = "Seed 321 Enabled_Preconditioning false Memory_Type FLASH HostInterface_Type NVME IO_Queue_Depth 65535 Queue_Fetch_Size 512 Caching_Mechanism ADVANCED
 Data_Cache_Sharing_Mode SHARED Data_Cache_Capacity 268435456 Data_Cache_DRAM_Row_Size 8192 Data_Cache_DRAM_Data_Rate 100 Data_Cache_DRAM_Data_Busrt_Size 1 Data_Cache_DRAM_tRCD 13
 Data_Cache_DRAM_tCL 13 Data_Cache_DRAM_tRP 13 Address_Mapping PAGE_LEVEL Ideal_Mapping_Table false CMT_Capacity 2097152 CMT_Sharing_Mode SHARED Plane_Allocation_Scheme CWDP
 Transaction_Scheduling_Policy PRIORITY_OUT_OF_ORDER Overprovisioning_Ratio 0.07 GC_Exec_Threshold 0.05000 GC_Block_Selection_Policy RGA Use_Copyback_for_GC false
 Preemptible_GC_Enabled false GC_Hard_Threshold 0.005000 Dynamic_Wearleveling_Enabled true Static_Wearleveling_Enabled true Static_Wearleveling_Threshold 100
 Preferred_suspend_erase_time_for_read 700000 Preferred_suspend_erase_time_for_write 700000 Preferred_suspend_write_time_for_read 100000 Flash_Channel_Count 8 Flash_Channel_Width 1
 Channel_Transfer_Rate 333 Chip_No_Per_Channel 4 Flash_Comm_Protocol NVDDR2";
const FLASH: &str = "Flash_Technology MLC CMD_Suspension_Support ERASE Page_Read_Latency_LSB 75000 Page_Read_Latency_CSB 75000 Page_Read_Latency_MSB 75000 Page_Program_Latency_LSB 750000
 Page_Program_Latency_CSB 750000 Page_Program_Latency_MSB 750000 Block_Erase_Latency 3800000 Block_PE_Cycles_Limit 10000 Suspend_Erase_Time 700000 Suspend_Program_Time 100000
 Die_No_Per_Chip 2 Plane_No_Per_Die 2 Block_No_Per_Plane 2048 Page_No_Per_Block 256 Page_Capacity 8192 Page_Metadat_Capacity 448";

fn tags(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.chunks(2).map(|pair| format!("\t<{0}>{1}</{0}>\n", pair[0], pair[1])).collect()
}

fn drive(host: &str, device: &str, flash: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"us-ascii\"?>\n<Execution_Parameter_Set>\n<Host_Parameter_Set>\n{}</Host_Parameter_Set>\n<Device_Parameter_Set>\n{}<Flash_Parameter_Set>\n{}</Flash_Parameter_Set>\n</Device_Parameter_Set>\n</Execution_Parameter_Set>\n",
        tags(host),
        tags(device),
        tags(flash)
    )
}

/// A drive of 32 MiB with a map in memory.
fn small() -> String {
    drive(
        "",
        "Ideal_Mapping_Table true Enabled_Preconditioning true Flash_Channel_Count 2 Chip_No_Per_Channel 2 Overprovisioning_Ratio 0.3 GC_Exec_Threshold 0.1",
        "Die_No_Per_Chip 1 Plane_No_Per_Die 2 Block_No_Per_Plane 128 Page_No_Per_Block 8 Page_Capacity 4096",
    )
}

/// Two flows of a scenario, one that reads and one that writes; and a scenario with one alone.
fn flows() -> String {
    let flow = |reads: u32, seed: u32| {
        format!(
            "<IO_Flow_Parameter_Set_Synthetic>{}</IO_Flow_Parameter_Set_Synthetic>",
            tags(&format!(
                "Channel_IDs 0,1 Initial_Occupancy_Percentage 80 Working_Set_Percentage 70 Read_Percentage {reads} Address_Alignment_Unit 8 Average_Request_Size 8 Seed {seed} Average_No_of_Reqs_in_Queue 4 Intensity 7 Total_Requests_To_Generate 300"
            ))
        )
    };
    format!(
        "<MQSim_IO_Scenarios><IO_Scenario>{}{}</IO_Scenario><IO_Scenario>{}</IO_Scenario></MQSim_IO_Scenarios>",
        flow(100, 1),
        flow(0, 2),
        flow(50, 3)
    )
}

/// A folder with both files; their names.
fn pair() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let drive = file(folder.path(), "ssd.xml", small());
    let load = file(folder.path(), "load.xml", flows());
    (folder, drive, load)
}

/// The resolved spec, without what it is called.
fn spec(system: &str) -> Vec<String> {
    let text = nandscape(&["check", system]).well().stdout;
    // A time may be written in two ways.
    text.lines()
        .filter(|line| !line.starts_with("description"))
        .map(|line| line.replace("75020ns", "75.02us"))
        .collect()
}

#[test]
fn mqsims_own_drive_is_mqsim_default() {
    let folder = tempfile::tempdir().unwrap();
    let xml = file(folder.path(), "ssdconfig.xml", drive(HOST, DEVICE, FLASH));
    let out = folder.path().join("my.toml").display().to_string();
    let told = nandscape(&["import", "mqsim", &xml, "-o", &out]).well().stderr;
    assert_eq!(spec(&out), spec("mqsim-default"));
    // As it is, too.
    assert_eq!(
        spec(&xml).iter().filter(|line| !line.starts_with('#')).cloned().collect::<Vec<_>>(),
        spec("mqsim-default")
    );
    // Each setting in one class.
    let settings = (HOST.split_whitespace().count()
        + DEVICE.split_whitespace().count()
        + FLASH.split_whitespace().count())
        / 2;
    assert!(told.contains(&format!("{settings} settings:")), "{told}");
    for name in [HOST, DEVICE, FLASH].join(" ").split_whitespace().step_by(2) {
        assert_eq!(told.matches(&format!("\n  {name} = ")).count(), 1, "{name}");
    }
    let class_of = |name: &str| {
        let at = told.find(&format!("\n  {name} = ")).unwrap();
        told[..at].lines().rev().find(|line| !line.starts_with("  ") && !line.is_empty()).unwrap().to_owned()
    };
    assert_eq!(class_of("Flash_Channel_Count"), "carried");
    assert_eq!(class_of("GC_Hard_Threshold"), "different here");
    assert_eq!(class_of("Preferred_suspend_erase_time_for_read"), "bug or without effect there");
    assert_eq!(class_of("CMT_Sharing_Mode"), "not modelled here");
}

#[test]
fn a_pair_runs_as_it_is_and_as_what_is_imported_alike() {
    let (folder, drive, load) = pair();
    let out = folder.path().join("my.toml").display().to_string();
    nandscape(&["import", "mqsim", &drive, &load, "-o", &out]).well();
    let jobs = folder.path().join("my.scenario-1.fio").display().to_string();
    let imported = nandscape(&["run", &out, "--workload", &jobs, "--json"]).well().json();
    let direct =
        nandscape(&["run", &drive, "--workload", &format!("{load}:scenario=1"), "--json"]).well().json();
    // A job file numbers its jobs, and other numbers draw other addresses: the same flows one by one do as the pair
    // does.
    let flows: Vec<&str> = direct["workload"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let again =
        nandscape(&["run", &out, "--workload", flows[0], "--workload", flows[1], "--json"]).well().json();
    assert!(again["io"] == direct["io"], "{flows:?}");
    for result in [&imported, &again] {
        assert_eq!(result["spec_sha256"], direct["spec_sha256"]);
        assert_eq!(result["io"]["read"]["requests"], direct["io"]["read"]["requests"]);
    }
    let io = &direct["io"];
    assert_eq!((&io["read"]["requests"], &io["write"]["requests"]), (&300.into(), &300.into()));
    assert_eq!(direct["spec"]["flash"]["precondition"]["analytic"]["share"], 0.8);
    let warnings = direct["warnings"].to_string();
    assert!(warnings.contains("bug or without effect there: Intensity"), "{warnings}");
    assert!(warnings.contains("not modelled here: ") || warnings.contains("different here: "), "{warnings}");
    // Each scenario in its turn, as there.
    let both = nandscape(&["run", &drive, "--workload", &load]).well();
    assert!(
        both.stderr.contains("scenario 1 of 2") && both.stderr.contains("scenario 2 of 2"),
        "{}",
        both.stderr
    );
    assert_eq!(both.stdout.matches("checks, all passed").count(), 2, "{}", both.stdout);
    let checked = nandscape(&["check", &drive, "--workload", &format!("{load}:scenario=2")]).well().stdout;
    assert!(checked.contains("queues = 1") && checked.contains("# "), "{checked}");
}

#[test]
fn a_trace_of_a_scenario_lies_beside_its_file() {
    let (folder, drive, _) = pair();
    file(folder.path(), "t.trace", "0 0 8 8 1\n1000 0 64 8 0\n2000 0 16 8 1\n");
    let trace = "<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Trace_Based><File_Path>t.trace</File_Path><Percentage_To_Be_Executed>50</Percentage_To_Be_Executed><Time_Unit>MICROSECOND</Time_Unit></IO_Flow_Parameter_Set_Trace_Based></IO_Scenario></MQSim_IO_Scenarios>";
    let load = file(folder.path(), "trace.xml", trace);
    let result = nandscape(&["run", &drive, "--workload", &load, "--json"]).well().json();
    assert_eq!(
        (&result["io"]["read"]["requests"], &result["io"]["write"]["requests"]),
        (&2.into(), &1.into())
    );
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("not 50 % of it") && warnings.contains("treats times as ns"), "{warnings}");
    std::fs::remove_file(folder.path().join("t.trace")).unwrap();
    let gone = nandscape(&["run", &drive, "--workload", &load]);
    assert_eq!(gone.code, Some(2));
    assert!(
        gone.stderr.contains("`t.trace`") && gone.stderr.contains("relative paths start from"),
        "{}",
        gone.stderr
    );
}

#[test]
fn what_cannot_be_imported_is_one_diagnostic() {
    let (folder, drive, load) = pair();
    let path = |name: &str, text: &str| file(folder.path(), name, text);
    let odd = path("odd.xml", &small().replace("Chip_No_Per_Channel", "Chip_No_Per_Chanel"));
    let none = path("none.xml", &small().replace("<Page_Capacity>4096", "<Page_Capacity>6000"));
    let svg = path("svg.xml", "<svg></svg>");
    let own = path("own.json", "{\"schema\":\"nandscape.result/2\"}");
    let missing = folder.path().join("no/my.toml").display().to_string();
    let second = format!("{load}:scenario=3");
    for (arguments, part) in [
        (&["import", "mqsim", &odd, "--strict"][..], "did you mean `Chip_No_Per_Channel`?"),
        (&["import", "mqsim", &none], "none.xml:17:2"),
        (&["import", "mqsim", &none], "comes from `Page_Capacity`"),
        (&["run", &none, "--workload", "randread"], "none.xml:17:2"),
        (&["check", &none, "--set", "flash.geometry.pages=16"], "none.xml:17:2"),
        (&["check", &drive, "--set", "flash.geometry.page_size=6000B"], "--> --set"),
        (&["import", "mqsim", &svg], "its root is <svg>"),
        (&["import", "mqsim", &load], "takes them second"),
        (&["import", "mqsim", &drive, &drive], "takes it first"),
        (&["import", "mqsim", "gone.xml"], "cannot read `gone.xml`"),
        (&["import", "mqsim", &drive, "-o", &missing], "the folder"),
        (&["import", "mqsim", &drive, &load, "--scenario", "3"], "has no scenario 3"),
        (&["run", &drive, "--workload", &second], "has no scenario 3"),
        (&["run", &drive, "--workload", &load, "--json"], "scenario=1"),
        (&["run", &drive, "--workload", &load, "--workload", &load], "a run takes one"),
        (&["run", "d16", "--workload", &load], "give its drive too"),
        (&["import", "simplessd", &svg], "its root must be <simplessd>"),
        (&["import", "fio-json", &svg], "is not JSON"),
        (&["import", "fio-json", &own], "read it directly"),
    ] {
        let done = nandscape(arguments);
        assert_eq!(done.code, Some(2), "{arguments:?}: {}", done.stderr);
        assert!(
            done.stderr.contains(part) && done.stderr.starts_with("error: "),
            "{arguments:?}: {}",
            done.stderr
        );
        assert_eq!(
            (done.stderr.matches("error: ").count(), done.stdout.as_str()),
            (1, ""),
            "{}",
            done.stderr
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 6, "nothing half written");
}

/// Overrides are part of what is checked: one may mend what the file asks for.
#[test]
fn an_override_comes_before_the_checks_of_an_import() {
    let (folder, ..) = pair();
    let text = small().replace("<Page_Capacity>4096", "<Page_Capacity>6000");
    let odd = file(folder.path(), "odd.xml", text);
    let refused = nandscape(&["check", &odd]);
    assert!(refused.code == Some(2) && !refused.stderr.contains("becomes"), "{}", refused.stderr);
    let mended = ["--set", "flash.geometry.page_size=4KiB", "--set", "flash.ftl.map_unit=4KiB"];
    let checked = nandscape(&[&["check", &odd][..], &mended].concat()).well().stdout;
    assert!(checked.contains("page_size = \"4KiB\""), "{checked}");
    let job = "fio:rw=randread,bs=4k,number_ios=50";
    nandscape(
        &[&["run", &odd, "--workload", job, "--set", "flash.buffer.throttle=64KiB"][..], &mended].concat(),
    )
    .well();
}

/// Settings that MQSim itself reads, with the value that its parser takes.
#[test]
fn what_mqsim_reads_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let device = |settings: &str| {
        format!(
            "<Execution_Parameter_Set>\n<Device_Parameter_Set>\n{settings}\n</Device_Parameter_Set>\n</Execution_Parameter_Set>\n"
        )
    };
    for (name, settings, keys, told) in [
        (
            "gc.xml",
            "<Overprovisioning_Ratio>0.12</Overprovisioning_Ratio>\n<GC_Exec_Threshold>0.20</GC_Exec_Threshold>",
            // 2048 blocks less 1804 that hold the logical space and its map, and three frontiers.
            &["start = 241", "stop = 242"][..],
            "409 blocks of a plane are more than",
        ),
        (
            "rate.xml",
            "<Channel_Transfer_Rate>1200</Channel_Transfer_Rate>",
            &["interface = \"nv_ddr3\"", "rate = \"1200MT/s\""],
            "end at 800 MT/s",
        ),
        (
            "fork.xml",
            "<Mapping_Unit>8192</Mapping_Unit>",
            &["channels = 8"],
            "line 3: `Mapping_Unit` is not a setting",
        ),
        ("decimal.xml", "<Flash_Channel_Count>4.0</Flash_Channel_Count>", &["channels = 4"], ""),
        (
            "yes.xml",
            "<Ideal_Mapping_Table>yes</Ideal_Mapping_Table>",
            &["mapping = \"table\""],
            "any word but FALSE",
        ),
        ("cut.xml", "<IO_Queue_Depth>70000</IO_Queue_Depth>", &["depth = 4464"], "to 16 bits: 4464"),
    ] {
        let xml = file(folder.path(), name, device(settings));
        let checked = nandscape(&["check", &xml]).well().stdout;
        keys.iter().for_each(|key| assert!(checked.contains(key), "{name}: {key}\n{checked}"));
        assert!(checked.contains(told), "{name}\n{checked}");
        let out = folder.path().join("my.toml").display().to_string();
        let imported = nandscape(&["import", "mqsim", &xml, "-o", &out]).well().stderr;
        assert!(imported.contains(told), "{name}\n{imported}");
        let is_odd = ["fork.xml", "yes.xml", "cut.xml"].contains(&name);
        let strict = nandscape(&["import", "mqsim", &xml, "-o", &out, "--strict"]);
        assert_eq!(strict.code, Some(if is_odd { 2 } else { 0 }), "{name}: {}", strict.stderr);
        assert!(!is_odd || strict.stderr.contains(&format!("{name}:3:1")), "{}", strict.stderr);
    }
    let flow = |chips: &str| {
        format!(
            "<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Synthetic><Chip_IDs>{chips}</Chip_IDs><Total_Requests_To_Generate>10</Total_Requests_To_Generate></IO_Flow_Parameter_Set_Synthetic></IO_Scenario></MQSim_IO_Scenarios>"
        )
    };
    let xml = file(folder.path(), "plain.xml", device(""));
    let [comma, none] = [("comma.xml", "0,"), ("none.xml", "0")].map(|(name, chips)| {
        let load = file(folder.path(), name, flow(chips));
        let out = folder.path().join("chips.toml");
        nandscape(&["import", "mqsim", &xml, &load, "-o", &out.display().to_string()]).well();
        let jobs = std::fs::read_to_string(out.with_extension("scenario-1.fio")).unwrap();
        jobs.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(comma, none);
}

/// Small inputs of public kinds (`shared/data/field3`): all of them are imported, and a key of a fork is refused by
/// `--strict` alone.
#[test]
fn files_of_the_field_are_imported() {
    let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        std::path::PathBuf::from,
    );
    let data = root.join("field3/mqsim");
    if !data.is_dir() {
        println!("skipped: no data");
        return;
    }
    let at = |name: &str| data.join(name).display().to_string();
    for drive in ["plain.xml", "gc-threshold.xml", "rate-1200.xml", "fork-key.xml"] {
        nandscape(&["import", "mqsim", &at(drive)]).well();
        let strict = nandscape(&["import", "mqsim", &at(drive), "--strict"]).code;
        assert_eq!(strict, Some(if drive == "fork-key.xml" { 2 } else { 0 }), "{drive}");
        for load in ["flow-plain.xml", "flow-chip-comma.xml"] {
            nandscape(&["import", "mqsim", &at(drive), &at(load)]).well();
        }
    }
}

#[test]
fn a_drive_of_simplessd_runs() {
    let folder = tempfile::tempdir().unwrap();
    let cfg = "[pal]\nChannel = 2\nPackage = 2\nDie = 1\nPlane = 2\nBlock = 64\nPage = 32\nPageSize = 4096\nSuperblockSize = C\n[ftl]\nGCThreshold = 0.1\nFillRatio = 0.5\n[icl]\nCacheSize = 262144\nEnableReadCache = 1\nEnableReadPrefetch = 1\n[cpu]\nClockSpeed = 400000000\n";
    let cfg = file(folder.path(), "ssd.cfg", cfg);
    let out = folder.path().join("my.toml").display().to_string();
    let told = nandscape(&["import", "simplessd", &cfg, "-o", &out]).well().stderr;
    assert!(
        told.contains("pal.Channel = 2: flash.geometry.channels = 2") && told.contains("cpu.ClockSpeed"),
        "{told}"
    );
    let result =
        nandscape(&["run", &out, "--workload", "fio:rw=randrw,bs=4k,iodepth=4,number_ios=500", "--json"])
            .well()
            .json();
    assert_eq!(result["ok"], true);
}

/// A result as fio prints it, of a small drive.
fn fio_of(job: &str, options: &[&str]) -> Value {
    let mut arguments = vec!["run", "d16", "--workload", job];
    arguments.extend(crate::common::TINY);
    arguments.extend(options);
    nandscape(&arguments).well().json()
}

#[test]
fn a_result_is_printed_as_fio_prints_its_own_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let job = "fio:name=a,rw=randrw,bs=4k,iodepth=4,number_ios=3000";
    let printed = fio_of(job, &["--format", "fio"]);
    assert_eq!(printed, fio_of(job, &["--output-format", "json+"]));
    let own = fio_of(job, &["--json"]);
    let one = &printed["jobs"][0];
    assert_eq!((&one["jobname"], &one["job options"]["iodepth"]), (&"a".into(), &"4".into()));
    for kind in ["read", "write"] {
        let (theirs, ours) = (&one[kind], &own["io"][kind]);
        assert_eq!((&theirs["total_ios"], &theirs["io_bytes"]), (&ours["requests"], &ours["bytes"]));
        assert!((theirs["iops"].as_f64().unwrap() - ours["iops"].as_f64().unwrap()).abs() < 1e-5);
        let bins = theirs["clat_ns"]["bins"].as_object().unwrap();
        assert_eq!(bins.values().filter_map(Value::as_u64).sum::<u64>(), ours["requests"].as_u64().unwrap());
        let p99 = theirs["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap();
        assert_eq!(p99, ours["clat_ns"]["p99"].as_f64().unwrap().floor());
    }
    let [theirs, ours, back] =
        ["fio.json", "own.json", "back.json"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&theirs, printed.to_string()).unwrap();
    std::fs::write(&ours, own.to_string()).unwrap();
    nandscape(&["import", "fio-json", &theirs, "-o", &back]).well();
    // What both know differs by rounding and the width of a bucket.
    let diff = nandscape(&["diff", &back, &ours, "--json"]).well().json();
    assert_eq!(diff["spec"].as_array().unwrap().len(), 0);
    for metric in diff["metrics"].as_array().unwrap() {
        let relative = metric["relative"].as_f64().unwrap();
        assert!(metric["key"].as_str().unwrap().starts_with("io.") && relative.abs() < 0.008, "{metric}");
    }
    let text = nandscape(&["diff", &back, &ours]).well().stdout;
    assert!(text.contains("one of them was measured"), "{text}");
    let page = folder.path().join("page.html").display().to_string();
    nandscape(&["report", &back, &ours, "-o", &page]).well();
    nandscape(&["report", &back, "-o", &page]).well();
    assert!(Path::new(&page).exists());
}

#[test]
fn one_form_of_a_result_is_asked_for() {
    for options in [["--json", "--format", "fio"], ["--json", "--output-format", "text"]] {
        let mut arguments = vec!["run", "d16", "--workload", "randread"];
        arguments.extend(options);
        let done = nandscape(&arguments);
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.contains("ask for different forms"), "{}", done.stderr);
    }
    assert_eq!(nandscape(&["run", "d16", "--workload", "randread", "--output-format", "xml"]).code, Some(2));
}

/// Files of a tar archive.
fn untarred(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (mut found, mut at, mut long) = (Vec::new(), 0, None);
    while let Some(head) = bytes.get(at..at + 512).filter(|head| head[0] != 0) {
        let text = |from: usize, to: usize| {
            String::from_utf8_lossy(&head[from..to]).trim_matches(['\0', ' ']).to_owned()
        };
        let size = usize::from_str_radix(&text(124, 136), 8).expect("a size in octal");
        let begin = at + 512;
        let content = &bytes[begin..begin + size];
        // GNU writes a long name as a file before the one that has it; POSIX parts it.
        match head[156] {
            b'L' => long = Some(String::from_utf8_lossy(content).trim_matches('\0').to_owned()),
            _ => {
                let parted = if &head[257..263] == b"ustar\0" { text(345, 500) } else { String::new() };
                let name =
                    if parted.is_empty() { text(0, 100) } else { format!("{parted}/{}", text(0, 100)) };
                found.push((long.take().unwrap_or(name), content.to_vec()));
            }
        }
        at = begin + size.next_multiple_of(512);
    }
    found
}

/// Results of fio 3.28 on real drives (a study of zoned drives; `shared/data/SOURCES.csv`), beside the figures that its
/// authors took out of them.
#[test]
fn results_of_real_drives_are_read() {
    use std::io::Read;
    let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        std::path::PathBuf::from,
    );
    let (Ok(packed), Ok(table)) = (
        std::fs::File::open(root.join("device/zns_study_raw_fio_json.tar.xz")),
        std::fs::read_to_string(root.join("device/zns_study_fio.csv")),
    ) else {
        println!("skipped: no data");
        return;
    };
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = untarred(&bytes);
    let results: Vec<_> =
        files.iter().filter(|(name, content)| name.ends_with(".json") && !content.is_empty()).collect();
    let mut compared = 0;
    for (name, content) in results.iter().step_by(12) {
        let raw = folder.path().join("raw.json").display().to_string();
        std::fs::write(&raw, content).unwrap();
        let result = nandscape(&["import", "fio-json", &raw]).well().json();
        let all = &result["io"]["all"];
        assert!(
            all["requests"].as_u64().unwrap() > 0 && all["latency_ns"]["mean"].as_f64().unwrap() > 0.0,
            "{name}"
        );
        assert!(all["clat_ns"]["p50"].is_number() || all["requests"].as_u64().unwrap() == 0, "{name}");
        // `drive,path,fio_version,rw,dir,bs,iodepth,numjobs,ioengine,iops,...`
        let path = name.trim_start_matches("./");
        if let Some(row) = table.lines().find(|row| row.contains(&format!(",{path},"))) {
            let iops: f64 = row.split(',').nth(9).unwrap().parse().unwrap();
            assert!((all["iops"].as_f64().unwrap() - iops).abs() < 0.06, "{name}: {iops}");
            compared += 1;
        }
    }
    assert!(compared > 5, "{compared} of {}", results.len());
}
