//! Tests on small made-up files in MQSim's format.

use super::*;
use crate::setting::Class;

/// A drive of 4 channels, 2 chips, 1 die, 2 planes, 64 blocks of 32 pages of 4 KiB: 16 planes of 8 MiB.
fn drive(device: &str, flash: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<Execution_Parameter_Set>\n<Host_Parameter_Set><PCIe_Lane_Count>2</PCIe_Lane_Count></Host_Parameter_Set>\n<Device_Parameter_Set>
<Flash_Channel_Count>4</Flash_Channel_Count><Chip_No_Per_Channel>2</Chip_No_Per_Channel><Overprovisioning_Ratio>0.25</Overprovisioning_Ratio>{device}
<Flash_Parameter_Set><Die_No_Per_Chip>1</Die_No_Per_Chip><Plane_No_Per_Die>2</Plane_No_Per_Die><Block_No_Per_Plane>64</Block_No_Per_Plane>
<Page_No_Per_Block>32</Page_No_Per_Block><Page_Capacity>4096</Page_Capacity>{flash}</Flash_Parameter_Set></Device_Parameter_Set></Execution_Parameter_Set>"
    )
}

fn synthetic(settings: &str) -> String {
    format!(
        "<IO_Flow_Parameter_Set_Synthetic><Total_Requests_To_Generate>100</Total_Requests_To_Generate>{settings}</IO_Flow_Parameter_Set_Synthetic>"
    )
}

fn imported(drive: &str, flows: &[String]) -> Result<Scenario, Diagnostic> {
    let file = |name, text| File { name, text };
    if flows.is_empty() {
        return import(file("ssd.xml", drive), None);
    }
    let text =
        format!("<MQSim_IO_Scenarios><IO_Scenario>{}</IO_Scenario></MQSim_IO_Scenarios>", flows.concat());
    let workloads = read_workloads(file("load.xml", &text))?;
    import(file("ssd.xml", drive), Some((&workloads, 1)))
}

fn key(scenario: &Scenario, path: &str) -> String {
    scenario.system.keys.iter().find(|key| key.path == path).unwrap_or_else(|| panic!("{path}")).value.clone()
}

fn option(work: &Work, name: &str) -> Option<String> {
    let Work::Job { options, .. } = work else { return None };
    options.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
}

#[test]
fn every_name_is_in_one_table_once_and_has_a_default_that_it_may_have() {
    for tables in [
        vec![settings::HOST, settings::DEVICE, settings::FLASH],
        vec![settings::BOTH, settings::SYNTHETIC],
        vec![settings::BOTH, settings::TRACE],
    ] {
        let values = Values::new(&tables);
        for setting in values.settings() {
            assert_eq!(
                values.settings().filter(|one| one.name == setting.name).count(),
                1,
                "{}",
                setting.name
            );
            let mut one = Values::new(&tables);
            if !setting.default.is_empty() {
                one.take("MQSim", setting.name, setting.default, &config::Place::default())
                    .expect(setting.name);
            }
            assert!(setting.class == Class::Carried || !setting.says.is_empty(), "{}", setting.name);
        }
    }
}

#[test]
fn what_is_carried_is_what_the_code_there_computes() {
    let scenario = imported(&drive("<GC_Exec_Threshold>0.2</GC_Exec_Threshold><GC_Block_Selection_Policy>rga</GC_Block_Selection_Policy>", ""), &[]).unwrap();
    // 12 of 64 blocks; log2 of 64.
    assert_eq!(
        (key(&scenario, "flash.ftl.gc.start"), key(&scenario, "flash.ftl.gc.stop")),
        ("11".into(), "12".into())
    );
    assert_eq!(key(&scenario, "flash.ftl.gc.victim"), "{ d_choices = { d = 6 } }");
    // 2 lanes of 0.4 GB/s, 128 of 156 B; 30 B, then 32 B and 100 B over two lanes.
    assert_eq!(key(&scenario, "flash.host.link.plain.bandwidth"), "\"656MB/s\"");
    assert_eq!(
        (key(&scenario, "flash.host.nvme.doorbell"), key(&scenario, "flash.host.nvme.fetch")),
        ("\"37ns\"".into(), "\"165ns\"".into())
    );
    // 32,768 pages of 8 sectors: entries of ceil((15 + 8) / 8) and ceil((30 + 8) / 8) bytes.
    assert!(key(&scenario, "flash.ftl.mapping").contains("cached_entry = \"5B\", stored_entry = \"3B\""));
    assert_eq!(key(&scenario, "flash.buffer.throttle"), "\"64KiB\"");
    // Built-in defaults of its source: 800 MT/s, doubled, of 4 bytes.
    assert_eq!(key(&scenario, "flash.buffer.bandwidth"), "\"6400MB/s\"");
    assert!(scenario.system.toml().contains("Channel_Transfer_Rate (default there)"));
}

