//! Bad input for a GPU: one readable diagnostic, from a run and from a look through it, before anything runs.

use crate::common::{file, nandscape, refused};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

/// A kernel of one warp, in Accel-Sim's format.
const KERNEL: &str = "\
-kernel name = copy
-kernel id = 1
-grid dim = (1,1,1)
-block dim = (32,1,1)
-shmem = 0
-nregs = 8
-accelsim tracer version = 5
#BEGIN_TB
thread block = 0,0,0
warp = 0
insts = 4
0000 ffffffff 1 R1 S2R 0 0 0
0010 ffffffff 1 R4 LDG.E 1 R1 4 1 0x7f0000000000 4 0
0020 ffffffff 0 STG.E 2 R4 R1 4 1 0x7f0000001000 4 0
0030 ffffffff 0 EXIT 0 0 0
#END_TB
";

/// The workload is refused by a run and by a check, on a GPU in front of flash.
fn workload_refused(workload: &str, said: &[&str]) {
    refused(&["run", "zng", "--json", "--workload", workload], said);
    refused(&["check", "zng", "--workload", workload], said);
}

/// A copy of the kernel with one thing changed is refused.
fn kernel_refused(folder: &Path, (right, wrong): (&str, &str), said: &[&str]) {
    assert_eq!(KERNEL.matches(right).count(), 1, "`{right}` does not stand in the kernel once");
    let path = file(folder, "kernel-1.traceg", KERNEL.replacen(right, wrong, 1));
    workload_refused(&path, said);
}

/// Instructions of warps that a run of a good workload has executed.
fn instructions(workload: &str) -> u64 {
    let done = nandscape(&["run", "zng", "--json", "--workload", workload]).well();
    done.json()["gpu"][0]["warp_instructions"].as_u64().expect("a count of instructions")
}

#[test]
fn accelsim_traces_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(instructions(&file(folder, "kernel-1.traceg", KERNEL)), 4);
    nandscape(&["check", "zng", "--workload", &file(folder, "kernel-1.traceg", KERNEL)]).well();
    let cases: [(&str, &str, &[&str]); 9] = [
        ("LDG.E", "LDGG.E", &["kernel-1.traceg:13:20", "unknown opcode `LDGG.E`", "did you mean `LDG`"]),
        ("version = 5", "version = 9", &["kernel-1.traceg:7", "version `9`", "versions 3 to 5 are read"]),
        ("version = 5", "version = 2", &["kernel-1.traceg:7", "version `2`", "versions 3 to 5 are read"]),
        ("(32,1,1)", "(2048,1,1)", &["kernel-1.traceg:4", "a block of 2048 x 1 x 1", "1 to 1024"]),
        ("(32,1,1)", "(0,1,1)", &["kernel-1.traceg:4", "a block of 0 x 1 x 1", "1 to 1024"]),
        ("-nregs", "-nregz", &["kernel-1.traceg:6:2", "unknown key `nregz`", "did you mean `nregs`"]),
        ("4 1 0x7f0000000000 4 0", "4 3 0x7f0000000000 4 0", &["kernel-1.traceg:13", "address mode 3"]),
        ("#END_TB\n", "", &["kernel-1.traceg", "truncated"]),
        (" 4 0\n0020", "\n0020", &["kernel-1.traceg:13", "the line ends before the stride"]),
    ];
    for (right, wrong, said) in cases {
        kernel_refused(folder, (right, wrong), said);
    }
}

#[test]
fn lists_of_kernels_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path(), "kernel-1.traceg", KERNEL);
    let list = |lines: &str| file(folder.path(), "kernelslist.g", format!("{lines}kernel-1.traceg\n"));
    assert_eq!(instructions(&list("MemcpyHtoD,0x7f0000000000,8192\nkernel-1.traceg\n")), 8);
    workload_refused(
        &list("kernel-2.traceg\n"),
        &["kernelslist.g:1", "kernel-2.traceg", "did you mean `kernel-1.traceg`"],
    );
    let said = ["kernelslist.g:1", "unknown copy `MemcpyHtoH`", "did you mean `MemcpyHtoD`"];
    workload_refused(&list("MemcpyHtoH,0x7f0000000000,8192\nkernel-1.traceg\n"), &said);
}

/// A record of MacSim's: an opcode at work in all lanes of a warp. `LDG` is 73, `EXIT` 139.
fn record(opcode: u8, pc: u64, address: u64) -> [u8; 64] {
    let mut record = [0; 64];
    record[0] = opcode;
    record[24..28].fill(0xff);
    record[32..40].copy_from_slice(&pc.to_le_bytes());
    record[48..56].copy_from_slice(&address.to_le_bytes());
    record[56] = 4;
    record
}

