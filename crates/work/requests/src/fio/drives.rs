//! Lists of drives (`filename=/dev/nvme0n1:/dev/nvme1n1`): the drives behind a stripe, each with addresses of its own.
//!
//! fio serves the drives of a list as files, one request each in turn unless `file_service_type` says otherwise. Behind a stripe, which is
//! what the host has, a drive's addresses are every so many chunks of the stripe's. A request that is longer than what is left of a chunk is one
//! command for each chunk, all of the same drive.

use config::Diagnostic;

use super::spec::JobSpec;

/// The drives behind a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// How many.
    pub drives: u64,
    /// Bytes of a drive before the next drive's turn.
    pub chunk: u64,
    /// Bytes of each drive that the stripe uses: whole chunks.
    pub bytes: u64,
}

impl Behind {
    /// Where on the stripe an address lies, counted over the drives one behind the other, and how many bytes from there on follow it on its
    /// drive.
    pub fn place(&self, address: u64) -> (u64, u64) {
        let (drive, at) = (address / self.bytes, address % self.bytes);
        let (row, within) = (at / self.chunk, at % self.chunk);
        ((row * self.drives + drive) * self.chunk + within, self.chunk - within)
    }
}

impl JobSpec {
    /// The drives that it goes over, if it names several.
    pub fn drives(&self) -> Option<Vec<&str>> {
        let mut found: Vec<&str> = Vec::new();
        for name in self.files.names.iter().filter(|_| self.files.device().is_some()) {
            if !found.contains(&name.as_str()) {
                found.push(name);
            }
        }
        (found.len() > 1).then_some(found)
    }

    /// Why a list of drives cannot be gone over.
    pub(super) fn refuse_drives(&self, why: &str, help: &str) -> Diagnostic {
        let count = self.drives().map_or(0, |drives| drives.len());
        let what = format!("job `{}`: `filename` names {count} drives, and {why}", self.name);
        Diagnostic::new(what).at(self.place_of("filename")).help(help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunk `c` of a stripe of four is chunk `c / 4` of drive `c % 4`.
    #[test]
    fn addresses_of_a_drive_are_every_fourth_chunk() {
        let behind = Behind { drives: 4, chunk: 64, bytes: 640 };
        assert_eq!(behind.place(0), (0, 64));
        assert_eq!(behind.place(70), (4 * 64 + 6, 58));
        assert_eq!(behind.place(640), (64, 64));
        assert_eq!(behind.place(3 * 640 + 639), ((9 * 4 + 3) * 64 + 63, 1));
        let mut all: Vec<u64> = (0..4 * 640).map(|address| behind.place(address).0).collect();
        all.sort_unstable();
        assert_eq!(all, (0..4 * 640).collect::<Vec<u64>>());
    }
}
