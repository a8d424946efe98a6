//! Where the bytes of a stripe lie.

use config::SpecError;
use config::units::Bytes;
use engine::{Mutant, planted};

/// Members of a stripe, at most: their numbers are 16 bits wide, and a flush goes to all of them at once.
const MEMBERS: usize = 1024;

/// A range of bytes of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub(super) member: u16,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Chunk `c` is chunk `c / members` of member `c % members`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) chunk: u64,
    pub(super) members: u64,
    /// Chunks of each member that are used.
    pub(super) rows: u64,
}

impl Layout {
    /// # Errors
    /// No members or too many, or one that is smaller than a chunk; a chunk of nothing, or more than 2^64 bytes.
    pub(super) fn new(chunk: u64, capacities: &[u64]) -> Result<Layout, SpecError> {
        SpecError::positive("chunk", chunk)?;
        let smallest = capacities.iter().copied().enumerate().min_by_key(|(_, capacity)| *capacity);
        let Some((member, smallest)) = smallest.filter(|_| capacities.len() <= MEMBERS) else {
            let what = format!("{} drives are striped, but 1 to {MEMBERS} can be", capacities.len());
            return Err(SpecError::new("drives", what));
        };
        if smallest < chunk {
            let (chunk, smallest) = (Bytes::new(chunk), Bytes::new(smallest));
            let what =
                format!("a chunk of {chunk} does not fit on drive {member} of the stripe, of {smallest}");
            return Err(SpecError::new("chunk", what));
        }
        let (members, rows) = (capacities.len() as u64, smallest / chunk);
        if (rows * chunk).checked_mul(members).is_none() {
            return Err(SpecError::new(
                "drives",
                format!("{members} drives of {smallest} bytes are above 2^64 bytes"),
            ));
        }
        Ok(Layout { chunk, members, rows })
    }

    /// Bytes of all members that are used.
    pub(super) fn capacity(&self) -> u64 {
        self.rows * self.chunk * self.members
    }

    /// Whether a range has bytes of more than one chunk.
    pub(super) fn crosses(&self, offset: u64, bytes: u64) -> bool {
        offset % self.chunk + bytes > self.chunk
    }

    /// The parts of a range, in the order in which their members come in it: one for each member that has any of it. The chunks of a
    /// range that a member has follow each other there, because those between are on the other members.
    pub(super) fn parts(self, offset: u64, bytes: u64) -> impl ExactSizeIterator<Item = Extent> {
        let end = offset + bytes;
        let first = offset / self.chunk;
        let last = end.saturating_sub(1).max(offset) / self.chunk;
        // At most one for each member, of which there are few.
        let parts = (last - first + 1).min(self.members) as u16;
        (0..parts).map(move |part| {
            let begin = first + u64::from(part);
            let behind = last - (last - begin) % self.members;
            let at = |chunk: u64, byte: u64| chunk / self.members * self.chunk + byte.min(self.chunk);
            let from = at(begin, offset.saturating_sub(begin * self.chunk));
            let to = at(behind, end - behind * self.chunk);
            // Of a part behind the first.
            let off = u64::from(planted(Mutant::WrongDrive) && part > 0);
            Extent { member: ((begin + off) % self.members) as u16, offset: from, bytes: to - from }
        })
    }
}
