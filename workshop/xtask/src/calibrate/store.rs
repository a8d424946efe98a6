//! What a device holds, in memory: blocks of zeros take none, so that files of zeros of any length are free.

use std::collections::BTreeMap;

const BLOCK: usize = 4096;

/// The bytes of a device. Whatever was not written is zero.
#[derive(Clone, Default)]
pub(super) struct Store {
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Store {
    /// The bytes from `offset` on.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) {
        for (block, from, piece) in pieces(offset, into.len()) {
            match self.blocks.get(&block) {
                Some(held) => {
                    let length = piece.len();
                    into[piece].copy_from_slice(&held[from..from + length]);
                }
                None => into[piece].fill(0),
            }
        }
    }

    /// Writes `data` at `offset`.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        for (block, from, piece) in pieces(offset, data.len()) {
            let part = &data[piece];
            let zeros = part.iter().all(|byte| *byte == 0);
            if zeros && part.len() == BLOCK {
                self.blocks.remove(&block);
            } else if !zeros || self.blocks.contains_key(&block) {
                let held = self.blocks.entry(block).or_insert_with(|| Box::new([0; BLOCK]));
                held[from..from + part.len()].copy_from_slice(part);
            }
        }
    }
}

/// The blocks of a range: number, first byte inside, and where its bytes are in the range's buffer.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < length).then(|| {
            let place = offset + at as u64;
            let from = (place % BLOCK as u64) as usize;
            let piece = at..length.min(at + BLOCK - from);
            at = piece.end;
            (place / BLOCK as u64, from, piece)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_across_blocks_and_all_else_is_zero() {
        let mut store = Store::default();
        store.write(4000, &[7; 200]);
        let mut bytes = [1; 300];
        store.read(3950, &mut bytes);
        let expected: Vec<u8> =
            (3950..4250).map(|at| if (4000..4200).contains(&at) { 7 } else { 0 }).collect();
        assert_eq!(bytes.as_slice(), expected);
        assert_eq!(store.blocks.len(), 2);
    }

    #[test]
    fn zeros_take_no_memory_and_overwrite() {
        let mut store = Store::default();
        store.write(0, &[0; 3 * BLOCK]);
        assert!(store.blocks.is_empty());
        store.write(0, &[9; 2 * BLOCK]);
        store.write(512, &[0; BLOCK]);
        assert_eq!(store.blocks.len(), 2);
        let mut bytes = [1; 2];
        store.read(511, &mut bytes);
        assert_eq!(bytes, [9, 0]);
        store.write(0, &[0; 2 * BLOCK]);
        assert!(store.blocks.is_empty());
    }
}
