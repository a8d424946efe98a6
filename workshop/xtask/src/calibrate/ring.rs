//! A split virtqueue from the device's side (virtio 1.1, 2.6), without event indices.

use super::Memory;
use anyhow::{Result, bail};
use std::sync::Arc;

const NEXT: u16 = 1;
const DEVICE_WRITES: u16 = 2;
const INDIRECT: u16 = 4;
const NO_INTERRUPT: u16 = 1;

/// Addresses of the three parts of a queue in the guest's memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Places {
    /// Descriptors: address, length, flags, next.
    pub(super) descriptors: u64,
    /// Available ring of the driver: flags, index, heads of chains.
    pub(super) available: u64,
    /// Used ring of the device: flags, index, heads and lengths.
    pub(super) used: u64,
    /// Number of entries of each.
    pub(super) size: u16,
}

/// Buffer of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Buffer {
    /// Address.
    pub(super) address: u64,
    /// Length in bytes.
    pub(super) bytes: u32,
    /// True if the device writes it.
    pub(super) device_writes: bool,
}

/// Request: its buffers in order, and the number to return with the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Chain {
    /// First descriptor.
    pub(super) head: u16,
    /// All buffers.
    pub(super) buffers: Vec<Buffer>,
}

/// Consumer of requests.
pub(super) struct Offers {
    memory: Arc<Memory>,
    places: Places,
    next: u16,
}

impl Offers {
    /// Creates the consumer of an empty queue.
    pub(super) fn new(memory: Arc<Memory>, places: Places) -> Self {
        Self { memory, places, next: 0 }
    }

    /// Takes the next request, if any.
    pub(super) fn pop(&mut self) -> Result<Option<Chain>> {
        let offered = u16::from_le_bytes(self.memory.array(self.places.available + 2)?);
        if offered == self.next {
            return Ok(None);
        }
        let slot = u64::from(self.next % self.places.size);
        self.next = self.next.wrapping_add(1);
        let head = u16::from_le_bytes(self.memory.array(self.places.available + 4 + 2 * slot)?);
        let mut buffers = Vec::new();
        self.follow(self.places.descriptors, self.places.size, head, &mut buffers)?;
        Ok(Some(Chain { head, buffers }))
    }

    /// Collects a chain of descriptors; one of them may refer to an indirect table.
    fn follow(&self, table: u64, entries: u16, first: u16, buffers: &mut Vec<Buffer>) -> Result<()> {
        let mut at = first;
        for _ in 0..entries {
            if at >= entries {
                bail!("descriptor {at} of {entries}");
            }
            let place = table + 16 * u64::from(at);
            let address = u64::from_le_bytes(self.memory.array(place)?);
            let bytes = u32::from_le_bytes(self.memory.array(place + 8)?);
            let flags = u16::from_le_bytes(self.memory.array(place + 12)?);
            if flags & INDIRECT != 0 {
                return self.follow(address, u16::try_from(bytes / 16)?, 0, buffers);
            }
            buffers.push(Buffer { address, bytes, device_writes: flags & DEVICE_WRITES != 0 });
            if flags & NEXT == 0 {
                return Ok(());
            }
            at = u16::from_le_bytes(self.memory.array(place + 14)?);
        }
        bail!("a chain of descriptors has no end");
    }
}

/// Producer of answers.
pub(super) struct Answers {
    memory: Arc<Memory>,
    places: Places,
    next: u16,
}

impl Answers {
    /// Creates the producer of an empty queue.
    pub(super) fn new(memory: Arc<Memory>, places: Places) -> Self {
        Self { memory, places, next: 0 }
    }

