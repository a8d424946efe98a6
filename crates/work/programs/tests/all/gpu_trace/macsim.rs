//! Folders and archives of MacSim.

use programs::simt_trace::is_gpu_trace;
use proto::simt::InstKind;

use super::{folder, gzip, refused, unfold};

const MOV: u8 = 60;
const LDG: u8 = 73;
const LDS: u8 = 75;
const ATOMG: u8 = 85;

/// Returns a record: opcode, whether it is a further address, mask, program counter, address, bytes per lane.
fn record(opcode: u8, child: bool, mask: u32, pc: u64, address: u64, size: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[0] = opcode;
    bytes[1] = u8::from(child);
    (bytes[4], bytes[5]) = (1, 1);
    bytes[6] = 7;
    bytes[14] = 9;
    bytes[24..28].copy_from_slice(&mask.to_le_bytes());
    bytes[32..40].copy_from_slice(&pc.to_le_bytes());
    bytes[48..56].copy_from_slice(&address.to_le_bytes());
    bytes[56] = size;
    bytes
}

const ROOT: &[u8] = b"nvbit\n14\n-1\n./Kernel0/trace.txt\n";
const LIST: &[u8] = b"nvbit\n14\n16\n2\n0 0\n1 0\n";

/// Returns the diagnostic of a trace whose warp 1 has these records.
fn fault(records: &[u8]) -> config::Diagnostic {
    let (first, second) = (gzip(&record(MOV, false, 1, 0x100, 0, 4)), gzip(records));
    let files: [(&str, &[u8]); 4] = [
        ("kernel_config.txt", ROOT),
        ("Kernel0/trace.txt", LIST),
        ("Kernel0/trace_0.raw", &first),
        ("Kernel0/trace_1.raw", &second),
    ];
    refused(&files, "kernel_config.txt")
}

#[test]
fn records_become_instructions() {
    let base = 0x7fb0_0000_0000;
    let records = [
        record(MOV, false, u32::MAX, 0x100, 0, 4),
        // All lanes side by side.
        record(LDG, false, 0xff, 0x110, base, 8),
        // Three lines; the parent's size is multiplied by their number.
        record(LDG, false, 0b111_1110, 0x120, base, 12),
        record(LDG, true, 0b111_1110, 0x120, base + 128, 4),
        record(LDG, true, 0b111_1110, 0x120, base + 256, 4),
        record(LDS, false, 0b11, 0x130, 0x40, 4),
        record(LDG, false, 0, 0x110, base, 8),
    ]
    .concat();
    let warp = gzip(&records);
    let files: [(&str, &[u8]); 4] = [
        ("kernel_config.txt", ROOT),
        ("Kernel0/trace.txt", LIST),
        ("Kernel0/trace_0.raw", &warp),
        ("Kernel0/trace_1.raw", &warp),
    ];
    let folder = folder(&files);
    let kernels = unfold(folder.path());
    let (kernel, warps) = &kernels[0];
    // R9 is the tenth register; shared memory ends at 0x48.
    assert_eq!((kernel.name, kernel.blocks, kernel.threads), ("Kernel0", 1, 64));
    assert_eq!((kernel.registers, kernel.shared), (10, 256));
    assert_eq!(warps[0], warps[1]);
    let read: Vec<_> = warps[0].iter().map(|(i, a)| (i.kind, i.width, i.mask, a.clone())).collect();
    let expected = [
        (InstKind::Alu, 0, u32::MAX, vec![]),
        (InstKind::Load, 8, 0xff, (0..8).map(|lane| lane * 8).collect()),
        (InstKind::Load, 4, 0b111_1110, vec![0, 0, 128, 128, 256, 256]),
        (InstKind::SharedLoad, 4, 0b11, vec![0x40, 0x44]),
        (InstKind::Alu, 0, 0, vec![]),
    ];
    assert_eq!(read, expected);
    assert_eq!((warps[0][0].0.from, warps[0][0].0.to), ([8, 0, 0], 10));
    // The folder, its list and its kernel are one trace.
    assert_eq!(unfold(&folder.path().join("kernel_config.txt")), kernels);
    assert_eq!(unfold(&folder.path().join("Kernel0/trace.txt"))[0].1, kernels[0].1);
}

