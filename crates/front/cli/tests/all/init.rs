//! A system of one's own begins as a file with every key, and a file with too few is told all that it lacks.

use crate::common::{file, nandscape, refused};
use machine::Loaded;
use spec::{Id, Kind};
use std::path::Path;

/// The keys that a list in a diagnostic names.
fn listed(stderr: &str) -> Vec<String> {
    let lines =
        stderr.lines().filter_map(|line| line.strip_prefix("    ").filter(|line| !line.contains(" | ")));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Whose keys are told of goes by what parts are, not by what they are called.
#[test]
fn what_to_begin_with_is_of_the_kind_of_the_parts() {
    let folder = tempfile::tempdir().unwrap();
    let drive = "[flash.geometry]\nchannels = 4\n";
    for (kind, like) in [("gpu", "zng"), ("cpu", "dram-only"), ("flash", "pm9a3")] {
        let mine = file(
            folder.path(),
            "mine.toml",
            format!("description = \"mine\"\n[chip]\nkind = \"{kind}\"\n{drive}"),
        );
        refused(&["check", &mine], &["keys are missing", &format!("nandscape init NEW.toml --like {like}")]);
    }
}

/// From nothing, a drive takes two rounds: what is missing is told at once, and then nothing is.
#[test]
fn a_drive_from_nothing_is_told_all_that_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let begun = "description = \"mine\"\n[flash.geometry]\nchannels = 4\n";
    let mine = file(folder.path(), "mine.toml", begun);
    let said = ["keys are missing", "mine.toml", "flash.cell.bits", "nandscape init NEW.toml --like pm9a3"];
    refused(&["check", &mine], &said);
    let missing = listed(&nandscape(&["check", &mine]).stderr);
    assert!(missing.len() > 40, "{missing:?}");
    // The tables that a drive needs besides are among them; what may be left out is not.
    for key in ["host.submit", "host.complete", "flash.precondition", "sim.fold", "flash.ftl.gc.start"] {
        assert!(missing.iter().any(|name| name == key), "no {key} in {missing:?}");
    }
    for key in ["flash.geometry.channels", "flash.buffer.throttle", "flash.bad_blocks.factory", "gpu.sms"] {
        assert!(missing.iter().all(|name| name != key), "{key} in {missing:?}");
    }
    // With the values that another drive has for these keys, it is whole.
    let other: toml::Table = machine::load("d16", &[]).unwrap().to_toml().parse().unwrap();
    let other = toml::Value::Table(other);
    let mut arguments = vec!["check".to_owned(), mine];
    for key in &missing {
        let value =
            key.split('.').try_fold(&other, |at, name| at.get(name)).unwrap_or_else(|| panic!("{key}"));
        arguments.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    nandscape(&arguments).well();
}

/// Each kind of machine is pointed to one of its kind, and told the tables that go with those it has.
#[test]
fn what_goes_together_is_told_together() {
    let said = ["--> --set", "gpu.clock", "mmu.walkers", "network.", "l2.banks", "--like zng"];
    refused(&["check", "d16", "--set", "gpu.sms=4"], &said);
    let said = ["--> --set", "cpu.cores", "fabric.", "directory.", "l2.banks", "--like dram-only"];
    refused(&["check", "d16", "--set", "cpu.fill_jobs=4"], &said);
    let said = [
        "3 keys are missing",
        "--> --set",
        "flash.host.link.pcie.lanes ",
        "integer, 1, 2, 4, 8, 16",
        "init NEW.toml",
    ];
    refused(&["check", "d16", "--set", "flash.host.link={pcie={generation=4}}"], &said);
}

/// The file is the system: it resolves to the same spec, and stands alone.
#[test]
fn every_system_begins_another() {
    let folder = tempfile::tempdir().unwrap();
    for (system, _) in spec::systems::SYSTEMS {
        let path = folder.path().join(format!("{system}.toml"));
        let name = path.display().to_string();
        let done = nandscape(&["init", &name, "--like", system]).well();
        assert!(done.stdout.contains(&format!("nandscape check {name}")), "{}", done.stdout);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("inherits = "), "{system}");
        let (mine, theirs) = (machine::load(&name, &[]).unwrap(), machine::load(system, &[]).unwrap());
        // Tables of one kind stand in their order; those of different kinds need not.
        assert_eq!(mine.spec.to_json(), theirs.spec.to_json(), "{system}");
        for kind in Kind::ALL {
            let names = |of: &Loaded| -> Vec<String> {
                (0..of.spec.count(*kind))
                    .map(|number| of.spec.name_of(Id { kind: *kind, number }).to_owned())
                    .collect()
            };
            assert_eq!(names(&mine), names(&theirs), "{system}");
        }
        well_commented(&name, &text);
    }
}

/// Above every value stand its meaning, the kind of value and its source.
fn well_commented(name: &str, text: &str) {
    let mut above = String::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix('#') {
            assert!(line.chars().count() <= 110 || !comment.trim().contains(' '), "{name}: {line}");
            above.push_str(comment);
        } else if line.contains(" = ") {
            assert!(above.contains("Value: ") && above.contains("Source: "), "{name}: {line} below {above}");
            above.clear();
        } else if line.is_empty() {
            above.clear();
        }
    }
}

#[test]
fn a_skeleton_has_units_meaning_and_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml").display().to_string();
    nandscape(&["init", &path, "--like", "pm9a3"]).well();
    let text = std::fs::read_to_string(&path).unwrap();
    let words = text.replace("\n# ", " ");
    for part in [
        "Block erase time (tBERS). Value: duration (ps, ns, us, ms, s, min, ...), up to 1h. Source: least erase time of 3D TLC in Cho et al.",
        "* ISSCC 2019: \"A 512Gb 3-bit/cell 3D 6th-generation V-NAND",
        "throttle: left out. Host writes wait",
        "[flash.bad_blocks]",
    ] {
        assert!(words.contains(part) || text.contains(part), "no `{part}` in\n{text}");
    }
    // A change of one value in it is a change of the system.
    let changed = text.replace("erase = \"3.5ms\"", "erase = \"4ms\"");
    let mine = file(folder.path(), "changed.toml", changed);
    assert!(nandscape(&["check", &mine]).well().stdout.contains("erase = \"4ms\""));
}

#[test]
fn a_file_that_is_there_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mine = file(folder.path(), "mine.toml", "sim.fold = true\n");
    refused(&["init", &mine, "--like", "d16"], &["mine.toml already exists", "different name"]);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "sim.fold = true\n");
    refused(&["init", "new.toml", "--like", "d61"], &["unknown system `d61`", "did you mean `d16`"]);
    assert!(!Path::new("new.toml").exists());
    refused(&["init", "no/such/new.toml", "--like", "d16"], &["cannot write no/such/new.toml"]);
}
