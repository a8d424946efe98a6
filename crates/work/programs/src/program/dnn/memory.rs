//! Where the tensors of a pass lie: memory is taken again as soon as nobody reads what lies there.
//!
//! As PyTorch's caching allocator does it (`CUDACachingAllocator.cpp`): sizes are rounded to 512 B, the smallest free piece
//! that is large enough is split, neighbouring free pieces become one. Its pools and segments are left out.

use super::eager::Eager;
use super::kernels::Task;

/// What sizes are rounded to (`kMinBlockSize`).
const GRAIN: u64 = 512;

/// A tensor of a pass: where it lies and from which to which kernel it lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) tensor: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// A pass with its tensors laid out from zero up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) tasks: Vec<Task>,
    /// Tensors that live within the pass, in order of their numbers.
    pub(crate) places: Vec<Place>,
    /// Bytes that they take together.
    pub(crate) bytes: u64,
}

/// Free pieces of an arena that grows at its end.
#[derive(Default)]
struct Arena {
    /// Offset and bytes, by offset.
    free: Vec<(u64, u64)>,
    end: u64,
}

impl Arena {
    fn take(&mut self, bytes: u64) -> u64 {
        let fits = self.free.iter().enumerate().filter(|(_, (_, room))| *room >= bytes);
        let Some((n, (offset, room))) = fits.min_by_key(|(_, (_, room))| *room).map(|(n, p)| (n, *p)) else {
            let offset = self.end;
            self.end += bytes;
            return offset;
        };
        if room == bytes {
            self.free.remove(n);
        } else {
            self.free[n] = (offset + bytes, room - bytes);
        }
        offset
    }

    fn give(&mut self, offset: u64, bytes: u64) {
        let n = self.free.partition_point(|(at, _)| *at < offset);
        self.free.insert(n, (offset, bytes));
        if let Some((at, room)) = self.free.get(n + 1).copied().filter(|(at, _)| offset + bytes == *at) {
            self.free[n].1 += room;
            debug_assert_eq!(at, offset + bytes);
            self.free.remove(n + 1);
        }
        if n > 0 && self.free[n - 1].0 + self.free[n - 1].1 == offset {
            self.free[n - 1].1 += self.free[n].1;
            self.free.remove(n);
        }
    }
}

/// Lays out what was recorded. A tensor lives from the kernel that first touches it to the last that does.
pub(crate) fn lay_out(mut eager: Eager) -> Pass {
    let lasting = eager.lasting;
    let within = eager.sizes.len() - lasting as usize;
    let mut places: Vec<Place> = (0..within)
        .map(|n| {
            let bytes = eager.sizes[n + lasting as usize].max(1).next_multiple_of(GRAIN);
            Place { tensor: n as u32 + lasting, offset: 0, bytes, first: usize::MAX, last: 0 }
        })
        .collect();
    let mut touched: Vec<Vec<usize>> = Vec::with_capacity(eager.tasks.len());
    for (number, task) in eager.tasks.iter_mut().enumerate() {
        let (read, written) = task.operands();
        let tensors = read.into_iter().chain([written]).filter_map(|at| at.tensor.checked_sub(lasting));
        let mut here: Vec<usize> = tensors.map(|n| n as usize).collect();
        here.sort_unstable();
        here.dedup();
        for n in &here {
            places[*n].first = places[*n].first.min(number);
            places[*n].last = number;
        }
        touched.push(here);
    }
    let mut arena = Arena::default();
    for (number, here) in touched.iter().enumerate() {
        let mut done = Vec::new();
        for n in here {
            let place = &mut places[*n];
            if place.first == number {
                place.offset = arena.take(place.bytes);
            }
            if place.last == number {
                done.push((place.offset, place.bytes));
            }
        }
        // What a kernel reads is given back only when all that it writes is there.
        for (offset, bytes) in done {
            arena.give(offset, bytes);
        }
    }
    places.retain(|place| place.first != usize::MAX);
    Pass { tasks: eager.tasks, places, bytes: arena.end }
}
