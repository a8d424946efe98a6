//! Files that are laid out on a drive for requests, in place of the one that fills it.

use super::names::Unfit;
use super::{Disk, Host};
use crate::{Inode, PAGE};
use proto::Command;
use proto::file::Program;

/// A file, and where the addresses of its requests begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Laid {
    start: u64,
    pub(super) inode: Inode,
}

impl Disk {
    /// The laid out file of an address.
    fn laid_at(&self, address: u64) -> Option<Laid> {
        let after = self.laid.partition_point(|laid| laid.start <= address);
        after.checked_sub(1).map(|at| self.laid[at])
    }
}

impl<P: Program> Host<P> {
    /// Lays out files on a drive, each with the address at which its requests begin and its bytes, in the order of addresses. Requests
    /// ([`Host::submit_request`]) then go to these files. A drive without a file system has none: there, addresses are its own.
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

    /// The file that a flow opens first.
    pub(super) fn first_file(&mut self, disk: u16) -> Inode {
        match self.disks[usize::from(disk)].laid.first() {
            Some(laid) => laid.inode,
            None => self.whole_file(disk),
        }
    }

    /// The open file of a flow's request, and its offset there. A flush is of the file that was served last.
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

    /// A laid out file as a flow has it open.
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
