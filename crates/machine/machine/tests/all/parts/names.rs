//! A name is for people: it decides nothing.

use super::{Bench, SMALL, figure, found};
use machine::Loaded;

const WRITES: &str = "fio:rw=randwrite,bs=4k,iodepth=16,number_ios=3000,norandommap=1";
const READS: &str = "fio:rw=randread,bs=4k,iodepth=32,number_ios=2000";

fn drive(name: &str) -> String {
    let kind = if name == "flash" { "" } else { "kind = 'flash'\ninherits = 'd16.flash'" };
    format!("inherits = '{}'\n[{name}]\n{kind}{SMALL}", if kind.is_empty() { "d16" } else { "bare" })
}

/// D16 without its drive: what a machine needs whose drive has another name.
fn bare(text: &str) -> String {
    let head = "description = 'mine'\n[host]\ninherits = 'd16'\n[sim]\ninherits = 'd16'\n";
    text.replace("inherits = 'bare'\n", head)
}

#[test]
fn a_drive_by_another_name_does_the_same() {
    let named = Bench::new(&bare(&drive("flash")));
    let renamed = Bench::new(&bare(&drive("archive")));
    for job in [READS, WRITES] {
        let (one, other) = (named.run(&[job]), renamed.run(&[job]));
        assert_eq!(found(&one), found(&other));
        assert_eq!((one.flash[0].name.as_str(), other.flash[0].name.as_str()), ("flash", "archive"));
    }
}

#[test]
fn a_gpu_and_what_is_around_it_by_other_names_do_the_same() {
    let small = "[big.l1]\nsets = 1\nways = 1\n";
    let renamed = "description = 'mine'
        [sim]\ninherits = 'ideal'
        [big]\nkind = 'gpu'\ninherits = 'ideal.gpu'
        [walks]\nkind = 'mmu'\ninherits = 'ideal.mmu'
        [wires]\nkind = 'network'\ninherits = 'ideal.network'
        [shared]\nkind = 'l2'\ninherits = 'ideal.l2'
        [gddr]\nkind = 'memory'\ninherits = 'ideal.memory'\n";
    let one = Bench::new(&format!("inherits = 'ideal'\n{}", small.replace("big", "gpu"))).run(&["gaus:n=48"]);
    let other = Bench::new(&format!("{renamed}{small}")).run(&["gaus:n=48"]);
    assert_eq!(found(&one), found(&other));
    assert_eq!((other.gpu[0].name.as_str(), other.gpu[0].memory.name.as_str()), ("big", "gddr"));
}

/// What is never asked changes nothing, wherever it is declared: neither another drive nor a GPU without programs.
#[test]
fn idle_parts_change_nothing() {
    let alone = Bench::new(&bare(&drive("flash"))).run(&[WRITES]);
    let beside = bare(&drive("flash")) + &format!("\n[idle]\nkind = 'flash'\ninherits = 'd16.flash'{SMALL}");
    let with_drive = Bench::new(&beside).run(&[&format!("flash={WRITES}")]);
    let gpu = "[gpu]\ninherits = 'ideal'\n[mmu]\ninherits = 'ideal'\n[network]\ninherits = 'ideal'\n\
               [l2]\ninherits = 'ideal'\n[memory]\ninherits = 'ideal'\n";
    let with_gpu = Bench::new(&(bare(&drive("flash")) + gpu)).run(&[WRITES]);
    assert_eq!(found(&alone), found(&with_gpu));
    let (alone, with_drive) = (found(&alone), found(&with_drive));
    assert_eq!((&alone["io"], &alone["flash"][0]), (&with_drive["io"], &with_drive["flash"][0]));
    assert_eq!(with_drive["flash"][1]["host_programs"], 0);
}

/// Two drives that are alike, under loads that are alike, do the same; each by itself does it too.
#[test]
fn equal_drives_under_equal_loads_agree() {
    let text = bare("inherits = 'bare'\n")
        + &format!("[ssd]\nkind = 'flash'\ncount = 2\ninherits = 'd16.flash'{SMALL}");
    let both = Bench::new(&text).run(&[&format!("ssd.0={WRITES}"), &format!("ssd.1={WRITES}")]);
    // Both are looked at when one of them answers, and at that instant the other is an answer behind.
    let drive_of = |outcome: &_, number: usize| {
        let mut drive = found(outcome)["flash"][number].clone();
        drive.as_object_mut().expect("an object").remove("series");
        drive
    };
    let (first, second) = (drive_of(&both, 0), drive_of(&both, 1));
    assert_eq!(first, second);
    let flows = found(&both)["io"]["flows"].clone();
    assert_eq!(flows[0]["write"]["latency_ns"], flows[1]["write"]["latency_ns"]);
    let alone = Bench::new(&bare(&drive("flash"))).run(&[WRITES]);
    assert_eq!(drive_of(&alone, 0), first);
    assert!(figure(&both, "/flash/1/write_amplification") > 1.0, "both were at work");
}

/// A later drive has random streams of its own.
#[test]
fn a_second_drive_draws_for_itself() {
    let spread = "cell = { spread = { read = '0%', program = '5%', erase = '0%' } }\n";
    let text = bare("inherits = 'bare'\n")
        + &format!("[ssd]\nkind = 'flash'\ncount = 2\ninherits = 'd16.flash'{SMALL}{spread}");
    let both = Bench::new(&text).run(&[&format!("ssd.0={WRITES}"), &format!("ssd.1={WRITES}")]);
    let flows = found(&both)["io"]["flows"].clone();
    assert_ne!(flows[0]["write"]["latency_ns"], flows[1]["write"]["latency_ns"]);
}

/// Parts of a kind stand in the order of the text, whatever they are called and whatever they inherit.
#[test]
fn parts_are_in_the_order_of_the_file() {
    let drive = |name: &str| format!("[{name}]\nkind = 'flash'\ninherits = 'd16.flash'{SMALL}");
    for names in [["zebra", "ant", "mule"], ["ant", "mule", "zebra"], ["mule", "zebra", "ant"]] {
        let text = bare("inherits = 'bare'\n") + &names.map(drive).concat();
        let bench = Bench::new(&text);
        let loaded = Loaded::load(&bench.path.to_string_lossy(), &[]).expect("a machine");
        let found: Vec<&str> = loaded.spec.flash.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(found, names);
        let document = bench.run(&[&format!("{}={READS}", names[1])]);
        assert_eq!(document.io.flows[0].drive.as_deref(), Some(names[1]));
    }
}

/// The resolved spec of a machine with names reads back as the same machine.
#[test]
fn a_resolved_spec_is_the_same_machine() {
    let text = bare("inherits = 'bare'\n")
        + &format!("[ssd]\nkind = 'flash'\ncount = 2\ninherits = 'd16.flash'{SMALL}")
        + "[array]\nkind = 'stripe'\ndrives = 'ssd'\nchunk = '64KiB'\nsubmit = '0us'\n";
    let bench = Bench::new(&text);
    let loaded = Loaded::load(&bench.path.to_string_lossy(), &[]).expect("a machine");
    let again = Bench::new(&loaded.to_toml());
    let reloaded = Loaded::load(&again.path.to_string_lossy(), &[]).expect("the same machine");
    assert_eq!(loaded.spec.to_json(), reloaded.spec.to_json());
    assert_eq!(found(&bench.run(&[READS])), found(&again.run(&[READS])));
}
