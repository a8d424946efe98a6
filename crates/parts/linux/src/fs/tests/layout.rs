//! Where metadata lie, as `mke2fs` 1.47 puts them on files of these sizes (`dumpe2fs`, and `debugfs` for the journal).

use crate::fs::layout::{Layout, blocks_of};
use crate::fs::{Ext4, FsSpec, JournalMode};
use config::units::Bytes;

/// Bytes of a drive; its blocks, those that metadata take (`Overhead clusters`), the block bitmap and the inode table of the first
/// group, the first block of the journal and how many it has.
const MEASURED: [(u64, u64, u64, u64, u64, u64, u64); 7] = [
    (1 << 30, 262_144, 12_949, 129, 145, 131_072, 8192),
    (8 << 30, 2_097_152, 58_505, 1025, 1057, 1_081_344, 16_384),
    (100 << 30, 26_214_400, 557_842, 1038, 1070, 13_139_968, 131_072),
    (480_103_981_056, 117_212_886, 2_120_694, 1081, 1113, 58_228_736, 262_144),
    (800_000_000_000, 195_312_500, 3_346_240, 1119, 1151, 97_550_336, 262_144),
    (2_000_398_934_016, 488_378_646, 7_947_216, 1258, 1290, 243_826_688, 262_144),
    (10 << 40, 2_684_354_560, 21_446_680, 2049, 2081, 1_342_210_048, 262_144),
];

#[test]
fn metadata_lie_where_mke2fs_puts_them() {
    for (bytes, blocks, overhead, bitmap, table, journal, journal_blocks) in MEASURED {
        let found = FsSpec::default().journal_blocks(blocks_of(bytes)).expect("it fits");
        assert_eq!(found, journal_blocks, "{bytes}");
        let layout = Layout::new(blocks_of(bytes), found).expect("it fits");
        let taken: u64 = layout.fixed().map(|(_, blocks)| blocks).sum::<u64>() + found;
        assert_eq!((layout.blocks, taken), (blocks, overhead), "{bytes}");
        assert_eq!((layout.block_bitmap(0), layout.inode_block(1)), (bitmap, table), "{bytes}");
        assert_eq!(layout.journal, journal, "{bytes}");
    }
}

/// Of 800 GB, as `dumpe2fs` prints the first groups.
#[test]
fn bitmaps_and_tables_of_sixteen_groups_lie_together() {
    let layout = Layout::new(195_312_500, 262_144).expect("it fits");
    assert_eq!((layout.block_bitmap(0), layout.bitmap_of_inode(1)), (1119, 1135));
    assert_eq!((layout.block_bitmap(1), layout.bitmap_of_inode(8193)), (1120, 1136));
    assert_eq!(
        (layout.inode_block(1), layout.inode_block(8193), layout.inode_block(16_385)),
        (1151, 1663, 2175)
    );
    // Sixteen inodes of a block, 64 descriptors of one.
    assert_eq!((layout.inode_block(16), layout.inode_block(17)), (1151, 1152));
    assert_eq!((layout.descriptor(63), layout.descriptor(64)), (1, 2));
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Ext4::new(&FsSpec::default(), 4 << 20).is_err());
    let spec = FsSpec { journal_size: Some(Bytes::new(1 << 20)), ..FsSpec::default() };
    assert_eq!(Ext4::new(&spec, 1 << 30).err().expect("it is too small").key, "journal_size");
    let spec = FsSpec { journal_size: Some(Bytes::new(600 << 20)), ..FsSpec::default() };
    assert_eq!(Ext4::new(&spec, 1 << 30).err().expect("it is too large").key, "journal_size");
    let spec = FsSpec { data: JournalMode::none, ..spec };
    assert!(Ext4::new(&spec, 1 << 30).is_ok());
}
