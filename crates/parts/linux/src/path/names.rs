//! Creation, resizing and removal of files.

use super::files::Node;
use super::frame::{Frame, Resize};
use super::thread::Step;
use super::wait::Wait;
use super::{Disk, Event, Host, OnDrives, Out, PathSpec};
use crate::fs::{Changes, Ext4, FsError, NAME_CREDITS, TRUNCATE_CREDITS};
use crate::pagecache::Tag;
use crate::tasks::Task;
use crate::{Inode, PAGE};
use config::SpecError;
use engine::Cx;
use proto::{
    Command,
    file::{CallError, FileSpec, Program},
};
use std::fmt;

/// Reason for which a program cannot run on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The host's drives have no file system.
    NoFileSystem {
        /// Program.
        program: String,
    },
    /// The host has no such drive.
    NoDrive {
        /// Program.
        program: String,
        /// Number of the drive, from zero.
        drive: u16,
        /// Number of drives of the host.
        drives: usize,
    },
    /// The files do not fit on their drive.
    NoSpace {
        /// Program.
        program: String,
        /// Number of the drive, from zero.
        drive: u16,
        /// Files that exist before the run.
        files: u64,
        /// Bytes of the files, in whole pages.
        bytes: u64,
        /// Bytes that the drive has room for.
        room: u64,
    },
    /// The drive's file system has too few inodes.
    NoInode {
        /// Program.
        program: String,
        /// Number of the drive, from zero.
        drive: u16,
        /// Number of files.
        files: u64,
        /// Number of files that the drive has inodes for.
        room: u64,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::NoFileSystem { program } => {
                write!(f, "`{program}` needs files, but the drives of its host have no file system")
            }
            Unfit::NoDrive { program, drive, drives } => {
                write!(f, "`{program}` needs drive {drive}, but its host has {drives} drives, counted from 0")
            }
            Unfit::NoSpace { program, drive, files, bytes, room } => write!(
                f,
                "the files of `{program}` do not fit on drive {drive} of its host: {files} files need {bytes} bytes in \
                 pages of {PAGE}, but the file system has room for {room}"
            ),
            Unfit::NoInode { program, drive, files, room } => write!(
                f,
                "the files of `{program}` do not fit on drive {drive} of its host: {files} files need an inode each, \
                 but the file system has inodes for {room}"
            ),
        }
    }
}

/// Inverse of the part of a file system's capacity that the file filling a drive leaves free, for metadata and other
/// files. *Chosen*.
const SPARE: u64 = 16;

/// Returns the bytes of the file that fills a drive of `bytes` bytes and serves its requests.
///
/// # Errors
/// A file system that does not fit, with its key.
pub fn file_bytes(spec: &PathSpec, bytes: u64) -> Result<u64, SpecError> {
    match &spec.fs {
        OnDrives::Raw => Ok(bytes - bytes % PAGE),
        OnDrives::Ext4(fs) => Ok(share(&Ext4::new(fs, bytes).map_err(|error| error.within("fs.ext4"))?)),
    }
}

fn share(fs: &Ext4) -> u64 {
    (fs.available() - fs.available() / SPARE) * PAGE
}

impl Disk {
    fn file_bytes(&self) -> u64 {
        self.fs.as_ref().map_or(self.bytes - self.bytes % PAGE, share)
    }
}

/// Returns why files of a program do not fit on a drive: those before `laid` are laid out, and `left` further bytes are
/// free.
fn unfit(program: String, files: &[FileSpec], laid: usize, left: u64, error: FsError) -> Unfit {
    let drive = files[laid].drive;
    let sizes = |files: &[FileSpec]| {
        let here = files.iter().filter(|file| file.drive == drive);
        let bytes = here.filter_map(|file| file.bytes).map(|bytes| bytes.next_multiple_of(PAGE));
        bytes.fold((0, 0), |(files, sum), bytes| (files + 1, sum + bytes))
    };
    let ((files, bytes), (there, used)) = (sizes(files), sizes(&files[..laid]));
    match error {
        FsError::NoInode => Unfit::NoInode { program, drive, files, room: there },
        _ => Unfit::NoSpace { program, drive, files, bytes, room: used + left },
    }
}

impl<P: Program> Host<P> {
    pub(super) fn new_inode(&mut self, disk: u16, bytes: u64, exists: bool) -> Inode {
        let inode = Inode(self.nodes.len() as u32);
        self.nodes.push(Node::new(disk, bytes, exists));
        inode
    }

