//! SimpleSSD (Jung et al., IEEE CAL 2018; Gouk et al., MICRO 2018): imports its configuration as a system: flash,
//! translation, buffer and link.

mod drive;
mod settings;
mod tree;

use crate::notes::Imported;
use crate::setting::{Values, unless};
use config::{Diagnostic, Place};

/// Imports a configuration: sections and keys (branch 2.0), or XML (branch 2.1).
///
/// # Errors
/// The file is not SimpleSSD's, a setting is unknown, or a value is not allowed for its setting.
pub fn import(name: &str, text: &str) -> Result<Imported, Diagnostic> {
    let mut values = Values::new(&[settings::ALL]);
    let mut remarks = Vec::new();
    if text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        tree::read(name, text, &mut values, &mut remarks)?;
    } else {
        read(name, text, &mut values)?;
    }
    let keys = drive::keys(&values, &mut remarks);
    let mut system = Imported {
        tool: "SimpleSSD",
        file: name.to_owned(),
        inherits: "d16",
        description: format!("SimpleSSD drive of {name}"),
        keys,
        told: Vec::new(),
        remarks,
        usage: Vec::new(),
        defaulted: Vec::new(),
        places: Vec::new(),
    };
    system.tell(&values);
    Ok(system)
}

/// Known sections.
const SECTIONS: [&str; 8] = ["cpu", "nvme", "ufs", "sata", "pal", "ftl", "icl", "dram"];
/// Sections of SimpleSSD-Standalone's own file, which refers to the drive's file.
const STANDALONE: [&str; 3] = ["global", "generator", "trace"];

fn read(name: &str, text: &str, values: &mut Values) -> Result<(), Diagnostic> {
    let mut section: Option<&str> = None;
    let mut faults = Vec::new();
    for (number, raw) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = raw.split(['#', ';']).next().unwrap_or_default().trim();
        let place = Place { source: name.to_owned(), line: number, text: raw.to_owned(), ..Place::default() };
        if line.is_empty() {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let found = SECTIONS.iter().find(|known| **known == title);
            if found.is_none() {
                faults.push(no_section(title, place));
            }
            section = found.copied();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            let help = "a line is a [section], `Name = value`, or a comment after # or ;";
            return Err(Diagnostic::new(format!(
                "{name} is not a SimpleSSD configuration: cannot parse `{line}`"
            ))
            .at(place)
            .help(help));
        };
        // An empty value keeps the default, except for the size of a superblock.
        let (key, value) = (key.trim(), value.trim());
        match section {
            Some(section) if !value.is_empty() => {
                if let Err(fault) = values.take("SimpleSSD", &full_name(section, key), value, &place) {
                    faults.push(fault);
                }
            }
            // Settings of a refused section are not refused again.
            _ => {}
        }
    }
    if section.is_none() && faults.is_empty() {
        let help = format!("it has sections: {}", SECTIONS.map(|one| format!("[{one}]")).join(" "));
        return Err(Diagnostic::new(format!(
            "{name} is not a SimpleSSD configuration: it has none of its sections"
        ))
        .help(help));
    }
    unless((), faults)
}

/// Name of a setting with its section; disk images are numbered by namespace.
fn full_name(section: &str, key: &str) -> String {
    let image = "DiskImageFile";
    let counted = key.strip_prefix(image).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    format!("{section}.{}", if counted { image } else { key })
}

fn no_section(title: &str, place: Place) -> Diagnostic {
    let fault = Diagnostic::new(format!("[{title}] is not a section of SimpleSSD's drive"))
        .at(place)
        .allowed(title, SECTIONS);
    if STANDALONE.contains(&title) {
        return fault.help("this is the file of SimpleSSD-Standalone: import the drive's own file, and give the workload as an fio job (fio:rw=randread,...)");
    }
    fault
}

#[cfg(test)]
mod tests {
    // Small made-up files in SimpleSSD's formats.
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
            assert_eq!(
                values.settings().filter(|one| one.name == setting.name).count(),
                1,
                "{}",
                setting.name
            );
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
            ("[pla]\nDie = 2\n", &["not a section", "did you mean `pal`?"]),
            ("[generator]\nio_size = 3\n", &["SimpleSSD-Standalone"]),
            ("hello\n", &["cannot parse"]),
            ("", &["none of its sections"]),
            ("<Execution_Parameter_Set/>", &["import mqsim"]),
            ("<html/>", &["its root must be <simplessd>"]),
            ("<simplessd><section name=\"fill\"/></simplessd>", &["did you mean `fil`?"]),
        ] {
            let told = import("ssd.cfg", text).unwrap_err().to_string();
            parts.iter().for_each(|part| assert!(told.contains(part), "{part}: {told}"));
        }
    }
}
