//! fio's vocabulary: inline jobs behind an even byte, job files behind an odd one, and the requests drawn from them.

use super::Target;
use requests::fio::{fuzz_one, parse_inline, parse_text};

pub(super) const TARGET: Target = Target {
    name: "fio",
    about: "fio's jobs, inline and as files, and what is drawn from them",
    run: fuzz_one,
    examples,
    reads,
    cases: 20_000,
};

fn examples() -> Vec<Vec<u8>> {
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

fn reads(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&bytes[1..]);
    if bytes[0] == 0 { parse_inline(&text) } else { parse_text("example", &text) }.is_ok()
}
