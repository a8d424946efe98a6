//! Specs and jobs. TOML layers: up to the first NUL the bytes are a spec; each line after it is an override, as in
//! `--set`. fio: inline jobs after an even byte, job files after an odd one, and the requests drawn from them.

use super::{Target, texts};
use config::layer::{Layers, Presets};
use requests::fio::{fuzz_one, parse_inline, parse_text};

pub(super) const TARGET: Target = Target {
    name: "config",
    about: "specs as layers of TOML, and overrides",
    run,
    examples,
    reads,
    cases: 7_000,
};

struct NoPresets;

impl Presets for NoPresets {
    fn find(&self, _: &str) -> Option<(String, String)> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Checks that a resolved spec reads back as itself.
fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (spec, overrides) = text.split_once('\0').unwrap_or((text, ""));
    let Ok(mut resolved) = Layers::from_text("input", spec, &NoPresets) else { return };
    for assignment in overrides.lines() {
        // A refused override is a diagnostic like any other.
        let _ = resolved.set(assignment);
    }
    let printed = resolved.to_toml_string();
    let again = Layers::from_text("printed", &printed, &NoPresets).expect("a resolved spec is a spec");
    assert_eq!(again.to_toml_string(), printed);
}

fn examples() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "flash.geometry.channels = 8\n[flash.ftl.gc]\nvictim = { d_choices = { d = 4 } }\0flash.geometry.channels=4\nflash.ftl.gc.victim=greedy",
        "a = [1, 2.5, \"x\"]\nb.c = true\n[[d]]\ne = 1979-05-27\n",
    ]);
    // Shipped specs that inherit nothing.
    let whole = |text: &&&str| !text.contains("inherits");
    all.extend(
        spec::systems::SYSTEMS
            .iter()
            .map(|(_, text)| text)
            .filter(whole)
            .map(|text| text.as_bytes().to_vec()),
    );
    all
}

fn reads(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let spec = text.split('\0').next().unwrap_or_default();
    Layers::from_text("example", spec, &NoPresets).is_ok()
}

pub(super) const FIO: Target = Target {
    name: "fio",
    about: "fio's jobs, inline and as files, and what is drawn from them",
    run: fuzz_one,
    examples: fio_examples,
    reads: reads_fio,
    cases: 7_000,
};

fn fio_examples() -> Vec<Vec<u8>> {
    let inline = [
        "fio:rw=randrw,rwmixread=70,bs=4k,iodepth=64,number_ios=2000000",
        "fio:name=a,rw=write,bs=128k,iodepth=4,size=16m,loops=2",
        "fio:rw=randread,bssplit=4k/60:64k/40,random_distribution=zipf:1.2,rate_iops=1000,runtime=1",
        "fio:rw=trimwrite,bs=512,fsync=9,offset=1m,size=8m,numjobs=3",
        "fio:rw=randwrite,blocksize_range=1k-16k,thinktime=10,thinktime_blocks=4,norandommap=1",
    ];
    let files = [
        "[global]\nbs=4k\niodepth=8\n[reader]\nrw=randread\nsize=16m\n[writer]\nstonewall\nrw=write\nsize=50%\n",
        "; a comment\n[job]\nrw=rw:4\nbs=8k,16k\nstartdelay=10ms\nio_size=1m\nsize=32m\n",
    ];
    let behind = |choice: u8| move |text: &&str| [&[choice], text.as_bytes()].concat();
    inline.iter().map(behind(0)).chain(files.iter().map(behind(1))).collect()
}

fn reads_fio(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&bytes[1..]);
    if bytes[0] == 0 { parse_inline(&text) } else { parse_text("example", &text) }.is_ok()
}
