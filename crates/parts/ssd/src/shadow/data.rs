//! What stands for data: which write each sector of a map unit came from.

use super::entries::Entries;
use proto::Lpn;
use std::fmt;

/// Bytes of a sector: the smallest logical block of NVMe.
pub(super) const SECTOR: u64 = 512;

/// Sectors of one map unit, as a bit set; a map unit has at most 128.
pub(super) type Sectors = u128;

/// Names the contents of a sector. Together with the sector's address it stands for the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version(u64);

impl Version {
    /// Zeroes: never written, deallocated, or written as zeroes.
    pub(super) const ZERO: Version = Version(0);
    /// What preconditioning left as the newest copy.
    pub(super) const BASE: Version = Version(1);
    /// A copy that was out of date when the shadow began.
    pub(super) const STALE: Version = Version(2);
    /// An erased page.
    pub(super) const BLANK: Version = Version(3);
    /// Data of another unit.
    pub(super) const FOREIGN: Version = Version(4);

    /// The data of the `n`th write command.
    pub(super) fn of_write(n: u64) -> Version {
        Version(16 + (n << 9))
    }

    /// The same, written for a placement.
    pub(super) fn placed(self, placement: u8) -> Version {
        Version(self.0 + u64::from(placement) + 1)
    }

    /// The placement that it was written for, if that is known.
    pub(super) fn placement(self) -> Option<u8> {
        let low = self.0.checked_sub(16)? & 511;
        low.checked_sub(1).map(|placement| placement as u8)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Version::ZERO => write!(f, "zeroes"),
            Version::BASE => write!(f, "preconditioned data"),
            Version::STALE => write!(f, "an outdated preconditioned copy"),
            Version::BLANK => write!(f, "an erased page"),
            Version::FOREIGN => write!(f, "another unit's data"),
            Version(n) => write!(f, "write {}", (n - 16) >> 9),
        }
    }
}

/// Versions of the sectors of one map unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stamps {
    /// All of one version.
    Whole(Version),
    /// Disjoint sets that cover the unit.
    Mixed(Box<[(Version, Sectors)]>),
}

impl Stamps {
    /// Calls `f` with each version and its sectors.
    pub(super) fn each(&self, mut f: impl FnMut(Version, Sectors)) {
        match self {
            Stamps::Whole(version) => f(*version, Sectors::MAX),
            Stamps::Mixed(parts) => parts.iter().for_each(|(v, s)| f(*v, *s)),
        }
    }

    /// Sectors of a version.
    pub(super) fn of(&self, version: Version) -> Sectors {
        let mut all = 0;
        self.each(|v, sectors| all |= if v == version { sectors } else { 0 });
        all
    }

    /// These stamps with `sectors` of others laid over.
    pub(super) fn under(&self, others: &Stamps, sectors: Sectors) -> Stamps {
        let mut all = self.clone();
        others.each(|version, of| {
            if of & sectors != 0 {
                all = all.with(version, of & sectors);
            }
        });
        all
    }

    /// These stamps with `sectors` written over by `version`.
    pub(super) fn with(&self, version: Version, sectors: Sectors) -> Stamps {
        let mut parts = vec![(version, sectors)];
        self.each(|old, of| {
            let left = of & !sectors;
            match parts.iter_mut().find(|(v, _)| *v == old) {
                _ if left == 0 => {}
                Some((_, same)) => *same |= left,
                None => parts.push((old, left)),
            }
        });
        match parts[..] {
            [(only, _)] => Stamps::Whole(only),
            _ => Stamps::Mixed(parts.into()),
        }
    }
}

/// The data of one map unit, wherever it is: in a page, in a register, in the controller's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Content {
    /// The logical unit whose data it is.
    pub(super) lpn: Lpn,
    /// Which writes it came from.
    pub(super) stamps: Stamps,
    /// Of a translation page, its entries.
    pub(super) entries: Entries,
}

impl Content {
    /// Data of a unit of the host's.
    pub(super) fn new(lpn: Lpn, stamps: Stamps) -> Content {
        Content { lpn, stamps, entries: Entries::Unknown }
    }

    /// What a reader of a translation page makes of it.
    pub(super) fn entries_of(self, lpn: Lpn) -> Entries {
        if self.lpn == lpn { self.entries } else { Entries::Unknown }
    }

    /// What a reader of `lpn` makes of it.
    pub(super) fn seen_as(self, lpn: Lpn) -> Stamps {
        if self.lpn == lpn { self.stamps } else { Stamps::Whole(Version::FOREIGN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against one version a sector.
        #[test]
        fn overlays_as_an_array_would(writes in prop::collection::vec((0u32..128, 1u32..128, 0u64..4), 1..8)) {
            let mut stamps = Stamps::Whole(Version::ZERO);
            let mut naive = [Version::ZERO; 128];
            for (first, count, n) in writes {
                let count = count.min(128 - first);
                let sectors = (Sectors::MAX >> (128 - count)) << first;
                stamps = stamps.with(Version::of_write(n), sectors);
                naive[first as usize..(first + count) as usize].fill(Version::of_write(n));
            }
            let mut seen: Sectors = 0;
            stamps.each(|version, sectors| {
                assert_eq!(seen & sectors, 0);
                seen |= sectors;
                (0..128).filter(|s| sectors >> s & 1 == 1).for_each(|s| assert_eq!(naive[s], version));
            });
            prop_assert_eq!(seen, Sectors::MAX);
        }
    }
}
