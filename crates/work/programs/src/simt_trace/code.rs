//! The instructions of a trace's kernels, each kept once, and what their warps executed, kept in few bytes.
//!
//! A warp is a *path* (instructions with their lanes) and its *addresses*. Most warps of a kernel share a path, so
//! paths are kept once; a step costs one byte if it is the next instruction with the same lanes. Addresses are stored
//! as a base and a stride where possible, otherwise as differences between lanes, all as variable-length integers.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use text::{Bad, varint};

use crate::simt_trace::opcode::Class;

/// An instruction of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Static {
    pub(super) class: Class,
    /// Bytes that each lane accesses; zero without an access.
    pub(super) width: u8,
    /// Register that it writes; zero for none.
    pub(super) to: u8,
    /// Registers that it reads; zero for none.
    pub(super) from: [u8; 3],
    /// Address, unique in the trace.
    pub(super) pc: u32,
}

/// Returns a SASS register as the machine numbers it: R0 is 1, the zero register R255 is none.
pub(super) fn register(number: u32) -> Option<u8> {
    match number {
        0..=254 => Some(number as u8 + 1),
        255 => Some(0),
        _ => None,
    }
}

/// Returns at most three different registers that are not none, the maximum that an instruction can read. A fourth,
/// which only a few texture and matrix instructions have, is left out.
pub(super) fn sources(all: impl IntoIterator<Item = u8>) -> [u8; 3] {
    let mut from = [0; 3];
    let mut count = 0;
    for register in all {
        if register != 0 && count < 3 && !from.contains(&register) {
            from[count] = register;
            count += 1;
        }
    }
    from
}

/// Bits of an instruction's address within an application.
const CODE_BITS: u32 = 24;

/// All instructions of a trace.
#[derive(Default)]
pub(super) struct Code {
    insts: Vec<Static>,
    numbers: FxHashMap<Static, u32>,
    addresses: FxHashMap<(u32, u64), u32>,
}

impl Code {
    /// Returns the address of the instruction at `pc` of a function in the whole trace: they are numbered from one.
    pub(super) fn address(&mut self, function: u32, pc: u64) -> Result<u32, Bad> {
        let next = self.addresses.len() as u32 + 1;
        if next >> CODE_BITS != 0 {
            return Err(Bad::new("more than 16,777,215 different instructions in one trace"));
        }
        Ok(*self.addresses.entry((function, pc)).or_insert(next))
    }

    /// Returns the number of an instruction.
    pub(super) fn number(&mut self, inst: Static) -> u32 {
        let insts = &mut self.insts;
        *self.numbers.entry(inst).or_insert_with(|| {
            insts.push(inst);
            insts.len() as u32 - 1
        })
    }

    /// Returns all instructions, by number.
    pub(super) fn into_insts(self) -> Vec<Static> {
        self.insts
    }
}

/// Address space of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Device memory, by the device's address.
    Global = 0,
    /// Shared memory, by offset.
    Shared = 1,
    /// The thread's local memory, by offset.
    Local = 2,
}

impl Place {
    fn of(code: u8) -> Place {
        match code & 3 {
            0 => Place::Global,
            1 => Place::Shared,
            _ => Place::Local,
        }
    }
}

/// Bit of an access's first byte: its addresses are a base and a stride.
const STRIDE: u8 = 4;

/// A warp being read.
#[derive(Debug)]
pub(super) struct WarpWriter {
    path: Vec<u8>,
    addresses: Vec<u8>,
    next: u32,
    mask: u32,
    base: [u64; 3],
}

impl Default for WarpWriter {
    fn default() -> WarpWriter {
        WarpWriter { path: Vec::new(), addresses: Vec::new(), next: 0, mask: u32::MAX, base: [0; 3] }
    }
}

impl WarpWriter {
    /// Appends an instruction; an access has one address for each lane of the mask.
    pub(super) fn push(&mut self, number: u32, mask: u32, access: Option<(Place, &[u64])>) {
        let step = i64::from(number) - i64::from(self.next);
        let word = (varint::zigzag(step) << 1) | u64::from(mask != self.mask);
        varint::put(&mut self.path, word);
        if mask != self.mask {
            self.path.extend_from_slice(&mask.to_le_bytes());
            self.mask = mask;
        }
        self.next = number + 1;
        if let Some((place, addresses)) = access
            && let [first, rest @ ..] = addresses
        {
            self.access(place, *first, rest);
        }
    }

    fn access(&mut self, place: Place, first: u64, rest: &[u64]) {
        let base = &mut self.base[place as usize];
        let stride = rest.first().map_or(0, |second| second.wrapping_sub(first));
        let mut last = first;
        let even = rest.iter().all(|&address| {
            let step = address.wrapping_sub(last);
            last = address;
            step == stride
        });
        self.addresses.push(place as u8 | if even { STRIDE } else { 0 });
        varint::put_difference(&mut self.addresses, first.wrapping_sub(*base));
        *base = first;
        if even {
            varint::put_difference(&mut self.addresses, stride);
            return;
        }
        last = first;
        for &address in rest {
            varint::put_difference(&mut self.addresses, address.wrapping_sub(last));
            last = address;
        }
    }
}

/// A warp that was read: its path, and the start of its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Warp {
    path: u32,
    addresses: u64,
}

/// Executed instructions of all warps.
#[derive(Clone, Default)]
pub(super) struct Paths {
    paths: Vec<Arc<[u8]>>,
    numbers: FxHashMap<Arc<[u8]>, u32>,
    addresses: Vec<u8>,
}

