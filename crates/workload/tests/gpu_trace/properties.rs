//! Whatever a file holds, it is read or refused.

use proptest::prelude::*;
use workload::program::{Program, census};
use workload::simt_trace::{is_gpu_trace, open};

use crate::support::{folder, gzip};

const KERNEL: &str = "-kernel name = k
-grid dim = (2,1,1)
-block dim = (32,1,1)
-shmem = 0
-nregs = 8
-shmem base_addr = 0x00007fb139000000
-local mem base_addr = 0x00007fb137000000
-accelsim tracer version = 5

#traces format = whatever

#BEGIN_TB
thread block = 0,0,0
warp = 0
insts = 4
0000 ffffffff 1 R1 MOV 0 0 0
0010 ffffffff 1 R4 LDG.E 1 R4 4 1 0x7fb0fc430e00 4 0
0020 00000003 0 STL 2 R4 R5 4 2 0xfffc00 0 0
0030 ffffffff 0 EXIT 0 0 0
#END_TB
#BEGIN_TB
thread block = 1,0,0
warp = 0
insts = 1
0000 00000007 0 STS.64 2 R1 R3 8 0 0x10 0x20 0x30 0
#END_TB
";

fn warp() -> Vec<u8> {
    let mut bytes = vec![0; 256];
    for (n, opcode) in [60_u8, 73, 78, 139].into_iter().enumerate() {
        let record = &mut bytes[n * 64..][..64];
        record[0] = opcode;
        (record[4], record[5], record[6], record[14]) = (1, 1, 3, 4);
        record[24..28].fill(0xff);
        record[32] = n as u8 * 16;
        record[50] = 9;
        record[56] = 4;
    }
    bytes
}

/// A text or bytes, with some of them changed, cut or doubled.
fn mutated(original: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..6_u8);
    proptest::collection::vec(change, 0..4).prop_map(move |changes| {
        let mut bytes = original.clone();
        for (index, value, how) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = index.index(bytes.len());
            match how {
                0 => bytes.truncate(at),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"0123456789abcdef,=-# \n"[usize::from(value) % 22]),
                3 => bytes[at] ^= 1 << (value % 8),
                4 => bytes[at] = value,
                _ => {
                    let from = at.saturating_sub(usize::from(value));
                    let again = bytes[from..at].to_vec();
                    bytes.extend(again);
                }
            }
        }
        bytes
    })
}

/// Reads whatever is there, and runs what can be read.
fn take(path: &std::path::Path) {
    let known = is_gpu_trace(path);
    match open(path) {
        Ok(mut program) => {
            assert!(known);
            // A census marks every page.
            if program.space().footprint() < 1 << 34 {
                let census = census(program.as_mut() as &mut dyn Program);
                assert!(!census.kernels.is_empty());
            }
        }
        Err(said) => {
            assert!(!said.what.is_empty());
            assert!(said.place.is_some(), "{said}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn kernel_files(text in mutated(KERNEL.into()), list in mutated(b"MemcpyHtoD,0x7fb0fc400000,200000\nkernel-1.traceg\n".to_vec())) {
        let folder = folder(&[("kernelslist.g", &list), ("kernel-1.traceg", &text)]);
        take(&folder.path().join("kernelslist.g"));
        take(&folder.path().join("kernel-1.traceg"));
    }

    #[test]
    fn folders(list in mutated(b"nvbit\n14\n16\n2\n0 0\n65536 0\n".to_vec()), warp in mutated(warp())) {
        let files: [(&str, &[u8]); 3] = [("trace.txt", &list), ("trace_0.raw", &gzip(&warp)), ("trace_65536.raw", &warp)];
        let folder = folder(&files);
        take(folder.path());
    }
}
