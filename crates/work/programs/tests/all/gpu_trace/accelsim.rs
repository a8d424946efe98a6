//! Accel-Sim's lists and kernel files.

use proto::simt::InstKind;

use super::{folder, gzip, refused, unfold};

/// Returns a kernel file of one block of two warps, whose first executes these lines.
fn kernel(version: u32, lines: &[&str]) -> String {
    file(&head(version), lines)
}

fn head(version: u32) -> String {
    format!(
        "-kernel name = k\n-kernel id = 1\n-grid dim = (1,1,1)\n-block dim = (64,1,1)\n-shmem = 1024\n-nregs = 16\n\
         -binary version = 80\n-cuda stream id = 0\n-shmem base_addr = 0x00007fb139000000\n\
         -local mem base_addr = 0x00007fb137000000\n-nvbit version = 1.7\n-accelsim tracer version = {version}\n"
    )
}

fn file(head: &str, lines: &[&str]) -> String {
    let (count, lines) = (lines.len(), lines.join("\n"));
    format!(
        "{head}\n#traces format = whatever\n\n#BEGIN_TB\n\nthread block = 0,0,0\n\nwarp = 0\ninsts = {count}\n{lines}\n\n\
         warp = 1\ninsts = 1\n0000 ffffffff 0 EXIT 0 0 \n\n#END_TB\n"
    )
}

/// Returns the addresses that a line's lanes access, which must all be global.
fn addresses(line: &str) -> Vec<u64> {
    let folder = folder(&[("k.traceg", kernel(5, &[line]).as_bytes())]);
    let (_, warps) = &unfold(&folder.path().join("k.traceg"))[0];
    warps[0][0].1.clone()
}

/// Returns the diagnostic of a kernel whose first warp executes these lines.
fn fault(lines: &[&str]) -> config::Diagnostic {
    refused(&[("k.traceg", kernel(5, lines).as_bytes())], "k.traceg")
}

#[test]
fn addresses_are_read_in_each_mode() {
    // The pages 0x7f0000000 and 0x7f0000002 become 0 and 1.
    let list = "0010 80000003 1 R2 LDG.E 1 R4 4 0 0x00007f0000000010 0x00007f0000002004 0x00007f0000000000 0";
    assert_eq!(addresses(list), [0x10, 0x1004, 0]);
    let stride = "0010 000000f0 1 R2 LDG.E 1 R4 4 1 0x7f0000001010 -8 0";
    assert_eq!(addresses(stride), [0x1010, 0x1008, 0x1000, 0xff8]);
    let deltas = "0010 80000011 1 R2 LDG.E 1 R4 4 2 0x7f0000000000 8200 -8000 0";
    assert_eq!(addresses(deltas), [0, 0x1008, 200]);
    // A single lane has no stride.
    assert_eq!(addresses("0010 00000100 1 R2 LDG.E.64 1 R4 8 2 0x7f0000000ff8 0"), [0xff8]);
}

#[test]
fn versions_without_an_immediate_and_lines_with_a_number_are_read() {
    let line = "0010 00000001 1 R2 LDG.E 1 R4 4 1 0x7f0000000010 4";
    let folder = folder(&[
        ("v3.traceg", kernel(3, &[line]).as_bytes()),
        ("v5.traceg", kernel(5, &[&format!("{line} 0")]).as_bytes()),
        (
            "lines.traceg",
            file(&format!("{}-enable lineinfo = 1\n", head(5)), &[&format!("77 {line} 0")])
                .replace("\n0000 ffff", "\n78 0000 ffff")
                .as_bytes(),
        ),
        ("packed", &gzip(kernel(4, &[line]).as_bytes())),
    ]);
    let v3 = unfold(&folder.path().join("v3.traceg"));
    assert_eq!(v3[0].1[0][0].1, [0x10]);
    for name in ["v5.traceg", "lines.traceg", "packed"] {
        assert_eq!(unfold(&folder.path().join(name)), v3, "{name}");
    }
}