#[test]
fn bad_records_are_refused() {
    let good = record(MOV, false, 1, 0x100, 0, 4);
    for (bad, what) in [
        (record(255, false, 1, 0x110, 0, 4), "record 2: unknown opcode 255"),
        (record(120, false, 1, 0x110, 0, 4), "texture"),
        (record(ATOMG, false, 1, 0x110, 0, 4), "record 2: ATOMG without an address"),
        (record(LDG, false, 1, 0x110, 0x1000, 3), "an access of 3 bytes"),
        (record(LDG, false, 3, 0x110, u64::MAX - 4, 4), "beyond the 64-bit"),
        (good[..63].to_vec(), "record 2: 63 bytes of 64: the file is truncated"),
    ] {
        let said = fault(&[good.clone(), bad].concat());
        assert!(said.what.contains(what), "{said}");
        assert!(said.place.as_deref().is_some_and(|p| p.source.ends_with("trace_1.raw")), "{said}");
    }
    let mut many = good.clone();
    many[4] = 5;
    assert!(fault(&many).what.contains("record 1: 5 source registers"));
    let mut high = good.clone();
    high[7] = 1;
    assert!(fault(&high).what.contains("source register 263"), "{}", fault(&high));
}

#[test]
fn names_of_kernels_say_their_sizes() {
    let warp = gzip(&record(MOV, false, 1, 0x100, 0, 4));
    let with = |names: &'static str| -> [(&'static str, Vec<u8>); 5] {
        [
            ("kernel_config.txt", ROOT.to_vec()),
            ("kernel_names.txt", names.as_bytes().to_vec()),
            ("Kernel0/trace.txt", LIST.to_vec()),
            ("Kernel0/trace_0.raw", warp.clone()),
            ("Kernel0/trace_1.raw", warp.clone()),
        ]
    };
    let good = "Kernel0 name: add(float*, int)\n  Grid size: (1, 1, 1), Block size: (20, 2, 1), maxBlockPerCore: 8, \
                # of regs: 24, static shared mem: 512, dynamic shared mem: 16\n";
    let files = with(good);
    let folder = folder(&files.each_ref().map(|(name, bytes)| (*name, bytes.as_slice())));
    let kernel = unfold(folder.path())[0].0;
    assert_eq!((kernel.name, kernel.threads), ("add(float*, int)", 40));
    assert_eq!((kernel.registers, kernel.shared), (24, 528));
    for (names, what, line) in [
        ("Kernel0: add\n", "a kernel is `Kernel<n> name: <function>`", 1),
        ("Kernel0 name: add\n  Grid size: (1, 1), Block size: (20, 2, 1)\n", "a kernel's sizes are", 2),
        (
            "Kernel0 name: add\n  Grid size: (1, 1, 1), Block size: (20, 1, 1), maxBlockPerCore: 8, # of regs: 24, \
             static shared mem: 512, dynamic shared mem: 16\n",
            "1 blocks of 2 warps",
            0,
        ),
    ] {
        let files = with(names);
        let said =
            refused(&files.each_ref().map(|(name, bytes)| (*name, bytes.as_slice())), "kernel_config.txt");
        assert!(said.what.contains(what), "{said}");
        assert_eq!(said.place.as_deref().map(|place| place.line), Some(line), "{said}");
    }
}

/// List of kernels, list of warps, a warp, its count; the diagnostic, and its line.
type Case<'a> = (&'a [u8], &'a [u8], &'a [u8], &'a [u8], &'a str, u64);

