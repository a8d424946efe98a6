//! The guest's memory: files that it shares, by physical address.

use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A piece of memory that is in a file.
pub(super) struct Region {
    /// First address.
    pub(super) address: u64,
    /// Length.
    pub(super) bytes: u64,
    /// Where it begins in the file.
    pub(super) offset: u64,
    /// The file.
    pub(super) file: File,
}

/// All of it.
pub(super) struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    /// Of these regions.
    pub(super) fn new(regions: Vec<Region>) -> Self {
        Self { regions }
    }

    /// The bytes from an address on.
    ///
    /// # Errors
    /// If they are not all in one region.
    pub(super) fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        let (file, offset) = self.find(address, into.len())?;
        Ok(file.read_exact_at(into, offset)?)
    }

    /// Writes bytes from an address on.
    ///
    /// # Errors
    /// If they are not all in one region.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let (file, offset) = self.find(address, bytes.len())?;
        Ok(file.write_all_at(bytes, offset)?)
    }

    /// So many bytes at an address.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) fn array<const N: usize>(&self, address: u64) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    fn find(&self, address: u64, length: usize) -> Result<(&File, u64)> {
        let has = |region: &&Region| {
            let at = address.checked_sub(region.address);
            at.is_some_and(|at| at.checked_add(length as u64).is_some_and(|end| end <= region.bytes))
        };
        let region = self.regions.iter().find(has);
        let region = region
            .with_context(|| format!("{length} bytes at {address:#x} are in no memory of the guest"))?;
        Ok((&region.file, address - region.address + region.offset))
    }
}