    /// Creates the file that fills a drive.
    pub(super) fn whole_file(&mut self, disk: u16) -> Inode {
        if let Some(inode) = self.disks[usize::from(disk)].whole {
            return inode;
        }
        let bytes = self.disks[usize::from(disk)].file_bytes();
        let inode = self.new_inode(disk, bytes, true);
        let at = &mut self.disks[usize::from(disk)];
        at.whole = Some(inode);
        if let Some(fs) = &mut at.fs {
            fs.exists(inode, bytes).expect("the file is smaller than the available space");
        }
        inode
    }

    /// Creates the inodes of a program's files, with the blocks of those that exist.
    pub(super) fn lay_out(&mut self, program: &P) -> Result<Vec<Inode>, Unfit> {
        let name = || program.name().to_owned();
        let files = program.files();
        let mut inodes = Vec::new();
        for file in &files {
            let drives = self.disks.len();
            if usize::from(file.drive) >= drives {
                return Err(Unfit::NoDrive { program: name(), drive: file.drive, drives });
            }
            let inode = self.new_inode(file.drive, file.bytes.unwrap_or(0), file.bytes.is_some());
            let Some(fs) = &mut self.disks[usize::from(file.drive)].fs else {
                return Err(Unfit::NoFileSystem { program: name() });
            };
            if let Some(bytes) = file.bytes
                && let Err(error) = fs.exists(inode, bytes)
            {
                let room = fs.available() * PAGE;
                return Err(unfit(name(), &files, inodes.len(), room, error));
            }
            inodes.push(inode);
        }
        Ok(inodes)
    }

    /// Creates a file (`ext4_create`).
    pub(super) fn create(&mut self, task: Task, inode: Inode, cx: &mut impl Cx<Event, Out>) -> Step {
        let disk = self.nodes[inode.0 as usize].disk;
        let handle =
            match self.start_handle(task, disk, NAME_CREDITS, Changes::Name(inode), Frame::Create(inode), cx)
            {
                Ok(handle) => handle,
                Err(step) => return step,
            };
        let now = cx.now();
        self.nodes[inode.0 as usize].exists = true;
        let (Some(fs), Some(handle)) = (&mut self.disks[usize::from(disk)].fs, handle) else {
            return Step::Again;
        };
        let made = fs.create(&handle, inode, now);
        fs.stop(handle);
        if made.is_err() {
            self.refuse(task, CallError::NoSpace);
        }
        self.arm_commit(disk, cx);
        Step::Again
    }

    /// `ftruncate`, or the removal of a file: frees its pages, then its blocks.
    pub(super) fn resize(&mut self, task: Task, resize: Resize, cx: &mut impl Cx<Event, Out>) -> Step {
        let Resize { inode, bytes, remove } = resize;
        if self.owes(task) {
            return self.pay_then(task, Frame::Resize(resize));
        }
        let disk = self.nodes[inode.0 as usize].disk;
        if remove && self.writeback.is_at(inode) {
            return self.wait_for(task, Wait::Flusher(disk), Frame::Resize(resize));
        }
        let fs = self.disks[usize::from(disk)].fs.as_ref();
        let first = bytes.div_ceil(PAGE);
        if self.cache.next_tagged(inode, first, Tag::Dirty).is_some()
            && fs.is_some_and(|fs| fs.must_write_before_truncate(inode))
        {
            self.push(task, Frame::Resize(resize));
            self.push_integrity(task, inode, first, u64::MAX);
            return Step::Again;
        }
        // Reads stop at the new end from now on (`truncate_setsize`).
        let node = &mut self.nodes[inode.0 as usize];
        node.bytes = node.bytes.min(bytes);
        if let Some(folio) = self.cache.invalidate2(inode, first, u32::MAX.into()) {
            return self.wait_for(task, Wait::Folio(folio), Frame::Resize(resize));
        }
        // Data that are not written any more are dropped in the transaction with the new length: an earlier transaction
        // would expose the old contents of their blocks.
        let changes = if remove { Changes::Name(inode) } else { Changes::Blocks(inode) };
        let handle = match self.start_handle(task, disk, TRUNCATE_CREDITS, changes, Frame::Resize(resize), cx)
        {
            Ok(handle) => handle,
            Err(step) => return step,
        };
        let mut dirty = 0;
        let stays =
            self.cache.truncate(inode, first, |cache, _, folio| dirty += u64::from(cache.is_dirty(folio)));
        debug_assert!(stays.is_none(), "pages after the end have been waited for");
        if dirty > 0 {
            self.writeback.cleaned(inode, dirty);
        }
        self.nodes[inode.0 as usize].bytes = bytes;
        self.shadow_cut(inode, first);
        let (Some(fs), Some(handle)) = (&mut self.disks[usize::from(disk)].fs, handle) else {
            return Step::Again;
        };
        let done: Result<bool, FsError> =
            if remove { fs.unlink(&handle, inode) } else { fs.truncate(&handle, inode, bytes) };
        fs.stop(handle);
        if done == Ok(false) {
            self.push(task, Frame::Resize(resize));
        } else if remove {
            self.writeback.evict(inode);
        }
        self.settle_home(disk, cx);
        self.arm_commit(disk, cx);
        Step::Again
    }