impl Paths {
    /// Takes a warp that has been read; the writer starts over.
    pub(super) fn take(&mut self, warp: &mut WarpWriter) -> Warp {
        let path = match self.numbers.get(warp.path.as_slice()) {
            Some(&number) => number,
            None => {
                let path: Arc<[u8]> = warp.path.as_slice().into();
                let number = self.paths.len() as u32;
                self.paths.push(Arc::clone(&path));
                self.numbers.insert(path, number);
                number
            }
        };
        let taken = Warp { path, addresses: self.addresses.len() as u64 };
        self.addresses.extend_from_slice(&warp.addresses);
        warp.path.clear();
        warp.addresses.clear();
        (warp.next, warp.mask, warp.base) = (0, u32::MAX, [0; 3]);
        taken
    }

    /// Frees the memory that is needed only for reading.
    pub(super) fn close(&mut self) {
        self.numbers = FxHashMap::default();
        self.addresses.shrink_to_fit();
    }

    /// Bytes held.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.paths.iter().map(|path| path.len() as u64).sum::<u64>() + self.addresses.len() as u64
    }
}

/// A warp being executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    warp: Warp,
    at: usize,
    next: u32,
    mask: u32,
    base: [u64; 3],
}

impl Reader {
    pub(super) fn new(warp: Warp) -> Reader {
        Reader { warp, at: 0, next: 0, mask: u32::MAX, base: [0; 3] }
    }

    /// Returns the next instruction, and its lanes.
    #[inline]
    pub(super) fn next(&mut self, paths: &Paths) -> Option<(u32, u32)> {
        let path = &paths.paths[self.warp.path as usize];
        if self.at == path.len() {
            return None;
        }
        let word = varint::get(path, &mut self.at);
        if word & 1 != 0 {
            let bytes = &path[self.at..self.at + 4];
            self.mask = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            self.at += 4;
        }
        let number = (i64::from(self.next) + varint::unzigzag(word >> 1)) as u32;
        self.next = number + 1;
        Some((number, self.mask))
    }

    /// Returns true if there are more instructions.
    #[inline]
    pub(super) fn more(&self, paths: &Paths) -> bool {
        self.at < paths.paths[self.warp.path as usize].len()
    }

    /// Appends the addresses of the access just read to `out`, lowest lane first.
    #[inline]
    pub(super) fn access(&mut self, paths: &Paths, out: &mut Vec<u64>) -> Place {
        let bytes = &paths.addresses;
        let mut at = self.warp.addresses as usize;
        let head = bytes[at];
        at += 1;
        let place = Place::of(head);
        let base = &mut self.base[place as usize];
        *base = base.wrapping_add(varint::get_difference(bytes, &mut at));
        let mut address = *base;
        out.push(address);
        let lanes = self.mask.count_ones();
        if head & STRIDE != 0 {
            let stride = varint::get_difference(bytes, &mut at);
            for _ in 1..lanes {
                address = address.wrapping_add(stride);
                out.push(address);
            }
        } else {
            for _ in 1..lanes {
                address = address.wrapping_add(varint::get_difference(bytes, &mut at));
                out.push(address);
            }
        }
        self.warp.addresses = at as u64;
        place
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Paths, Place, Reader, WarpWriter, register, sources};

    #[test]
    fn registers_are_numbered_from_one_and_the_zero_register_is_none() {
        assert_eq!(
            (register(0), register(254), register(255), register(256)),
            (Some(1), Some(255), Some(0), None)
        );
        assert_eq!(sources([5, 0, 5, 7]), [5, 7, 0]);
        assert_eq!(sources([1, 2, 3, 4]), [1, 2, 3]);
    }

    /// An instruction number, lanes, and, for an access, place and addresses.
    type Event = (u32, u32, Option<(Place, Vec<u64>)>);

    fn event() -> impl Strategy<Value = Event> {
        let place = prop_oneof![Just(Place::Global), Just(Place::Shared), Just(Place::Local)];
        let addresses = prop_oneof![
            proptest::collection::vec(any::<u64>(), 32),
            (any::<u64>(), any::<i32>()).prop_map(|(base, stride)| (0..32)
                .map(|n| base.wrapping_add_signed(stride.into()).wrapping_mul(n))
                .collect()),
        ];
        let mask = prop_oneof![Just(u32::MAX), any::<u32>(), Just(0)];
        (any::<u32>(), mask, proptest::option::of((place, addresses))).prop_map(|(number, mask, access)| {
            let lanes = mask.count_ones() as usize;
            let access = access.filter(|_| lanes > 0).map(|(place, mut all)| {
                all.truncate(lanes);
                (place, all)
            });
            (number % 1000, mask, access)
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(warps in proptest::collection::vec(proptest::collection::vec(event(), 0..12), 1..4)) {
            let (mut paths, mut writer) = (Paths::default(), WarpWriter::default());
            let mut taken = Vec::new();
            for warp in &warps {
                for (number, mask, access) in warp {
                    writer.push(*number, *mask, access.as_ref().map(|(place, all)| (*place, all.as_slice())));
                }
                taken.push(paths.take(&mut writer));
            }
            paths.close();
            for (warp, taken) in warps.iter().zip(taken) {
                let mut reader = Reader::new(taken);
                for (number, mask, access) in warp {
                    prop_assert!(reader.more(&paths));
                    prop_assert_eq!(reader.next(&paths), Some((*number, *mask)));
                    if let Some((place, all)) = access {
                        let mut out = Vec::new();
                        prop_assert_eq!(reader.access(&paths, &mut out), *place);
                        prop_assert_eq!(&out, all);
                    }
                }
                prop_assert_eq!(reader.next(&paths), None);
            }
        }
    }
}
