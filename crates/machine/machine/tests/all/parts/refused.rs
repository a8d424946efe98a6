//! What is wrong with names and links is told once, with its place and the way out.

use super::Bench;

const DRIVE: &str = "inherits = 'd16'\n";
const JOB: &str = "fio:rw=randread,bs=4k,number_ios=10";

fn refused(text: &str, workloads: &[&str], words: &[&str]) {
    let shown = Bench::new(text).refused(workloads);
    for word in words {
        assert!(shown.contains(word), "no `{word}` in\n{shown}");
    }
    assert!(shown.contains("mine.toml") || shown.contains("--workload"), "no place in\n{shown}");
}

#[test]
fn links_to_nothing_or_to_the_wrong_kind() {
    refused(
        "inherits = 'd16'\n[host]\ndrives = 'flahs'\n",
        &[JOB],
        &["there is no part `flahs`", "did you mean `flash`"],
    );
    let wrong = "inherits = 'ideal'\n[l2]\nmemory = 'mmu'\n";
    refused(wrong, &["gaus:n=16"], &["`mmu` is a part of the kind `mmu`", "`memory` or `placement`"]);
    refused("inherits = 'd16'\n[host]\ndrives = 7\n", &[JOB], &["is the name of one part, or a list"]);
    refused("inherits = 'd16'\n[host]\ndrives = ['flash', 'flash']\n", &[JOB], &["`flash` is named twice"]);
    let inert = "inherits = 'ideal'\n[memory]\ndrive = 'memory'\n";
    refused(inert, &["gaus:n=16"], &["this kind of memory asks no drive", "leave it out"]);
}

#[test]
fn what_could_mean_several_must_be_said() {
    let two = "inherits = 'ideal'\n[spare]\nkind = 'memory'\ninherits = 'ideal.memory'\n";
    refused(two, &["gaus:n=16"], &["`l2.memory` is left out", "allowed: memory, spare", "beside `spare` at"]);
    let group = "inherits = 'hybridgpu'\n[flash]\ncount = 2\n[memory]\ndrive = 'flash'\n";
    refused(group, &["gaus:n=16"], &["`flash` are 2 parts, and this link goes to one"]);
    let drives = "inherits = 'd16'\n[flash]\ncount = 2\n";
    refused(drives, &[JOB], &["there are 2 parts for it", "--workload flash.0=fio"]);
}

#[test]
fn parts_that_nobody_uses_or_too_many_do() {
    let unused = "inherits = 'd16'\n[spare]\nkind = 'l2'\ninherits = 'ideal.l2'\n";
    refused(unused, &[JOB], &["nobody uses the part `spare`", "`gpu`, `cpu`"]);
    let shared = "inherits = 'ideal'\n[gpu]\ncount = 2\n";
    refused(shared, &["gpu.0=gaus:n=16"], &["`gpu.0` and `gpu.1` ask one part, `mmu`, which serves one"]);
    let array =
        "[flash]\ncount = 2\n[array]\nkind = 'stripe'\ndrives = 'flash'\nchunk = '64KiB'\nsubmit = '0us'\n";
    let both = format!("{DRIVE}{array}[host]\ndrives = ['array', 'flash.1']\n");
    refused(
        &both,
        &["array=fio:rw=read,number_ios=1"],
        &["uses `flash.1`, whose bytes are those of the stripe `array`"],
    );
}

#[test]
fn circles_of_memories() {
    let circle = "inherits = 'astriflash'\n[l2]\nmemory = 'memory'\n[memory]\nmemory = 'other'\n\
        [memory.dram_cache]\nbacking = 'memory'\n[other]\nkind = 'memory'\ninherits = 'astriflash.memory'\nmemory = 'memory'\n\
        [other.dram_cache]\nbacking = 'memory'\n";
    refused(circle, &["tatp"], &["asks itself"]);
}