#[test]
fn flows_part_the_logical_space_as_there() {
    let drive = drive("", "");
    // 16 planes of 64 x 32 pages, a quarter spare: 96 MiB.
    let all = 96u64 << 20;
    let flow = synthetic("<Working_Set_Percentage>50</Working_Set_Percentage>");
    let two = imported(&drive, &[flow.clone(), flow]).unwrap();
    let half = |work: &Work| (option(work, "offset").unwrap(), option(work, "size").unwrap());
    assert_eq!(half(&two.works[0]), ("0".into(), (all / 4).to_string()));
    assert_eq!(half(&two.works[1]).0, (all / 2).to_string());
    // The first has channels 0 and 1 for itself and half of the others; the second half of 2 and 3.
    let first = synthetic("<Channel_IDs>0,1,2,3</Channel_IDs>");
    let second = synthetic("<Channel_IDs>2,3</Channel_IDs>");
    let shared = imported(&drive, &[first, second]).unwrap();
    assert_eq!(half(&shared.works[0]).1, (all / 4 * 3).to_string());
    assert_eq!(half(&shared.works[1]), ((all / 4 * 3).to_string(), (all / 4).to_string()));
    let wrong = imported(&drive, &[synthetic("<Channel_IDs>0,4</Channel_IDs>")]).unwrap_err();
    assert!(wrong.to_string().contains("names 4, and `Flash_Channel_Count` is 4"), "{wrong}");
}

#[test]
fn flows_are_said_in_the_words_of_fio() {
    let said = |settings: &str| imported(&drive("", ""), &[synthetic(settings)]).unwrap().works.remove(0);
    let hot = said(
        "<Address_Distribution>RANDOM_HOTCOLD</Address_Distribution><Percentage_of_Hot_Region>20</Percentage_of_Hot_Region><Read_Percentage>30</Read_Percentage>",
    );
    assert_eq!(option(&hot, "random_distribution").as_deref(), Some("zoned:80/20:20/80"));
    assert_eq!(
        (option(&hot, "rw").unwrap(), option(&hot, "rwmixread").unwrap()),
        ("randrw".into(), "30".into())
    );
    assert_eq!(option(&hot, "blockalign").as_deref(), Some("8192"));
    // 8 sectors on boundaries of 16: a gap of 8.
    let stream =
        said("<Address_Distribution>streaming</Address_Distribution><Read_Percentage>0</Read_Percentage>");
    assert_eq!(option(&stream, "rw").as_deref(), Some("write:4096"));
    // 1 MiB/s in requests of 4 KiB.
    let open = said(
        "<Synthetic_Generator_Type>BANDWIDTH</Synthetic_Generator_Type><Bandwidth>1048576</Bandwidth><Read_Percentage>25</Read_Percentage>",
    );
    assert_eq!(option(&open, "rate_iops").as_deref(), Some("64,192"));
    assert_eq!(option(&open, "rate_process").as_deref(), Some("poisson"));
    // Sizes whose mean is that of the distribution, rounded up to sectors: half a sector more.
    let spread = option(&said("<Request_Size_Distribution>NORMAL</Request_Size_Distribution><Average_Request_Size>100</Average_Request_Size><Variance_Request_Size>10</Variance_Request_Size>"), "bssplit").unwrap();
    let parts: Vec<(f64, f64)> = spread
        .split(':')
        .map(|part| {
            part.split_once('/').map(|(size, share)| (size.parse().unwrap(), share.parse().unwrap())).unwrap()
        })
        .collect();
    assert_eq!(parts.iter().map(|(_, share)| share).sum::<f64>(), 100.0);
    let mean = parts.iter().map(|(size, share)| size / 512.0 * share / 100.0).sum::<f64>();
    assert!((mean - 100.5).abs() < 0.1, "{mean}");
    let endless = imported(&drive("", ""), &["<IO_Flow_Parameter_Set_Synthetic/>".to_owned()]).unwrap_err();
    assert!(endless.to_string().contains("neither a time nor a number"), "{endless}");
}

