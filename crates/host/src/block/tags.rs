//! Numbers that are lent out, and those who wait for one (lib/sbitmap.c).

use std::collections::VecDeque;

/// `SBQ_WAIT_QUEUES`.
const WAIT_QUEUES: u32 = 8;
/// `SBQ_WAKE_BATCH`.
const WAKE_BATCH: u32 = 8;

/// Numbers from zero up that are lent out: tags, tokens (`struct sbitmap_queue`).
///
/// The bits are words of equal length, so that a limit on the bits of a word (`sbitmap_get_shallow`) keeps the rest for others. The lowest free
/// number of the word that the last one freed was in is lent: *chosen*, since Linux remembers that for every core.
///
/// Who waits is woken in batches: each time as many numbers have come back as a batch has, as many are woken, in the order in which they
/// came. *Chosen*: Linux has eight lists of them that take turns. Nothing comes of order but who is first. When nothing is lent any more, all
/// are woken.
#[derive(Debug)]
pub(super) struct Tags {
    words: Vec<u64>,
    /// A word has `1 << shift` bits.
    shift: u32,
    depth: u32,
    hint: u32,
    used: u32,
    batch: u32,
    /// Numbers that have come back since a batch was woken.
    back: u32,
    waiting: VecDeque<u32>,
}

impl Tags {
    /// `depth` numbers.
    pub(super) fn new(depth: u32) -> Tags {
        // `sbitmap_calculate_shift`: four words at least.
        let mut shift = 6;
        while depth >= 4 && 4 << shift > depth {
            shift -= 1;
        }
        let words = vec![0; depth.div_ceil(1 << shift) as usize];
        let mut tags =
            Tags { words, shift, depth, hint: 0, used: 0, batch: 1, back: 0, waiting: VecDeque::new() };
        tags.set_shallow(u32::MAX);
        tags
    }

    /// Numbers that there are.
    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Bits of a word.
    #[inline]
    pub(super) fn word(&self) -> u32 {
        1 << self.shift
    }

    /// The least that somebody is limited to in a word: batches are such that nobody waits for ever (`sbq_calc_wake_batch`).
    pub(super) fn set_shallow(&mut self, shallow: u32) {
        let shallow = shallow.min(self.word());
        let rest = self.depth & (self.word() - 1);
        let reach = (self.depth >> self.shift) * shallow + rest.min(shallow);
        self.batch = (reach / WAIT_QUEUES).clamp(1, WAKE_BATCH);
    }

    /// There are so many numbers from now on, at most as many as at first (`sbitmap_queue_resize`). Those beyond that are lent stay so.
    pub(super) fn resize(&mut self, depth: u32) {
        debug_assert!(depth > 0 && depth.div_ceil(self.word()) as usize <= self.words.len());
        self.depth = depth;
        self.set_shallow(u32::MAX);
    }

    /// Whether one of all is free.
    pub(super) fn has_room(&self) -> bool {
        self.used < self.depth
    }

    /// Lends a number whose place in its word is below `shallow`.
    pub(super) fn get(&mut self, shallow: u32) -> Option<u32> {
        let words = self.depth.div_ceil(self.word());
        let mut at = if self.hint < self.depth { self.hint >> self.shift } else { 0 };
        for _ in 0..words {
            let bits = (self.depth - (at << self.shift)).min(self.word()).min(shallow);
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let free = !self.words[at as usize] & mask;
            if free != 0 {
                let bit = free.trailing_zeros();
                self.words[at as usize] |= 1 << bit;
                self.used += 1;
                let number = (at << self.shift) + bit;
                if number == self.hint {
                    self.hint = number + 1;
                }
                return Some(number);
            }
            at = if at + 1 == words { 0 } else { at + 1 };
        }
        self.hint = 0;
        None
    }

    /// A number comes back; those who are woken by it are told to `wake`.
    pub(super) fn put(&mut self, number: u32, mut wake: impl FnMut(u32)) {
        let (word, bit) = (number >> self.shift, number & (self.word() - 1));
        debug_assert!(self.words[word as usize] >> bit & 1 == 1, "{number} was not lent");
        self.words[word as usize] &= !(1 << bit);
        self.used -= 1;
        self.hint = number;
        if self.waiting.is_empty() {
            self.back = 0;
            return;
        }
        self.back += 1;
        if self.used == 0 {
            self.waiting.drain(..).for_each(&mut wake);
        } else if self.back >= self.batch {
            self.wake_batch(wake);
        }
    }

    /// As many as a batch has are woken.
    pub(super) fn wake_batch(&mut self, mut wake: impl FnMut(u32)) {
        self.back = 0;
        for _ in 0..self.batch {
            match self.waiting.pop_front() {
                Some(who) => wake(who),
                None => break,
            }
        }
    }

    /// Somebody waits, behind the others.
    pub(super) fn wait(&mut self, who: u32) {
        self.waiting.push_back(who);
    }

    /// Somebody waits no more.
    pub(super) fn forget(&mut self, who: u32) {
        self.waiting.retain(|other| *other != who);
    }
}