/// Writes an application of one kernel of one warp, whose compressed file is `warp`; the path of its list of kernels.
fn macsim(folder: &Path, version: &str, warp: &[u8]) -> String {
    std::fs::create_dir_all(folder.join("Kernel0")).unwrap();
    file(folder, "Kernel0/trace.txt", format!("nvbit\n{version}\n1\n1\n0 0\n"));
    file(folder, "Kernel0/trace_0.raw", warp);
    file(folder, "kernel_config.txt", "nvbit\n14\n-1\n./Kernel0/trace.txt\n")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn macsim_traces_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let load = |n: u64| record(73, 16 * (n + 1), 0x7f00_0000_0000 + ((n * 0x9e37_79b9) & 0xf_fff0));
    let mut records: Vec<u8> = (0..100).flat_map(load).collect();
    records.extend(record(139, 0x1000, 0));
    let whole = gzip(&records);
    assert_eq!(instructions(&macsim(folder, "14", &whole)), 101);

    let refused = |version: &str, warp: &[u8], said: &[&str]| {
        workload_refused(&macsim(folder, version, warp), said);
    };
    refused("13", &whole, &["Kernel0/trace.txt:2", "version `13`", "only version 14 is supported"]);
    let half = &whole[..whole.len() / 2];
    refused("14", half, &["trace_0.raw", "record ", "compressed data: it is truncated"]);
    let cut = gzip(&records[..64 * 3 + 20]);
    refused("14", &cut, &["trace_0.raw", "record 4: 20 bytes of 64: the file is truncated"]);
    let unknown: Vec<u8> = [record(73, 16, 0x7f00_0000_0000), record(255, 32, 0)].concat();
    refused(
        "14",
        &gzip(&unknown),
        &["trace_0.raw", "record 2: unknown opcode 255; expected 0 to 162", "help: "],
    );

    macsim(folder, "14", &whole);
    let list = file(folder, "kernel_config.txt", "ptx\n14\n-1\n./Kernel0/trace.txt\n");
    workload_refused(
        &list,
        &["kernel_config.txt:1", "a trace of type `ptx`; only type `nvbit` is supported"],
    );
}

#[test]
fn graphs_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let graph = |name: &str, text: &str| format!("bfs1:graph={}", file(folder.path(), name, text));
    assert!(instructions(&graph("good.txt", "0 1\n1 2\n2 0\n")) > 0);
    let said = ["bad.txt:3:3", "`x`", "allowed: a whole number"];
    workload_refused(&graph("bad.txt", "0 1\n1 2\n1 x\n"), &said);
    let head = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n";
    let said = ["far.mtx:4:3", "`4` is not a valid column", "from 1 to 3"];
    workload_refused(&graph("far.mtx", &format!("{head}1 2\n1 4\n")), &said);
    let said = ["short.mtx", "promises 2 entries, but 1 are listed"];
    workload_refused(&graph("short.mtx", &format!("{head}1 2\n")), &said);
}

#[test]
fn programs_that_cannot_be() {
    workload_refused("bsf1", &["unknown workload `bsf1`", "did you mean `bfs1`", "allowed: "]);
    workload_refused("bfs1-bcak", &["unknown program `bcak`", "did you mean `back`", "allowed: "]);
    workload_refused("bfs1:scal=9", &["unknown parameter `scal`", "did you mean `scale`", "allowed: scale,"]);
    workload_refused("bfs1:scale=99", &["`99` is not a valid value of parameter `scale`", "from 1 to 24"]);
    workload_refused("bfs1:scale=9,scale=9", &["parameter `scale` is given twice"]);
    workload_refused("bfs1:scale=9,root=512", &["512", "allowed"]);
    workload_refused("back:n=100", &["100", "16"]);
}

#[test]
fn a_program_without_a_gpu_and_a_job_without_a_drive() {
    let said = ["the system `d16` has no GPU", "`memory`"];
    let run =
        |system, workload, said: &[&str]| refused(&["run", system, "--json", "--workload", workload], said);
    run("d16", "bfs1:scale=9", &said);
    run("gtx580", "bfs1:scale=9", &["`gtx580`", "`memory`"]);
    workload_refused("randread", &[]);
    workload_refused("fio:rw=randread,bs=4k,number_ios=10", &[]);
}

/// A kernel that a GPU could run, on one whose multiprocessors hold less.
#[test]
fn a_kernel_that_fits_on_no_multiprocessor() {
    for (limit, needs) in [
        ("gpu.resident.block_threads=64", "needs 256 threads"),
        ("gpu.resident.warps=4", "needs 8 warps"),
        ("gpu.resident.registers=1024", "registers"),
        ("gpu.resident.shared=256B", "bytes of shared memory"),
    ] {
        let key = limit.split_once('=').map_or(limit, |(key, _)| key);
        let run = ["run", "zng", "--json", "--workload", "back:n=1024", "--set", limit];
        refused(&run, &["kernel `back.", needs, key]);
    }
}
