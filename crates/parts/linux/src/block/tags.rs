//! Numbers that are lent out, and those who wait for one (lib/sbitmap.c).

use std::collections::VecDeque;

/// `SBQ_WAIT_QUEUES`.
const WAIT_QUEUES: usize = 8;
/// `SBQ_WAKE_BATCH`.
const WAKE_BATCH: u32 = 8;

/// Numbers from zero up that are lent out: tags, tokens (`struct sbitmap_queue`).
///
/// The bits are words of equal length, so that a limit on the bits of a word (`sbitmap_get_shallow`) keeps the rest for others. The lowest free
/// number of the word that the last one freed was in is lent: *chosen*, since Linux remembers that for every core.
///
/// Who waits is in one of eight lists, which take turns: each who comes goes to the next list, and each time as many numbers have come back as a
/// batch has, as many of one list are woken, in the order in which they came, and the next list is looked at. So one who takes all that came back
/// does not do so again before another one has been woken. When nothing is lent any more, all are woken.
#[derive(Debug)]
pub(super) struct Tags {
    words: Vec<u64>,
    /// A word has `1 << shift` bits.
    shift: u32,
    depth: u32,
    hint: u32,
    used: u32,
    batch: u32,
    lists: [Waiting; WAIT_QUEUES],
    /// The list that the next one who waits goes to (`wait_index`), and the one that is looked at first (`wake_index`).
    next: usize,
    turn: usize,
}

/// Those in one list (`struct sbq_wait_state`).
#[derive(Debug, Default)]
struct Waiting {
    who: VecDeque<u32>,
    /// Numbers that have still to come back before some are woken (`wait_cnt`).
    left: u32,
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
        let lists = Default::default();
        let mut tags = Tags { words, shift, depth, hint: 0, used: 0, batch: 1, lists, next: 0, turn: 0 };
        tags.set_shallow(u32::MAX);
        tags.lists.iter_mut().for_each(|list| list.left = tags.batch);
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
        let batch = (reach / WAIT_QUEUES as u32).clamp(1, WAKE_BATCH);
        if batch != self.batch {
            self.batch = batch;
            self.lists.iter_mut().for_each(|list| list.left = 1);
        }
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
        if self.used == 0 {
            for turn in (0..WAIT_QUEUES).map(|at| (self.turn + at) % WAIT_QUEUES) {
                self.lists[turn].who.drain(..).for_each(&mut wake);
            }
        } else {
            self.came_back(wake);
        }
    }

    /// A number has come back, or whoever was woken for one does not want it (`__sbq_wake_up`).
    pub(super) fn came_back(&mut self, mut wake: impl FnMut(u32)) {
        let mut turns = (0..WAIT_QUEUES).map(|at| (self.turn + at) % WAIT_QUEUES);
        let Some(turn) = turns.find(|turn| !self.lists[*turn].who.is_empty()) else { return };
        self.turn = turn;
        let list = &mut self.lists[turn];
        list.left -= 1;
        if list.left == 0 {
            list.left = self.batch;
            self.turn = (turn + 1) % WAIT_QUEUES;
            let most = list.who.len().min(self.batch as usize);
            list.who.drain(..most).for_each(&mut wake);
        }
    }

    /// Somebody waits, behind the others of the list whose turn it is (`sbq_wait_ptr`).
    pub(super) fn wait(&mut self, who: u32) {
        self.lists[self.next].who.push_back(who);
        self.next = (self.next + 1) % WAIT_QUEUES;
    }

    /// Somebody waits no more.
    pub(super) fn forget(&mut self, who: u32) {
        self.lists.iter_mut().for_each(|list| list.who.retain(|other| *other != who));
    }
}
