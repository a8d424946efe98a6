//! Allocation of blocks to files.

use super::*;
use crate::fs::extents::Extent;
use crate::fs::mballoc::{Prealloc, Request, normalize};
use crate::fs::{FsError, NAME_CREDITS, TRUNCATE_CREDITS};

const KIB: u64 = 1024;

/// `ext4_mb_normalize_request` by its table: file sizes up to 1 MiB to the next power of two from 16 KiB on, then
/// aligned pieces of 2 MiB (up to 4 MiB), 4 MiB (up to 8 MiB), 8 MiB.
#[test]
fn requests_are_normalized() {
    let request = |page, pages, size| Request { page, pages, size, goal: 0, left: None, right: None };
    let of = |request: Request| normalize(&request, &[]);
    assert_eq!(of(request(0, 1, 1)), (0, 4));
    assert_eq!(of(request(4, 1, 5)), (0, 8));
    assert_eq!(of(request(0, 17, 17)), (0, 32));
    assert_eq!(of(request(0, 200, 200)), (0, 256));
    assert_eq!(of(request(256, 1, 257)), (0, 512));
    assert_eq!(of(request(600, 1, 601)), (512, 512));
    assert_eq!(of(request(1100, 1, 1101)), (1024, 1024));
    assert_eq!(of(request(2100, 1, 2101)), (2048, 2048));
    // The size of the file counts, not where the request is.
    assert_eq!(of(request(3, 1, 5000)), (0, 2048));
    // Existing extents are not covered: pages up to 600, and from 700 on.
    let left = Some(Extent { page: 0, pages: 600, block: 0, unwritten: false });
    let right = Some(Extent { page: 700, pages: 1, block: 9000, unwritten: false });
    assert_eq!(of(Request { left, ..request(600, 1, 601) }), (600, 424));
    assert_eq!(of(Request { left, right, ..request(600, 1, 701) }), (600, 100));
    // Neither are preallocations.
    let kept = [Prealloc { page: 512, block: 0, pages: 20 }, Prealloc { page: 900, block: 50, pages: 10 }];
    assert_eq!(normalize(&request(600, 1, 601), &kept), (532, 368));
}

fn runs(fs: &Ext4, inode: Inode) -> Vec<u64> {
    fs.extents(inode).map(|extent| extent.pages).collect()
}

fn create(fs: &mut Ext4, inode: Inode) {
    let handle = fs.start(NAME_CREDITS, jiffy(0)).expect("the handle can start");
    fs.create(&handle, inode, jiffy(0)).expect("the drive has room");
    fs.stop(handle);
}

/// Two files that grow at the same time, by 64 KiB in turn up to 4 MiB.
#[test]
fn delayed_allocation_keeps_growing_files_apart() {
    let grow = |spec: &FsSpec| {
        let mut fs = small(spec);
        [Inode(0), Inode(1)].into_iter().for_each(|inode| create(&mut fs, inode));
        for at in 0..64 {
            for inode in [Inode(0), Inode(1)] {
                write(&mut fs, inode, at * 64 * KIB, 64 * KIB, jiffy(0));
            }
        }
        [Inode(0), Inode(1)].into_iter().for_each(|inode| write_back(&mut fs, inode, 0, 1024, jiffy(0)));
        [runs(&fs, Inode(0)), runs(&fs, Inode(1))]
    };
    // Two requests of 2 MiB each, the second after the first.
    let delayed = grow(&FsSpec::default());
    assert_eq!(delayed, [[1024], [1024]]);
    // Without delayed allocation: 64 KiB next to those of the other file, then preallocations that double the file's
    // size, up to 2 MiB.
    let at_once = grow(&FsSpec { delalloc: false, ..FsSpec::default() });
    for runs in at_once {
        assert_eq!(runs.iter().sum::<u64>(), 1024);
        assert_eq!(runs, [16, 16, 32, 64, 128, 256, 512]);
    }
}