    /// Returns a request into which the device has written this many bytes; tells whether the driver wants an
    /// interrupt.
    pub(super) fn push(&mut self, head: u16, written: u32) -> Result<bool> {
        let slot = u64::from(self.next % self.places.size);
        let element = [u32::from(head), written].map(u32::to_le_bytes).concat();
        self.memory.write(self.places.used + 4 + 8 * slot, &element)?;
        self.next = self.next.wrapping_add(1);
        self.memory.write(self.places.used + 2, &self.next.to_le_bytes())?;
        let flags = u16::from_le_bytes(self.memory.array(self.places.available)?);
        Ok(flags & NO_INTERRUPT == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Region;
    use super::*;

    const BASE: u64 = 0x10_0000;
    const PLACES: Places = Places { descriptors: BASE, available: BASE + 0x100, used: BASE + 0x200, size: 4 };

    /// Memory of 4 KiB at `BASE`, at offset 64 of its file.
    fn memory() -> Arc<Memory> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 + 4096).unwrap();
        Arc::new(Memory::new(vec![Region { address: BASE, bytes: 4096, offset: 64, file }]))
    }

    fn describe(memory: &Memory, table: u64, at: u64, address: u64, bytes: u32, flags: u16, next: u16) {
        let entry =
            [&address.to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()];
        memory.write(table + 16 * at, &entry.concat()).unwrap();
    }

    fn offer(memory: &Memory, index: u16, head: u16) {
        memory.write(PLACES.available + 4 + 2 * u64::from(index % 4), &head.to_le_bytes()).unwrap();
        memory.write(PLACES.available + 2, &(index + 1).to_le_bytes()).unwrap();
    }

    fn buffer(address: u64, bytes: u32, device_writes: bool) -> Buffer {
        Buffer { address, bytes, device_writes }
    }

    #[test]
    fn a_chain_is_followed_through_the_table_and_through_one_of_its_own() {
        let memory = memory();
        let mut offers = Offers::new(memory.clone(), PLACES);
        assert_eq!(offers.pop().unwrap(), None);
        describe(&memory, BASE, 2, 0x111, 16, NEXT, 0);
        describe(&memory, BASE, 0, 0x222, 1, DEVICE_WRITES, 9);
        offer(&memory, 0, 2);
        let direct = Chain { head: 2, buffers: vec![buffer(0x111, 16, false), buffer(0x222, 1, true)] };
        assert_eq!(offers.pop().unwrap(), Some(direct));
        describe(&memory, BASE, 1, BASE + 0x300, 32, INDIRECT, 0);
        describe(&memory, BASE + 0x300, 0, 0x333, 512, NEXT, 1);
        describe(&memory, BASE + 0x300, 1, 0x444, 1, DEVICE_WRITES, 0);
        offer(&memory, 1, 1);
        let indirect = Chain { head: 1, buffers: vec![buffer(0x333, 512, false), buffer(0x444, 1, true)] };
        assert_eq!(offers.pop().unwrap(), Some(indirect));
        assert_eq!(offers.pop().unwrap(), None);
    }

    #[test]
    fn a_chain_in_a_circle_is_an_error() {
        let memory = memory();
        describe(&memory, BASE, 0, 0x111, 16, NEXT, 0);
        offer(&memory, 0, 0);
        assert!(Offers::new(memory, PLACES).pop().is_err());
    }

    #[test]
    fn answers_stand_in_their_slots_and_wrap() {
        let memory = memory();
        let mut answers = Answers::new(memory.clone(), PLACES);
        for head in 0..5 {
            assert!(answers.push(head, u32::from(head) * 10).unwrap());
        }
        assert_eq!(memory.array(PLACES.used + 2).unwrap(), 5u16.to_le_bytes());
        // The fifth is in slot 0, the second still in slot 1.
        assert_eq!(memory.array(PLACES.used + 4).unwrap(), [4, 0, 0, 0, 40, 0, 0, 0]);
        assert_eq!(memory.array(PLACES.used + 12).unwrap(), [1, 0, 0, 0, 10, 0, 0, 0]);
        memory.write(PLACES.available, &NO_INTERRUPT.to_le_bytes()).unwrap();
        assert!(!answers.push(0, 0).unwrap());
    }
}
