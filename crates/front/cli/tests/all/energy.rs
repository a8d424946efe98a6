//! What parts spend: in a report, and explained with its sources.

use crate::common::{TINY, nandscape};

fn systems() -> Vec<String> {
    let text = nandscape(&["list", "systems"]).well().stdout;
    let names = text.lines().filter(|line| !line.is_empty() && !line.starts_with([' ', '`']));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_constant_of_a_shipped_system_has_a_source() {
    let mut constants = 0;
    for system in systems() {
        let text = nandscape(&["explain", "energy", &system]).well().stdout;
        assert!(!text.contains("none is known"), "{text}");
        constants += text.matches("      Source: ").count();
        assert_eq!(text.matches("      Source: ").count(), text.matches(" = ").count(), "{text}");
    }
    assert!(constants > 300, "{constants}");
}

#[test]
fn constants_are_shown_with_what_they_are_and_parts_without() {
    let text = nandscape(&["explain", "energy", "flashabacus-inter-dy"]).well().stdout;
    for part in [
        "\naccelerator.energy\n",
        "  worker.computes = 641mW\n      While it computes, stalls included.\n      Source: TI's spreadsheet",
        "  program = 19.9uJ, 111uJ, 282uJ\n",
        "\naccelerator.offload.energy\n",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("Without a table"), "{text}");
    let text = nandscape(&["explain", "energy", "optane"]).well().stdout;
    assert!(text.contains("\ngpu.energy\n") && text.contains("no total:\n  memory.dram.energy"), "{text}");
    let text = nandscape(&["explain", "energy", "d16"]).well().stdout;
    assert!(text.contains("No part says") && text.contains("\n  flash.energy\n"), "{text}");
    assert!(nandscape(&["explain", "energy"]).well().stdout.contains("explain energy SYSTEM"));
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    for (arguments, words) in [
        (["explain", "energy", "pm9a33"], "pm9a3"),
        (["explain", "flash", "pm9a3"], "`energy` alone is explained"),
    ] {
        let done = nandscape(&arguments);
        assert!(done.code == Some(2) && done.stderr.contains(words), "{}", done.stderr);
    }
}

#[test]
fn a_report_has_what_was_spent() {
    let run = |set: &[&str]| {
        let job = ["run", "d16", "--workload", "fio:rw=randread,bs=4k,number_ios=100"];
        let set = set.iter().flat_map(|set| ["--set", set]);
        nandscape(&job.into_iter().chain(TINY).chain(set).collect::<Vec<_>>()).well().stdout
    };
    assert!(!run(&[]).contains("energy"));
    let table = "flash.energy={ read = [\"1uJ\"], program = [\"10uJ\"], erase = \"100uJ\", transfer = \"50pJ\", die = { idle = \"0W\", busy = \"0W\" }, controller = { idle = \"2W\", busy = \"2W\" }, link = { transfer = \"0pJ\", on = \"0W\" } }";
    let text = run(&[table]);
    // 2 W and what a hundred reads of nothing add to it.
    for part in ["energy: ", "17.5 kWh in a year", " a request", "controller busy"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}