#[test]
fn kinds_counts_and_names() {
    refused(
        "inherits = 'd16'\n[spare]\nkind = 'flahs'\n",
        &[JOB],
        &["no kind of part", "did you mean `flash`"],
    );
    refused("inherits = 'd16'\n[spare]\nways = 3\n", &[JOB], &["unknown key `spare`", "kind = \"flash\""]);
    refused(
        "inherits = 'd16'\n[falsh]\nways = 3\n",
        &[JOB],
        &["unknown key `falsh`", "did you mean `flash`"],
    );
    refused(
        "inherits = 'd16'\n[host]\nkind = 'gpu'\n",
        &[JOB],
        &["a part that is called `host` is of that kind"],
    );
    refused("inherits = 'd16'\n[flash]\ncount = 0\n", &[JOB], &["0 parts; allowed are 1 to 256"]);
    let dotted = "inherits = 'd16'\n['my drive']\nkind = 'flash'\ninherits = 'd16.flash'\n";
    refused(dotted, &[JOB], &["`my drive` is no name for a part"]);
    let misspelt =
        "inherits = 'd16'\n[spare]\nkind = 'flash'\ninherits = 'd16.flash'\n[spare.geometry]\nchanels = 3\n";
    refused(
        misspelt,
        &[JOB],
        &["unknown key `chanels`", "did you mean `channels`", "spare.geometry.chanels"],
    );
    let limit = "inherits = 'd16'\n[spare]\nkind = 'flash'\ninherits = 'd16.flash'\n[spare.geometry]\nplanes = 100000\n";
    refused(limit, &[JOB], &["spare.geometry.planes"]);
    let missing = "inherits = 'd16'\n[spare]\nkind = 'flash'\n";
    refused(missing, &[JOB], &["keys are missing", "spare.geometry.channels", "spare.precondition"]);
}

/// Keys of an earlier layout are refused with the place where they stand now.
#[test]
fn keys_that_have_moved() {
    refused(
        "inherits = 'd16'\nprecondition = 'none'\n",
        &[JOB],
        &["`precondition` is now `flash.precondition`"],
    );
    refused(
        "inherits = 'zng'\n[memory.direct.array]\norder = 'fifo'\n",
        &["betw"],
        &["`memory.direct.array.order` is now `memory.direct.array.scheduler`", "`fifo` is `oldest` there"],
    );
    refused("inherits = 'dram-only'\n[cpu.0]\ncores = 4\n", &["tatp"], &["`cpu.0` is now `cpu`"]);
}

#[test]
fn workloads_for_parts_that_do_not_take_them() {
    refused(DRIVE, &[&format!("flsh={JOB}")], &["no part `flsh` takes a workload", "did you mean `flash`"]);
    refused("inherits = 'ideal'\n", &["l2=gaus:n=16"], &["no part `l2` takes a workload", "gpu"]);
    let both = "inherits = 'hetero'\n";
    let shown = Bench::new(both).refused(&[&format!("gpu={JOB}")]);
    assert!(shown.contains("is a load of requests, and `gpu` takes none"), "{shown}");
}

#[test]
fn placements_with_a_hole() {
    let map = |more: &str| {
        format!(
            "inherits = 'ideal'\n[l2]\nmemory = 'map'\n[map]\nkind = 'placement'\ntargets = ['memory', 'slow']\n\
             latency = '0ns'\npolicy = 'ranges'\n{more}\n[slow]\nkind = 'memory'\ninherits = 'optane.memory'\n"
        )
    };
    refused(&map("sizes = ['1MiB']"), &["gaus:n=16"], &["1 sizes for 2 memories", "map.sizes"]);
    refused(&map("sizes = ['4KiB', '4KiB']"), &["gaus:n=48"], &["a placement with a hole", "map.sizes"]);
    refused(&map("sizes = ['5KiB', '4KiB']"), &["gaus:n=48"], &["whole pages", "map.sizes"]);
}