    /// `unlink`: removes a file without descriptors.
    pub(super) fn call_unlink(&mut self, task: Task, inode: Inode) -> Step {
        let node = &mut self.nodes[inode.0 as usize];
        let existed = std::mem::replace(&mut node.exists, false);
        if existed && node.held == 0 {
            self.push(task, Frame::Resize(Resize { inode, bytes: 0, remove: true }));
        }
        Step::Again
    }
}

// Files laid out on a drive for requests, instead of the one that fills it.

/// File, and the address at which its requests begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Laid {
    start: u64,
    pub(super) inode: Inode,
}

impl Disk {
    /// Laid-out file of an address.
    fn laid_at(&self, address: u64) -> Option<Laid> {
        let after = self.laid.partition_point(|laid| laid.start <= address);
        after.checked_sub(1).map(|at| self.laid[at])
    }
}

impl<P: Program> Host<P> {
    /// Lays out files on a drive, each with the first address of its requests and its bytes, in order of addresses.
    /// Requests ([`Host::submit_request`]) then go to these files. A drive without a file system gets none: there,
    /// addresses are those of the drive.
    ///
    /// # Errors
    /// Files for which the drive has no room.
    pub fn lay_out_files(&mut self, disk: u16, files: &[(u64, u64)]) -> Result<(), Unfit> {
        for &(start, bytes) in files {
            let at = usize::from(disk);
            if self.disks[at].fs.is_none() {
                return Ok(());
            }
            let inode = self.new_inode(disk, bytes, true);
            self.disks[at].laid.push(Laid { start, inode });
            if let Some(fs) = &mut self.disks[at].fs {
                let room = fs.available() * PAGE;
                let program = "the requests".to_owned();
                let unfit = Unfit::NoSpace { program, drive: disk, files: 1, bytes, room };
                fs.exists(inode, bytes).map_err(|_| unfit)?;
            }
        }
        Ok(())
    }

    /// Returns the file that a flow opens first.
    pub(super) fn first_file(&mut self, disk: u16) -> Inode {
        match self.disks[usize::from(disk)].laid.first() {
            Some(laid) => laid.inode,
            None => self.whole_file(disk),
        }
    }

    /// Open file of a flow's request, and its offset there. A flush applies to the file served last.
    pub(super) fn addressed(&mut self, at: u16, command: &Command) -> (u32, u64) {
        let flow = &self.flows[usize::from(at)];
        let (disk, file) = (usize::from(flow.disk()), flow.file);
        let Some(laid) = self.disks[disk].laid_at(command.offset).filter(|_| command.bytes > 0) else {
            return (file, command.offset);
        };
        let file = if self.open[file].inode == laid.inode { file } else { self.open_laid(at, laid.inode) };
        self.flows[usize::from(at)].file = file;
        (file, command.offset - laid.start)
    }

    /// Opens a laid-out file for a flow, or returns the open one.
    fn open_laid(&mut self, at: u16, inode: Inode) -> u32 {
        let flow = &mut self.flows[usize::from(at)];
        flow.others.insert(self.open[flow.file].inode, flow.file);
        if let Some(file) = flow.others.get(&inode) {
            return *file;
        }
        let (way, advice) = (flow.way(), flow.advice);
        self.open_for(inode, way, advice)
    }
}