/// Kind, width, registers, lanes, addresses.
type Executed = (InstKind, u8, u8, [u8; 3], u32, &'static [u64]);

#[test]
fn opcodes_masks_and_registers_become_instructions() {
    let lines = [
        "0000 ffffffff 1 R0 IMAD.WIDE 3 R255 R6 R6 0 0",
        "0010 0000ffff 1 R255 MUFU.RCP 1 R254 0 0",
        "0020 00000000 1 R3 LDG.E 1 R2 4 1 0x0 0 0",
        "0030 00000003 0 STS.64 2 R1 R2 8 1 0x20 8 0",
        "0040 00000003 1 R9 LD.E.U8 1 R2 1 1 0x7fb139000040 1 0",
        "0050 00000001 1 R9 LD.E 1 R2 4 1 0x7fb200000040 1 0",
        "0060 00000001 0 RED.E.ADD.F64.RN.STRONG.GPU 2 R2 R4 4 1 0x7fb200000080 1 0",
        "0070 ffffffff 0 BAR.SYNC.DEFER_BLOCKING 0 0 0",
        "0080 00000001 0 LDGSTS.E.BYPASS.128 2 R2 R4 16 1 0x30 0 0",
        "0080 00000001 0 LDGSTS.E.BYPASS.128 2 R2 R4 16 1 0x7fb200000100 0 0",
        "0000 ffffffff 1 R0 IMAD.WIDE 3 R255 R6 R6 0 0",
    ];
    let folder = folder(&[("k.traceg", kernel(5, &lines).as_bytes())]);
    let kernels = unfold(&folder.path().join("k.traceg"));
    let (kernel, warps) = &kernels[0];
    assert_eq!((kernel.blocks, kernel.threads, kernel.registers, kernel.shared), (1, 64, 16, 1024));
    assert_eq!(warps[1].len(), 1);
    let read: Vec<_> =
        warps[0].iter().map(|(i, a)| (i.kind, i.width, i.to, i.from, i.mask, a.as_slice())).collect();
    use InstKind::{Alu, Atomic, Barrier, Load, Sfu, SharedLoad, SharedStore};
    let all = u32::MAX;
    let expected: [Executed; 11] = [
        (Alu, 0, 1, [7, 0, 0], all, &[]),
        (Sfu, 0, 0, [255, 0, 0], 0xffff, &[]),
        (Alu, 0, 4, [3, 0, 0], 0, &[]),
        (SharedStore, 8, 0, [2, 3, 0], 3, &[0x20, 0x28]),
        (SharedLoad, 1, 10, [3, 0, 0], 3, &[0x40, 0x41]),
        (Load, 4, 10, [3, 0, 0], 1, &[0x40]),
        (Atomic, 8, 0, [3, 5, 0], 1, &[0x80]),
        (Barrier, 0, 0, [0; 3], all, &[]),
        (SharedStore, 16, 0, [3, 5, 0], 1, &[0x30]),
        (Load, 16, 0, [3, 5, 0], 1, &[0x100]),
        (Alu, 0, 1, [7, 0, 0], all, &[]),
    ];
    assert_eq!(read, expected);
    let pcs: Vec<u32> = warps[0].iter().map(|(inst, _)| inst.pc).collect();
    assert_eq!(pcs[0], pcs[10]);
    assert_eq!(pcs[8], pcs[9]);
    assert!(pcs[0] > 0 && pcs[0] != pcs[1]);
}

#[test]
fn local_memory_lies_lane_by_lane() {
    let lines = [
        "0000 ffffffff 0 STL 2 R1 R2 4 1 0xfffc00 0 0",
        "0010 ffffffff 1 R2 LDL 1 R1 4 1 0xfffc04 0 0",
        "0020 00000001 1 R2 LDG.E 1 R1 4 1 0x7f0000000000 0 0",
    ];
    let folder = folder(&[("k.traceg", kernel(5, &lines).as_bytes())]);
    let kernels = unfold(&folder.path().join("k.traceg"));
    let warp = &kernels[0].1[0];
    // After the single page of global memory.
    let expected = |word: u64| (0..32).map(|lane| 4096 + word * 128 + lane * 4).collect::<Vec<u64>>();
    assert_eq!((warp[0].0.kind, &warp[0].1), (InstKind::Store, &expected(0)));
    assert_eq!((warp[1].0.kind, &warp[1].1), (InstKind::Load, &expected(1)));
}

#[test]
fn a_list_launches_its_kernels_in_order_and_lays_out_its_buffers() {
    let line = "0010 00000001 1 R2 LDG.E 1 R4 4 1 0x7f0000009010 4 0";
    let folder = folder(&[
        (
            "kernelslist.g",
            b"MemcpyHtoD,0x00007f0000000000,20481\nkernel-1.traceg\n\nMemcpyDtoH,0x1,2\nkernel-2.traceg\n",
        ),
        ("kernel-1.traceg", kernel(5, &[line]).as_bytes()),
        ("kernel-2.traceg", kernel(5, &[line, line]).as_bytes()),
    ]);
    let kernels = unfold(folder.path());
    assert_eq!(kernels.iter().map(|(_, warps)| warps[0].len()).collect::<Vec<_>>(), [1, 2]);
    // Six pages of the buffer come first.
    assert_eq!(kernels[0].1[0][0].1, [6 * 4096 + 0x10]);
    assert_eq!(kernels[0].1[0][0].0.pc, kernels[1].1[0][0].0.pc);
}

#[test]
fn the_tracers_own_file_is_read_as_the_grouped_one() {
    let grouped =
        kernel(5, &["0000 ffffffff 1 R1 MOV 0 0 0", "0010 00000001 1 R2 LDG.E 1 R4 4 1 0x7f0000000010 4 0"]);
    let loose = format!(
        "{}\n#traces format = whatever\n\n0 0 0 0 0000 ffffffff 1 R1 MOV 0 0 0\n0 0 0 1 0000 ffffffff 0 EXIT 0 0 0\n\
         0 0 0 0 0010 00000001 1 R2 LDG.E 1 R4 4 1 0x7f0000000010 4 0\n",
        head(5)
    );
    let folder = folder(&[("a.traceg", grouped.as_bytes()), ("a.trace", loose.as_bytes())]);
    assert_eq!(unfold(&folder.path().join("a.trace")), unfold(&folder.path().join("a.traceg")));
}

#[test]
fn bad_lines_are_refused_where_they_stand() {
    // The first instruction is in line 22 of the file.
    for (line, what, column) in [
        ("0010 ffffffff 1 R2 LDGG.E 1 R4 4 1 0x10 4 0", "unknown opcode `LDGG.E`", 20),
        ("0010 ffffffff 1 R2 TEX 1 R4 0 0", "texture", 20),
        ("0010 1ffffffff 1 R2 MOV 0 0 0", "more than 32 lanes", 6),
        ("0010 fxfffffff 1 R2 MOV 0 0 0", "mask is not a number", 6),
        ("0010 ffffffff 1 R256 MOV 0 0 0", "not a register", 17),
        ("0010 ffffffff 1 P0 MOV 0 0 0", "not a register", 17),
        ("0010 ffffffff 2 R1 R2 MOV 0 0 0", "number of destinations is 2", 15),
        ("0010 ffffffff 1 R2 MOV 9 0 0", "number of sources is 9", 24),
        ("0010 00000003 1 R2 LDG.E 1 R4 4 0 0x10", "ends before the address", 0),
        ("0010 00000003 1 R2 LDG.E 1 R4 4 3 0x10 0", "unknown address mode 3", 0),
        ("0010 00000005 1 R2 LDG.E 1 R4 4 1 0x10 4 0", "has gaps", 0),
        ("0010 00000003 1 R2 LDG.E 1 R4 0 0", "without addresses", 0),
        ("0010 00000003 1 R2 LDG.E 1 R4 4 1 0xfffffffffffffffa 4 0", "beyond the 64-bit", 0),
        ("0010 00000003 1 R2 LD.E 1 R4 4 0 0x7fb139000040 0x7f0000000000 0", "different address spaces", 0),
        ("0010 00000003 1 R2 LDG.E 1 R4 4 1 0x10 4 0 0", "text after the last field", 0),
        ("0010 00000003 1 R2", "ends before the opcode", 0),
    ] {
        let said = fault(&["0000 ffffffff 1 R1 MOV 0 0 0", line]);
        let place = said.place.as_deref().expect("a place");
        assert!(said.what.contains(what), "{line}: {said}");
        assert!(place.source.ends_with("k.traceg"), "{said}");
        assert_eq!((place.line, place.text.as_str()), (23, line), "{said}");
        assert!(column == 0 || place.column == column, "{line}: {said}");
    }
    assert_eq!(fault(&["0010 ffffffff 1 R2 LDGG.E 1 R4 4 1 0x10 4 0"]).nearest.as_deref(), Some("LDG"));
}

#[test]
fn bad_files_are_refused() {
    let good = kernel(5, &["0000 ffffffff 1 R1 MOV 0 0 0"]);
    let change = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        refused(&[("k.traceg", good.replacen(from, to, 1).as_bytes())], "k.traceg")
    };
    for (from, to, what, line) in [
        ("version = 5", "version = 2", "tracer version `2`", 12),
        ("version = 5", "version = 6", "tracer version `6`", 12),
        ("-nregs", "-nreg", "unknown key `nreg`", 6),
        ("-nregs = 16", "-nregs = many", "not a number", 6),
        ("(64,1,1)", "(64,1)", "not a list of dimensions", 4),
        ("(64,1,1)", "(64,64,1)", "block of 64 x 64 x 1", 4),
        ("(1,1,1)", "(0,1,1)", "grid of 0 x 1 x 1", 3),
        ("-shmem = 1024\n", "", "no `-shmem = `", 13),
        ("thread block = 0,0,0", "thread block = 1,0,0", "outside the grid", 18),
        ("warp = 1", "warp = 2", "not a warp of a block of 64 threads", 24),
        ("warp = 1", "warp = 0", "appears twice", 0),
        ("insts = 1\n0000 ffffffff 1", "insts = 2\n0000 ffffffff 1", "fewer than", 24),
        ("insts = 1\n0000 ffffffff 1", "insts = 0\n0000 ffffffff 1", "more instructions", 22),
        ("#END_TB", "", "truncated", 0),
        ("(1,1,1)", "(2,1,1)", "warp 0 of block 1 is not in the trace", 0),
        ("warp = 0\n", "", "must be the line after", 20),
        ("#BEGIN_TB", "", "must be the first line of its block", 18),
    ] {
        let said = change(from, to);
        assert!(said.what.contains(what), "{from} -> {to}: {said}");
        let place = said.place.as_deref().expect("a place");
        assert!(place.source.ends_with("k.traceg"), "{said}");
        assert_eq!(place.line, line, "{from} -> {to}: {said}");
    }
    assert_eq!(change("-nregs", "-nreg").nearest.as_deref(), Some("nregs"));
    let head_only = &good[..good.find("#traces").unwrap()];
    assert!(refused(&[("k.traceg", head_only.as_bytes())], "k.traceg").what.contains("within its head"));
    let packed = gzip(good.as_bytes());
    let cut = refused(&[("k.traceg", &packed[..packed.len() - 12])], "k.traceg");
    assert!(cut.what.contains("cannot read"), "{cut}");
}