#[test]
fn bad_files_are_refused() {
    let warp = gzip(&record(MOV, false, 1, 0x100, 0, 4));
    let with = |root: &[u8], list: &[u8], warp0: &[u8], info: &[u8]| {
        let files: [(&str, &[u8]); 5] = [
            ("kernel_config.txt", root),
            ("Kernel0/trace.txt", list),
            ("Kernel0/trace_0.raw", warp0),
            ("Kernel0/trace_1.raw", &warp),
            ("Kernel0/trace_info.txt", info),
        ];
        refused(&files, "kernel_config.txt")
    };
    let cases: [Case; 12] = [
        (b"nvbit\n13\n-1\n", LIST, &warp, b"", "version `13`", 2),
        (b"ptx\n14\n-1\n", LIST, &warp, b"", "type `ptx`", 1),
        (b"nvbit\n14\n", LIST, &warp, b"", "ends before", 0),
        (b"nvbit\n14\n-1\nKernel1/trace.txt\n", LIST, &warp, b"", "no configuration of a kernel", 0),
        (ROOT, ROOT, &warp, b"", "a list of kernels in a list", 0),
        (ROOT, b"nvbit\n14\n16\n3\n0 0\n1 0\n", &warp, b"", "3 warps; 2 are listed", 4),
        (ROOT, b"nvbit\n14\n16\n2\n0 0\n2 0\n", &warp, b"", "no file of warp 2", 0),
        (ROOT, b"nvbit\n14\n16\n2\n0 0\n1 5\n", &warp, b"", "starts after 5", 6),
        (ROOT, b"nvbit\n14\n16\n2\n0 0\n0 0\n", &warp, b"", "appears twice", 0),
        (ROOT, b"nvbit\n14\n16\n2\nx 0\n1 0\n", &warp, b"", "not a number: `x`", 5),
        (ROOT, LIST, &warp[..warp.len() - 9], b"", "truncated", 0),
        (ROOT, LIST, &warp, b"0 1\n1 14\n", "1 records; `Kernel0/trace_info.txt` says 14", 0),
    ];
    for (root, list, warp0, info, what, line) in cases {
        let said = with(root, list, warp0, info);
        assert!(said.what.contains(what), "{what}: {said}");
        assert_eq!(said.place.as_deref().map(|place| place.line), Some(line), "{said}");
    }
    let empty = refused(&[("Kernel0/trace.txt", b"nvbit\n14\n16\n0\n")], "Kernel0/trace.txt");
    assert!(empty.what.contains("without warps"), "{empty}");
}

/// Returns a member of a tar archive.
fn member(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut head = vec![0; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    head[156] = b'0';
    head[257..263].copy_from_slice(b"ustar\0");
    head[148..156].copy_from_slice(b"        ");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    head.extend_from_slice(bytes);
    head.resize(head.len().next_multiple_of(512), 0);
    head
}

#[test]
fn an_archive_is_its_folder() {
    let warp = gzip(&record(MOV, false, 1, 0x100, 0, 4));
    // Warps first: the order of members must not matter.
    let members = [
        member("./a/Kernel0/trace_1.raw", &warp),
        member("./a/Kernel0/trace_0.raw", &warp),
        member("./a/Kernel0/trace.txt", LIST),
        member("./a/kernel_config.txt", ROOT),
    ]
    .concat();
    let whole = [members.clone(), vec![0; 1024]].concat();
    let mut wrong = members.clone();
    wrong[1024 + 3] ^= 1;
    let folder = folder(&[("a.tar", &whole), ("a.tar.gz", &gzip(&whole))]);
    let kernels = unfold(&folder.path().join("a.tar"));
    assert_eq!((kernels.len(), kernels[0].1.len()), (1, 2));
    assert_eq!(unfold(&folder.path().join("a.tar.gz")), kernels);
    assert!(is_gpu_trace(&folder.path().join("a.tar.gz")));
    // Within a header, within a file, between two files.
    for bytes in [members.len() - 600, members.len() - 10, members.len()] {
        let said = refused(&[("a.tar", &members[..bytes])], "a.tar");
        assert!(said.what.contains("cannot read the archive"), "{said}");
    }
    let said = refused(&[("a.tar", &wrong)], "a.tar");
    assert!(said.what.contains("checksum"), "{said}");
    let two = [members.clone(), member("./b/kernel_config.txt", ROOT), vec![0; 1024]].concat();
    assert!(refused(&[("a.tar", &two)], "a.tar").what.contains("more than one trace"));
}