/// Files up to 64 KiB lie next to each other (`EXT4_MB_HINT_GROUP_ALLOC`).
#[test]
fn small_files_share_a_preallocation() {
    let mut fs = small(&FsSpec::default());
    let mut ends = Vec::new();
    for file in 0..10 {
        create(&mut fs, Inode(file));
        write(&mut fs, Inode(file), 0, 20 * KIB, jiffy(0));
        write_back(&mut fs, Inode(file), 0, 5, jiffy(0));
        let extent = fs.extents(Inode(file)).next().expect("the file has an extent");
        assert_eq!(extent.pages, 5);
        ends.push((extent.block, extent.block + 5));
    }
    assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ends:?}");
}

/// A write to a full drive is refused; freed blocks can be used when the transaction that frees them has committed.
#[test]
fn a_full_drive_refuses_writes() {
    let mut fs = Ext4::new(&FsSpec::default(), 512 << 20).expect("the spec is valid");
    [Inode(0), Inode(1)].into_iter().for_each(|inode| create(&mut fs, inode));
    // Two percent, at most 4,096 blocks, are never promised (`ext4_calculate_resv_clusters`): here 2,621.
    let room = fs.available() - (512 << 20) / PAGE / 50;
    write(&mut fs, Inode(0), 0, (room - 1) * PAGE, jiffy(0));
    let bytes = 2 * PAGE;
    let handle = fs.start(INODE_CREDITS, jiffy(0)).expect("the handle can start");
    let refused = fs.write(Some(&handle), Inode(1), 0, bytes, jiffy(0));
    assert_eq!(refused, Err(FsError::NoSpace { retry: None }));
    assert_eq!((fs.size(Inode(1)), fs.stats.no_space), (Some(0), 1));
    assert_eq!(fs.write(Some(&handle), Inode(1), 0, PAGE, jiffy(0)), Ok(()));
    fs.stop(handle);
    write_back(&mut fs, Inode(0), 0, room - 1, jiffy(0));
    write_back(&mut fs, Inode(1), 0, 1, jiffy(0));
    assert_eq!(fs.stats.allocated, room);
    let left = fs.available();
    let handle = fs.start(TRUNCATE_CREDITS, jiffy(0)).expect("the handle can start");
    assert_eq!(fs.unlink(&handle, Inode(0)), Ok(true));
    assert_eq!((fs.size(Inode(0)), fs.available()), (None, left));
    let refused = fs.write(Some(&handle), Inode(1), PAGE, (left + 1) * PAGE, jiffy(0));
    assert_eq!(refused, Err(FsError::NoSpace { retry: Some(handle.tid) }));
    let tid = handle.tid;
    fs.stop(handle);
    fs.request_commit(tid, crate::fs::CommitCause::Sync);
    commit(&mut fs, jiffy(0));
    assert!(fs.available() >= left + room - 1);
    write(&mut fs, Inode(1), PAGE, (left + 1) * PAGE, jiffy(0));
}

/// Files that existed before the run take every free block, also those kept for small files, and not one more.
#[test]
fn files_that_were_there_fill_a_drive_to_its_last_block() {
    for pages in [5, 16, 17, 300] {
        let mut fs = Ext4::new(&FsSpec::default(), 256 << 20).expect("the spec is valid");
        let mut file = 0;
        while fs.available() >= pages {
            fs.exists(Inode(file), pages * PAGE).expect("blocks and inodes are free");
            file += 1;
        }
        while fs.available() > 0 {
            fs.exists(Inode(file), PAGE).expect("blocks and inodes are free");
            file += 1;
        }
        assert_eq!(fs.available(), 0, "{pages}");
        assert!(matches!(fs.exists(Inode(file), PAGE), Err(FsError::NoSpace { .. })), "{pages}");
    }
}

