//! Worked examples, and cuts of power.

mod allocation;
mod extents;
mod journal;
mod layout;
mod power;
mod space;
mod sync;

use super::{Ext4, FsSpec, INODE_CREDITS, JournalMode, Need, Place, Step};
use crate::{Inode, PAGE};
use config::units::Bytes;
use engine::Time;

/// A file system of 1 GiB: its journal has 8,192 blocks.
fn small(spec: &FsSpec) -> Ext4 {
    Ext4::new(spec, 1 << 30).expect("it can be built")
}

/// One with the smallest journal: 1,024 blocks.
fn tight(data: JournalMode) -> Ext4 {
    small(&FsSpec { data, journal_size: Some(Bytes::new(4 << 20)), ..FsSpec::default() })
}

const FILE: Inode = Inode(0);

/// Writes to the page cache.
fn write(fs: &mut Ext4, inode: Inode, offset: u64, bytes: u64, now: Time) {
    if fs.write_is_bare(inode, offset, bytes, now) {
        fs.write(None, inode, offset, bytes, now).expect("there is room");
    } else {
        let handle = fs.start(fs.write_credits(inode, bytes), now).expect("nothing is in the way");
        fs.write(Some(&handle), inode, offset, bytes, now).expect("there is room");
        fs.stop(handle);
    }
}

/// Writes pages back, 2,048 at a time, and ends the writes of those whose data did not count.
fn write_back(fs: &mut Ext4, inode: Inode, first: u64, pages: u64, now: Time) {
    let mut page = first;
    while page < first + pages {
        let count = (first + pages - page).min(super::WRITEPAGES_MOST);
        let handle = fs.start(fs.writepages_credits(inode), now).expect("nothing is in the way");
        fs.writepages(&handle, inode, page, count).expect("there is room");
        fs.stop(handle);
        if fs.needs_end_io(inode, page, count) {
            let handle = fs.start_reserved(now);
            fs.end_io(&handle, inode, page, count).expect("it is there");
            fs.stop(handle);
        }
        page += count;
    }
}

/// Commits what is asked for; the steps without the first and the last.
fn commit(fs: &mut Ext4, now: Time) -> Vec<Step> {
    assert!(fs.begin_commit(now));
    let mut steps = Vec::new();
    loop {
        match fs.commit_step() {
            Step::Done { .. } => return steps,
            Step::Began { .. } => {}
            step => steps.push(step),
        }
    }
}

/// `fsync` of a file whose pages are clean.
fn sync(fs: &mut Ext4, inode: Inode, now: Time) -> Vec<Step> {
    assert!(matches!(fs.fsync(inode, false), Need::Commit { flush: false, .. }));
    commit(fs, now)
}

/// The time in the middle of a jiffy.
fn jiffy(number: u64) -> Time {
    Time::from_ms(4 * number + 2)
}