#[test]
fn what_is_wrong_there_is_said() {
    let remarks = |device: &str, flows: &[String]| {
        imported(&drive(device, ""), flows).unwrap().system.remarks.join("\n")
    };
    // 2.5 ns a transfer are cut to 2; 0.9 ns to none.
    assert!(remarks("<Channel_Transfer_Rate>400</Channel_Transfer_Rate>", &[]).contains("runs at 500 MT/s"));
    assert!(remarks("<Channel_Transfer_Rate>1100</Channel_Transfer_Rate>", &[]).contains("no time at all"));
    assert!(
        !remarks("<Channel_Transfer_Rate>333</Channel_Transfer_Rate>", &[]).contains("Channel_Transfer_Rate")
    );
    assert!(remarks("<GC_Exec_Threshold>0.05</GC_Exec_Threshold>", &[]).contains("below 10"));
    for (device, told) in [
        ("<Address_Mapping>HYBRID</Address_Mapping>", "empty functions"),
        ("<Transaction_Scheduling_Policy>FLIN</Transaction_Scheduling_Policy>", "commented out"),
        ("<Caching_Mechanism>SIMPLE</Caching_Mechanism>", "lacks a `break`"),
        ("<HostInterface_Type>SATA</HostInterface_Type>", "SATA is not carried"),
        ("<Flash_Channel_Width>4</Flash_Channel_Width>", "32 lines at 300 MT/s are 16 here at 600 MT/s"),
    ] {
        assert!(remarks(device, &[]).contains(told), "{told}");
    }
    let off = synthetic("<Device_Level_Data_Caching_Mode>TURNED_OFF</Device_Level_Data_Caching_Mode>");
    assert!(
        !remarks("<Caching_Mechanism>SIMPLE</Caching_Mechanism>", std::slice::from_ref(&off))
            .contains("break")
    );
    assert!(remarks("", &[off, synthetic("")]).contains("one buffer for all"));
    // What fills the drive stands with the flows, and counts only if it is asked for.
    let full = synthetic("<Initial_Occupancy_Percentage>60</Initial_Occupancy_Percentage>");
    let state = |device: &str| {
        key(&imported(&drive(device, ""), &[full.clone(), synthetic("")]).unwrap(), "flash.precondition")
    };
    assert_eq!(
        state("<Enabled_Preconditioning>true</Enabled_Preconditioning>"),
        "{ analytic = { share = \"30%\" } }"
    );
    assert_eq!(state("<Enabled_Preconditioning>false</Enabled_Preconditioning>"), "\"none\"");
}

