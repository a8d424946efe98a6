//! What a trace takes in memory.

use std::fmt::Write as _;

use crate::simt_trace::detect::read;

/// A kernel of `warps` warps that load at random and store in a row, with arithmetic between.
fn trace(warps: u32) -> String {
    let mut text = format!(
        "-kernel name = k\n-grid dim = ({warps},1,1)\n-block dim = (32,1,1)\n-shmem = 0\n-nregs = 8\n\
         -accelsim tracer version = 5\n#\n"
    );
    let mut random = 1_u64;
    for warp in 0..warps {
        let _ = write!(text, "#BEGIN_TB\nthread block = {warp},0,0\nwarp = 0\ninsts = 40\n");
        for n in 0..38 {
            let _ = writeln!(text, "{:04x} ffffffff 1 R{} IMAD 2 R6 R3 0 0", n * 16, n % 30);
        }
        text.push_str("0400 ffffffff 1 R4 LDG.E 1 R4 4 0");
        for _ in 0..32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let _ = write!(text, " {:#018x}", 0x7f00_0000_0000 + (random >> 32 & 0xfff_fffc));
        }
        let _ = writeln!(
            text,
            " 0\n0410 ffffffff 0 STG.E 2 R4 R5 4 1 {:#x} 4 0\n#END_TB",
            0x7e00_0000_0000_u64 + u64::from(warp) * 128
        );
    }
    text
}

#[test]
fn a_trace_takes_a_fraction_of_its_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kernel-1.traceg");
    let text = trace(1000);
    std::fs::write(&path, &text).expect("a file");
    let held = read(&path).unwrap_or_else(|refused| panic!("{refused}")).held();
    // A random access: a byte for the place, six for the base, at most five for each difference. A stride: three and less.
    // A warp: 16 bytes, and the one path of 40 bytes that all share.
    assert!(held <= 1000 * (1 + 6 + 31 * 5 + 1 + 6 + 1 + 16) + 40, "{held}");
    assert!(held * 10 < text.len() as u64, "{held} of {}", text.len());
}