/// Pages truncated before they have a block return their promise, and a closed file its preallocation.
#[test]
fn promises_and_preallocations_come_back() {
    let mut fs = small(&FsSpec::default());
    create(&mut fs, FILE);
    let (before, space) = (fs.available(), fs.allocator.clone());
    write(&mut fs, FILE, 0, 100 * PAGE, jiffy(0));
    assert_eq!(fs.available(), before - 100);
    write_back(&mut fs, FILE, 0, 50, jiffy(0));
    let handle = fs.start(TRUNCATE_CREDITS, jiffy(0)).expect("the handle can start");
    assert_eq!(fs.truncate(&handle, FILE, 50 * PAGE), Ok(true));
    fs.stop(handle);
    assert_eq!(fs.available(), before - 50);
    // The size at the allocation counts: 128 pages, of which truncation has freed 78.
    assert_eq!(runs(&fs, FILE), [50]);
    write(&mut fs, FILE, 50 * PAGE, PAGE, jiffy(0));
    write_back(&mut fs, FILE, 50, 1, jiffy(0));
    assert!(!fs.release(FILE));
    let handle = fs.start(TRUNCATE_CREDITS, jiffy(0)).expect("the handle can start");
    assert_eq!(fs.unlink(&handle, FILE), Ok(true));
    let tid = handle.tid;
    fs.stop(handle);
    fs.request_commit(tid, crate::fs::CommitCause::Sync);
    commit(&mut fs, jiffy(0));
    assert_eq!(fs.available(), before);
    assert_eq!(fs.allocator.free_runs(), space.free_runs());
}

/// A file of 10 TB is a run for each piece of the drive between metadata, at every 2 GiB and at super block copies.
#[test]
fn a_file_of_ten_terabytes_is_a_few_thousand_runs() {
    let bytes = 10_000_000_000_000;
    let mut fs = Ext4::new(&FsSpec::default(), 12_000_000_000_000).expect("the spec is valid");
    fs.exists(FILE, bytes).expect("the drive has room");
    let pages = bytes.div_ceil(PAGE);
    assert_eq!(runs(&fs, FILE).iter().sum::<u64>(), pages);
    let pieces = pages / ((2 << 30) / PAGE - 16 * (2 + 256)) + 1;
    // Powers of 3, 5 and 7 below 89,407, one, and the journal.
    let copies = 10 + 7 + 5 + 1 + 1;
    let found = runs(&fs, FILE).len() as u64;
    assert!((pieces..=pieces + copies).contains(&found), "{found} runs, {pieces} pieces");
    let (records, depth) = fs.tree(FILE);
    assert!(records >= pages >> 15 && depth == 2, "{records} records, {depth} levels");
    assert_eq!(fs.map(FILE, pages - 1, 10).pages, 1);
    // Truncation takes several rounds, each within the credits of a handle.
    let mut rounds = 0;
    loop {
        let handle = fs.start(TRUNCATE_CREDITS, jiffy(0)).expect("the journal is large");
        let done = fs.truncate(&handle, FILE, 1 << 40).expect("it is there");
        fs.stop(handle);
        rounds += 1;
        if done {
            break;
        }
        let tid = fs.journal.running().expect("it has changes");
        fs.request_commit(tid, crate::fs::CommitCause::Space);
        commit(&mut fs, jiffy(0));
    }
    assert!(rounds > 100);
    assert_eq!(runs(&fs, FILE).iter().sum::<u64>(), (1 << 40) / PAGE);
}

/// `auto_da_alloc`: a file truncated to zero and rewritten is on the drive soon after it is closed.
#[test]
fn a_file_that_is_replaced_is_written_when_it_is_closed() {
    for auto_da_alloc in [true, false] {
        let mut fs = small(&FsSpec { auto_da_alloc, ..FsSpec::default() });
        fs.exists(FILE, 1 << 20).expect("the drive has room");
        write(&mut fs, FILE, 1 << 20, PAGE, jiffy(0));
        assert!(!fs.release(FILE));
        let handle = fs.start(TRUNCATE_CREDITS, jiffy(0)).expect("the handle can start");
        assert_eq!(fs.truncate(&handle, FILE, 0), Ok(true));
        fs.stop(handle);
        write(&mut fs, FILE, 0, PAGE, jiffy(0));
        assert_eq!(fs.release(FILE), auto_da_alloc);
        assert!(!fs.release(FILE));
    }
}