#[test]
fn what_cannot_be_used_is_one_diagnostic_with_its_place() {
    let told = |text: &str| import(File { name: "ssd.xml", text }, None).unwrap_err().to_string();
    for (text, parts) in [
        (
            drive("<Data_Cache_Capacity>much</Data_Cache_Capacity>", ""),
            &["must be a whole number from 0 to 4294967295, without a unit"][..],
        ),
        (
            drive("\n<IO_Queue_Depth>65536</IO_Queue_Depth>", ""),
            &["must be a whole number from 1 to 65535", "MQSim truncates 65536 to 16 bits: 0", "ssd.xml:6:1"],
        ),
        (drive("<Seed>2147483648</Seed>", ""), &["`Seed` is `2147483648`", "reads an `int`"]),
        (
            drive("<Plane_Allocation_Scheme>CWDX</Plane_Allocation_Scheme>", ""),
            &["cannot be `CWDX`", "did you mean `CWDP`?"],
        ),
        ("<MQSim_IO_Scenarios/>".to_owned(), &["its root is <MQSim_IO_Scenarios>", "takes them second"]),
        ("<simplessd version=\"2.1\"/>".to_owned(), &["import simplessd"]),
        ("<svg/>".to_owned(), &["its root is <svg>", "<Execution_Parameter_Set>"]),
        ("<a><b></a>".to_owned(), &["is not XML", "ssd.xml:1:"]),
        (String::new(), &["is not XML"]),
        ("[pal]\nChannel = 8".to_owned(), &["is not XML"]),
    ] {
        let told = told(&text);
        parts.iter().for_each(|part| assert!(told.contains(part), "{part}: {told}"));
    }
    // All faults of a file at once.
    let both = told(&drive("<CMT_Capacity>y</CMT_Capacity><Seed>x</Seed>", ""));
    assert!(both.contains("`CMT_Capacity` is `y`") && both.contains("`Seed` is `x`"), "{both}");
}

/// Keys of forks, of another set, twice; words and numbers that its parser takes for something else than they say.
#[test]
fn what_mqsim_passes_over_or_cuts_is_read_as_there_and_told() {
    for (device, path, value, said, nearest) in [
        (
            "<Mapping_Unit>8192</Mapping_Unit>",
            "flash.ftl.map_unit",
            "\"4KiB\"",
            "`Mapping_Unit` is not a setting",
            None,
        ),
        (
            "<Flash_Chanel_Count>8</Flash_Chanel_Count>",
            "flash.geometry.channels",
            "4",
            "`Flash_Chanel_Count` is not a setting",
            Some("Flash_Channel_Count"),
        ),
        (
            "<Wear_Parameter_Set><X>1</X></Wear_Parameter_Set>",
            "flash.geometry.channels",
            "4",
            "is not a setting",
            None,
        ),
        (
            "<Flash_Channel_Count>2.0</Flash_Channel_Count>",
            "flash.geometry.channels",
            "2",
            "given twice",
            None,
        ),
        ("<Page_Capacity>8192</Page_Capacity>", "flash.geometry.page_size", "\"4KiB\"", "is in <", None),
        ("<IO_Queue_Depth>70000</IO_Queue_Depth>", "flash.host.nvme.depth", "4464", "to 16 bits: 4464", None),
        (
            "<Data_Cache_Capacity>4295032832</Data_Cache_Capacity>",
            "flash.buffer.capacity",
            "\"64KiB\"",
            "to 32 bits: 65536",
            None,
        ),
        (
            "<Use_Copyback_for_GC>no</Use_Copyback_for_GC>",
            "flash.ftl.gc.copy_back",
            "true",
            "any word but FALSE",
            None,
        ),
    ] {
        let scenario = imported(&drive(&format!("\n{device}"), ""), &[]).expect(device);
        assert_eq!(key(&scenario, path), value, "{device}");
        assert_eq!(scenario.odd.len(), 1, "{device}");
        let odd = &scenario.odd[0];
        assert!(odd.what.contains(said) && odd.to_string().contains("ssd.xml:6:1"), "{odd}");
        assert_eq!(odd.nearest.as_deref(), nearest, "{device}");
        let remarks = scenario.system.warnings().join("\n");
        assert!(remarks.contains("ssd.xml: line 6: ") && remarks.contains(said), "{remarks}");
    }
    // Of a file of 30 such keys, 20 are told and the rest counted.
    let many: String = (0..30).map(|n| format!("<K{n}>1</K{n}>")).collect();
    let many = imported(&drive(&many, ""), &[]).unwrap().odd;
    assert!(many.len() == 21 && many[20].what.contains("10 more"), "{}", many.len());
    let flow = synthetic("<Channel_IDs>0,1,</Channel_IDs><Read_Percentage>300</Read_Percentage><New>1</New>");
    let flow = imported(&drive("", ""), &[flow]).unwrap();
    assert_eq!(option(&flow.works[0], "rwmixread").as_deref(), Some("44"));
    assert!(flow.system.warnings().iter().any(|line| line.contains("load.xml, line 1: `New`")));
    assert_eq!(flow.odd.len(), 2);
    // Units of time: a slip is one, another power of a thousand is none.
    let unit = |text: &str| {
        let flow = format!(
            "<IO_Flow_Parameter_Set_Trace_Based><Time_Unit>{text}</Time_Unit></IO_Flow_Parameter_Set_Trace_Based>"
        );
        imported(&drive("", ""), &[flow]).unwrap_err().to_string()
    };
    assert!(unit("NANOSECONDS").contains("did you mean `NANOSECOND`?"));
    for text in ["SECOND", "SECONDS", "MILLISECOND", "S"] {
        assert!(!unit(text).contains("did you mean"), "{text}");
    }
}