#[test]
fn bad_lists_are_refused() {
    let good = kernel(5, &["0000 ffffffff 1 R1 MOV 0 0 0"]);
    let said = |list: &str| {
        let files: [(&str, &[u8]); 2] =
            [("kernelslist.g", list.as_bytes()), ("kernel-1.traceg.xz", good.as_bytes())];
        refused(&files, "kernelslist.g")
    };
    let absent = said("MemcpyHtoD,0x10,4\nkernel-1.traceg\n");
    assert!(absent.what.contains("no kernel file `kernel-1.traceg`"), "{absent}");
    assert_eq!(
        (absent.place.as_ref().map(|p| p.line), absent.nearest.as_deref()),
        (Some(2), Some("kernel-1.traceg.xz"))
    );
    assert!(said("MemcpyHtoD,0x10,4\nfoo\n").what.contains("neither a copy nor a kernel"));
    assert!(said("MemcpyHtoD,0x10\n").what.contains("a copy is"));
    assert_eq!(said("MemcpyHtoH,0x10,4\n").nearest.as_deref(), Some("MemcpyHtoD"));
    assert!(said("MemcpyHtoD,0xfffffffffffffff0,32\n").what.contains("beyond 64 bits"));
    assert!(said("MemcpyHtoD,0x10,4\n").what.contains("no kernel"));
    assert!(refused(&[("a", b"hello\n")], "a").what.contains("not an instruction trace"));
    assert!(refused(&[], "a").what.contains("cannot read the trace"));
}
