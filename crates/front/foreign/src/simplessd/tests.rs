//! Small files of our own in SimpleSSD's forms.

use super::*;

const SECTIONS_AND_KEYS: &str = "# a drive\n[pal]\nChannel = 4\nPackage = 2\nDie = 1\nPlane = 2\nBlock = 64\nPage = 32\nPageSize = 4096  # bytes\nNANDType = 2\nLSBRead = 40000000\nCSBRead = 50000000
MSBRead = 65000500\nSuperblockSize =\nEnableMultiPlaneOperation = 1\nPageAllocation = cwdp\n[ftl]\nGCThreshold = 0.25\nGCMode = 1\nGCReclaimThreshold = 0.5\nEvictPolicy = 3\nDChoiceParam = 5
FillingMode = 1\nFillRatio = 0.5\nInvalidPageRatio = 0.25\n[icl]\nCacheSize = 1048576\nEnableReadCache = 0\nEnableWriteCache = 1\n[nvme]\nDiskImageFile3 = x.img\n";

fn key(system: &Imported, path: &str) -> String {
    system.keys.iter().find(|key| key.path == path).unwrap_or_else(|| panic!("{path}")).value.clone()
}

#[test]
fn every_name_is_there_once_and_has_a_default_that_it_may_have() {
    let values = Values::new(&[settings::ALL]);
    for setting in values.settings() {
        assert_eq!(values.settings().filter(|one| one.name == setting.name).count(), 1, "{}", setting.name);
        if !setting.default.is_empty() {
            let mut one = Values::new(&[settings::ALL]);
            one.take("SimpleSSD", setting.name, setting.default, &Place::default()).expect(setting.name);
        }
    }
}

#[test]
fn flash_and_buffer_are_carried() {
    let system = import("ssd.cfg", SECTIONS_AND_KEYS).unwrap();
    for (path, value) in [
        ("flash.geometry.page_size", "\"4KiB\""),
        ("flash.cell.bits", "3"),
        ("flash.cell.read", "[\"40us\", \"50us\", \"65000.5ns\"]"),
        ("flash.ftl.reclaim_unit", "\"plane_set\""),
        // Planes first, because they work as one.
        ("flash.ftl.stripe", "\"PCWD\""),
        ("flash.ftl.gc.victim", "{ d_choices = { d = 5 } }"),
        // Below 16 of 64 blocks, up to 32.
        ("flash.ftl.gc.start", "15"),
        ("flash.ftl.gc.stop", "32"),
        // 16 pages of 4 KiB of 1 MiB leave at once.
        ("flash.buffer.low", "\"93.75%\""),
        ("flash.buffer.admission", "\"writes_only\""),
        // 32 lines, twice in 1.25 ns.
        ("flash.buffer.bandwidth", "\"6400MB/s\""),
        // A quarter on top of a half: a third of what was programmed.
        ("flash.precondition", "{ uniform = { share = \"50%\", invalid = \"33.333333%\" } }"),
    ] {
        assert_eq!(key(&system, path), value, "{path}");
    }
    let off = import("ssd.cfg", "[icl]\nEnableWriteCache = 0\n").unwrap();
    assert!(off.keys.iter().all(|key| !key.path.starts_with("flash.buffer")));
}

#[test]
fn the_tree_of_a_later_branch_says_the_same() {
    let text = "<!-- first --><?xml version=\"1.0\"?>\n<simplessd version=\"2.1\"><section name=\"sim\"><config name=\"X\">1</config></section>
<section name=\"fil\"><config name=\"Channel\">4</config><section name=\"nand\"><config name=\"PageSize\">16K</config><config name=\"DMASpeed\">333m</config>
<config name=\"NANDType\">1</config><section name=\"timing\"><config name=\"tR\" level=\"0\">65us</config><config name=\"tR\" level=\"1\">110us</config><config name=\"tR\" level=\"2\"></config>
<config name=\"tBERS\">5ms</config></section></section></section>
<section name=\"ftl\"><section name=\"background\"><section name=\"gc\"><section name=\"blockselection\"><config name=\"VictimSelectionPolicy\">2</config></section></section></section></section>
<section name=\"icl\"><config name=\"CacheMode\">0</config></section></simplessd>";
    let system = import("ssd.xml", text).unwrap();
    for (path, value) in [
        ("flash.geometry.channels", "4"),
        ("flash.geometry.page_size", "\"16KiB\""),
        ("flash.cell.read", "[\"65us\", \"110us\"]"),
        ("flash.cell.erase", "\"5ms\""),
        ("flash.channel.rate", "\"333MT/s\""),
        // Third there, second in the other form.
        ("flash.ftl.gc.victim", "\"cost_benefit\""),
    ] {
        assert_eq!(key(&system, path), value, "{path}");
    }
    assert!(system.remarks.iter().any(|remark| remark.contains("sim.X")), "{:?}", system.remarks);
    assert!(system.keys.iter().all(|key| !key.path.starts_with("flash.buffer")));
}

#[test]
fn what_cannot_be_used_is_one_diagnostic_with_its_place() {
    for (text, parts) in [
        (
            "[pal]\nChanel = 8\n",
            &["`pal.Chanel` is not a setting", "did you mean `pal.Channel`?", "ssd.cfg:2"][..],
        ),
        ("[pal]\nDie = two\n", &["must be a whole number from 1"]),
        ("[pal]\nPageAllocation = CWDQ\n", &["some of the letters CWDP"]),
        ("[pla]\nDie = 2\n", &["no section", "did you mean `pal`?"]),
        ("[generator]\nio_size = 3\n", &["SimpleSSD-Standalone"]),
        ("hello\n", &["is nothing of it"]),
        ("", &["none of its sections"]),
        ("<Execution_Parameter_Set/>", &["import mqsim"]),
        ("<html/>", &["its root must be <simplessd>"]),
        ("<simplessd><section name=\"fill\"/></simplessd>", &["did you mean `fil`?"]),
    ] {
        let told = import("ssd.cfg", text).unwrap_err().to_string();
        parts.iter().for_each(|part| assert!(told.contains(part), "{part}: {told}"));
    }
}