/// NV-DDR3 goes up to 1600 MT/s and NV-LPDDR4 up to 3600 (ONFI); what is faster moves as much over twice the lines.
#[test]
fn rates_beyond_800_have_an_interface_that_goes_so_far() {
    let of = |rate: u64, bytes: u64| {
        let text = format!(
            "<Channel_Transfer_Rate>{rate}</Channel_Transfer_Rate><Flash_Channel_Width>{bytes}</Flash_Channel_Width>"
        );
        let scenario = imported(&drive(&text, ""), &[]).unwrap();
        let interface = scenario.system.keys.iter().find(|key| key.path == "flash.channel.interface");
        let told = scenario.system.remarks.iter().any(|line| line.contains("end at 800 MT/s"));
        assert_eq!(told, interface.is_some(), "{rate}");
        let interface = interface.map(|key| key.value.clone()).unwrap_or_default();
        (interface, key(&scenario, "flash.channel.rate"), key(&scenario, "flash.channel.width"))
    };
    let said = |interface: &str, rate: &str, width: &str| {
        let quoted = |text: &str| if text.is_empty() { String::new() } else { format!("\"{text}\"") };
        (quoted(interface), quoted(rate), width.to_owned())
    };
    assert_eq!(of(800, 1), said("", "800MT/s", "8"));
    assert_eq!(of(1200, 1), said("nv_ddr3", "1200MT/s", "8"));
    assert_eq!(of(1600, 1), said("nv_ddr3", "1600MT/s", "8"));
    assert_eq!(of(2400, 1), said("nv_lpddr4", "2400MT/s", "8"));
    assert_eq!(of(4800, 1), said("nv_lpddr4", "2400MT/s", "16"));
    assert_eq!(of(1200, 2), said("nv_ddr3", "1200MT/s", "16"));
}

/// 64 blocks of 32 pages in each of 16 planes, a quarter spare: 48 blocks hold the data, of 24,576 units, whose map of
/// 3 B an entry (1,365 a page) takes 19 pages, two a plane: 49 blocks. Of the 15 left three are frontiers.
#[test]
fn collection_begins_no_later_than_the_spare_space_allows() {
    let of = |device: &str| {
        let scenario = imported(&drive(device, ""), &[]).unwrap();
        let gc = |name: &str| key(&scenario, &format!("flash.ftl.gc.{name}"));
        let told =
            scenario.system.remarks.iter().any(|line| line.contains("blocks of a plane are more than"));
        (gc("start"), gc("stop"), gc("hard"), told)
    };
    let said = |start: u32, hard: u32, told: bool| {
        (start.to_string(), (start + 1).to_string(), hard.to_string(), told)
    };
    assert_eq!(of("<GC_Exec_Threshold>0.05</GC_Exec_Threshold>"), said(9, 8, false));
    assert_eq!(of("<GC_Exec_Threshold>0.2</GC_Exec_Threshold>"), said(11, 9, false));
    assert_eq!(of("<GC_Exec_Threshold>0.21</GC_Exec_Threshold>"), said(12, 9, false));
    assert_eq!(of("<GC_Exec_Threshold>0.5</GC_Exec_Threshold>"), said(12, 9, true));
    // Without pages of the map 48 blocks and two frontiers.
    assert_eq!(
        of("<GC_Exec_Threshold>0.5</GC_Exec_Threshold><Ideal_Mapping_Table>true</Ideal_Mapping_Table>"),
        said(14, 9, true)
    );
}
