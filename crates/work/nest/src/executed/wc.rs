//! Word count by map and reduce (Mars' word count): words are counted by bucket, put there, and counted by word.

use super::{Area, Body, Executed, Operation, Watch, load, store};
use crate::counts::Counts;
use crate::kernel::Section;
use std::ops::Range;

/// Bytes of text per piece.
const CHUNK: usize = 64 << 10;
/// Number of word buckets: reducing one is a piece.
const BUCKETS: usize = 256;
/// Bytes of a word in a bucket and in a table: its hash, its first position, its count.
const RECORD: u64 = 12;
const SLOT: u64 = 16;

// Arrays, in order.
const TEXT: usize = 0;
const PLACES: usize = 1;
const WORDS: usize = 2;
const TABLE: usize = 3;

// Bodies, in order.
const LETTER: usize = 0;
const COUNT: usize = 1;
const PLACE: usize = 2;
const PUT: usize = 3;
const CLEAR: usize = 4;
const RECALL: usize = 5;
const PROBE: usize = 6;
const NEW: usize = 7;

/// Text whose words are counted: runs of letters, of either case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wc {
    text: Vec<u8>,
    /// Number of words, and slots of a bucket's table: a power of two, at least twice its number of different words.
    words: u64,
    slots: u64,
}

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Position of one occurrence.
    pub word: Range<usize>,
    /// Number of occurrences.
    pub times: u32,
}

/// State of a word while buckets are filled.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    hash: u64,
    place: u32,
}

fn bucket(hash: u64) -> usize {
    (hash >> 56) as usize % BUCKETS
}

/// Hash of no letters, and the step to one more (FNV-1a).
const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn hashed(hash: u64, letter: u8) -> u64 {
    (hash ^ u64::from(letter | 0x20)).wrapping_mul(0x0100_0000_01b3)
}

/// Returns the rank of the word drawn at a position, with the bits that it was drawn from.
fn drawn(seed: u64, at: u64, different: u64) -> (u64, u64) {
    // The logarithm of the rank is uniform: close to Zipf's law, using only whole numbers.
    let bits = crate::execute::mixed(seed, at);
    let below = 1 + (bits >> 32) % u64::from(different.max(1).ilog2() + 1);
    let rank = (1 << (below - 1)) + (bits & 0xffff_ffff) % (1 << (below - 1));
    (rank.min(different.max(1)), bits)
}

/// Returns the letters of the word of a rank: 2 to 9.
fn letters(seed: u64, rank: u64) -> impl Iterator<Item = u8> {
    let bits = crate::execute::mixed(!seed, rank);
    let letter = |bits: u64| b'a' + (bits % 26) as u8;
    let all = std::iter::successors(Some(bits / 26), |bits| Some(bits / 26));
    all.map(letter).take(2 + (bits % 8) as usize)
}

/// Words of each bucket, until one exceeds its room in bytes.
struct Full {
    room: u64,
    words: [u64; BUCKETS],
}

impl Full {
    fn new(room: u64) -> Full {
        Full { room, words: [0; BUCKETS] }
    }

    /// Returns true if even a single bucket could hold all words of a text of this length, each a letter and its end.
    fn fits(&self, bytes: usize) -> bool {
        RECORD * (bytes as u64).div_ceil(2) <= self.room
    }

    /// Adds a word to a bucket; returns whether its records then span more bytes than the room.
    fn takes(&mut self, bucket: usize) -> bool {
        let found = RECORD * self.words[bucket];
        self.words[bucket] += 1;
        found >= self.room
    }
}

impl Wc {
    /// Counts the words of a text. Two words are equal if their 64-bit hashes are (FNV-1a).
    ///
    /// # Panics
    /// If the text is empty, or has 4 GiB or more.
    pub fn new(text: Vec<u8>) -> Wc {
        assert!(!text.is_empty() && u32::try_from(text.len()).is_ok(), "a text of less than 4 GiB");
        let mut found = Wc { text, words: 0, slots: 0 };
        let mut hashes = Vec::new();
        found.words_of(0..found.text.len(), &mut |record, _| hashes.push(record.hash));
        found.words = hashes.len() as u64;
        hashes.sort_unstable();
        hashes.dedup();
        let mut different = [0_u64; BUCKETS];
        hashes.iter().for_each(|hash| different[bucket(*hash)] += 1);
        found.slots = (2 * different.iter().max().copied().unwrap_or(0)).next_power_of_two();
        found
    }

    /// Generates a text of `bytes` bytes: words of 2 to 9 letters, of which the first of `different` is drawn most
    /// often, the second half as often, and so on.
    pub fn generate(bytes: usize, different: u64, seed: u64) -> Wc {
        let mut text = Vec::with_capacity(bytes + 16);
        let mut at = 0;
        while text.len() < bytes {
            let (rank, bits) = drawn(seed, at, different);
            text.extend(letters(seed, rank));
            text.push(if bits.is_multiple_of(16) { b'\n' } else { b' ' });
            at += 1;
        }
        text.truncate(bytes);
        Wc::new(text)
    }

    /// Returns true if reducing a bucket of a generated text touches more than `room` bytes. Words are drawn until
    /// one bucket has as many; the text is not made.
    pub fn outgrows(bytes: usize, different: u64, seed: u64, room: u64) -> bool {
        let mut full = Full::new(room);
        if full.fits(bytes) {
            return false;
        }
        // Length and bucket by rank; a length of zero is not yet known.
        let mut known = vec![(0_u8, 0_u8); different.max(1) as usize + 1];
        let (mut at, mut end) = (0, 0);
        loop {
            let (rank, _) = drawn(seed, at, different);
            let one = &mut known[rank as usize];
            if one.0 == 0 {
                let (length, hash) = letters(seed, rank)
                    .fold((0, FNV), |(length, hash), letter| (length + 1, hashed(hash, letter)));
                *one = (length, bucket(hash) as u8);
            }
            end += usize::from(one.0);
            if end > bytes {
                return false;
            }
            if full.takes(usize::from(one.1)) {
                return true;
            }
            end += 1;
            at += 1;
        }
    }

    /// Returns true if reducing a bucket of a text touches more than `room` bytes: one pass over it.
    pub fn text_outgrows(text: &[u8], room: u64) -> bool {
        let mut full = Full::new(room);
        if full.fits(text.len()) {
            return false;
        }
        let words = text.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        let mut hashes = words.map(|word| word.iter().fold(FNV, |hash, byte| hashed(hash, *byte)));
        hashes.any(|hash| full.takes(bucket(hash)))
    }

    /// Returns the text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn chunks(&self) -> usize {
        self.text.len().div_ceil(CHUNK)
    }

    fn chunk(&self, at: usize) -> Range<usize> {
        at * CHUNK..((at + 1) * CHUNK).min(self.text.len())
    }

    /// Calls with each word that begins in a range, and its end; returns where the last of them or the range ends.
    fn words_of(&self, range: Range<usize>, call: &mut dyn FnMut(Record, usize)) -> usize {
        let is_letter = |at: usize| self.text.get(at).is_some_and(u8::is_ascii_alphabetic);
        let mut at = range.start;
        // A word that begins earlier belongs to the previous chunk.
        while at > 0 && at < range.end && is_letter(at - 1) && is_letter(at) {
            at += 1;
        }
        while at < range.end {
            if !is_letter(at) {
                at += 1;
                continue;
            }
            let place = at;
            let mut hash = FNV;
            while is_letter(at) {
                hash = hashed(hash, self.text[at]);
                at += 1;
            }
            call(Record { hash, place: place as u32 }, at);
        }
        at
    }

    /// Reads a chunk: each byte once, plus the bytes after it that belong to its last word.
    fn read(&self, chunk: usize, watch: &mut dyn Watch, call: &mut dyn FnMut(Record, &mut dyn Watch)) {
        let Range { start, end } = self.chunk(chunk);
        let mut next = start;
        let mut look = |below: usize, watch: &mut dyn Watch| {
            watch.loads(TEXT, next as u64..below as u64);
            next = below;
        };
        let below = self.words_of(start..end, &mut |record, end| {
            look(end, watch);
            call(record, watch);
        });
        look(below, watch);
        watch.body(LETTER, 1, (below - start) as u64);
    }

    /// Returns the different words, in no particular order.
    pub fn counts(&self, watch: &mut dyn Watch) -> Vec<Count> {
        let chunks = self.chunks();
        // By bucket, then by chunk: first the number of words, then their places.
        let mut places = vec![0_u32; BUCKETS * chunks];
        let byte = |bucket: usize, chunk: usize| 4 * (bucket * chunks + chunk) as u64;
        watch.microblock(true);
        for chunk in 0..chunks {
            watch.piece();
            self.read(chunk, watch, &mut |record, watch| {
                let bucket = bucket(record.hash);
                watch.body(COUNT, 1, 1);
                load(watch, PLACES, byte(bucket, chunk));
                store(watch, PLACES, byte(bucket, chunk));
                places[bucket * chunks + chunk] += 1;
            });
        }
        watch.microblock(false);
        let mut next = 0;
        let mut begins = vec![0; BUCKETS + 1];
        for bucket in 0..BUCKETS {
            watch.piece();
            watch.body(PLACE, 1, chunks as u64);
            begins[bucket] = next as usize;
            for chunk in 0..chunks {
                load(watch, PLACES, byte(bucket, chunk));
                store(watch, PLACES, byte(bucket, chunk));
                next += std::mem::replace(&mut places[bucket * chunks + chunk], next);
            }
        }
        begins[BUCKETS] = next as usize;
        let mut words = vec![Record::default(); next as usize];
        watch.microblock(true);
        for chunk in 0..chunks {
            watch.piece();
            self.read(chunk, watch, &mut |record, watch| {
                let bucket = bucket(record.hash);
                let place = &mut places[bucket * chunks + chunk];
                watch.body(PUT, 1, 1);
                load(watch, PLACES, byte(bucket, chunk));
                store(watch, PLACES, byte(bucket, chunk));
                store(watch, WORDS, RECORD * u64::from(*place));
                store(watch, WORDS, RECORD * u64::from(*place) + 8);
                words[*place as usize] = record;
                *place += 1;
            });
        }
        let mut counts = Vec::new();
        watch.microblock(true);
        for bucket in 0..BUCKETS {
            watch.piece();
            self.reduce(
                bucket,
                begins[bucket],
                &words[begins[bucket]..begins[bucket + 1]],
                &mut counts,
                watch,
            );
        }
        counts
    }

    /// Counts the words of a bucket in a separate table.
    fn reduce(
        &self,
        bucket: usize,
        begin: usize,
        words: &[Record],
        counts: &mut Vec<Count>,
        watch: &mut dyn Watch,
    ) {
        let byte = |slot: u64| SLOT * (bucket as u64 * self.slots + slot);
        let mut table = vec![(Record::default(), 0_u32); self.slots as usize];
        watch.body(CLEAR, 1, self.slots);
        (0..self.slots).for_each(|slot| store(watch, TABLE, byte(slot) + 12));
        for (at, record) in words.iter().enumerate() {
            load(watch, WORDS, RECORD * (begin + at) as u64);
            let mut slot = record.hash % self.slots;
            let mut probes = 1;
            let probe = |slot: u64, watch: &mut dyn Watch| {
                load(watch, TABLE, byte(slot) + 12);
                load(watch, TABLE, byte(slot));
            };
            probe(slot, watch);
            while table[slot as usize].1 > 0 && table[slot as usize].0.hash != record.hash {
                slot = (slot + 1) % self.slots;
                probes += 1;
                probe(slot, watch);
            }
            watch.body(PROBE, 1, probes);
            watch.body(RECALL, 1, 1);
            store(watch, TABLE, byte(slot) + 12);
            if table[slot as usize].1 == 0 {
                watch.body(NEW, 1, 1);
                load(watch, WORDS, RECORD * (begin + at) as u64 + 8);
                store(watch, TABLE, byte(slot));
                store(watch, TABLE, byte(slot) + 8);
                table[slot as usize].0 = *record;
            }
            table[slot as usize].1 += 1;
        }
        for (record, times) in table.into_iter().filter(|(_, times)| *times > 0) {
            let begin = record.place as usize;
            let length = self.text[begin..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            counts.push(Count { word: begin..begin + length, times });
        }
    }
}

impl Executed for Wc {
    fn name(&self) -> &'static str {
        "wc"
    }

    fn arrays(&self) -> Vec<Area> {
        vec![
            Area::new("text", self.text.len() as u64, Section::Input),
            Area::new("places", 4 * (BUCKETS * self.chunks()) as u64, Section::Scratch),
            Area::new("words", RECORD * self.words, Section::Scratch),
            Area::new("table", SLOT * self.slots * BUCKETS as u64, Section::Output),
        ]
    }

    fn bodies(&self) -> Vec<Body> {
        use Operation::{Add, Compare, Load, Multiply, Store};
        let none = Counts::default();
        let body = |about, own, chain, recurrence, overlaps| Body { about, own, chain, recurrence, overlaps };
        vec![
            // A 64-bit product is three 32-bit products and two sums.
            body(
                "a letter, and the hash so far",
                Counts { loads: 1, compares: 4, multiplies: 3, adds: 2, iterations: 1, ..none },
                &[Load, Compare, Compare, Multiply, Add, Add],
                &[Compare, Multiply, Add, Add],
                true,
            ),
            body(
                "a word of its bucket",
                Counts { loads: 1, adds: 1, stores: 1, addresses: 1, ..none },
                &[Load, Add, Store],
                &[],
                false,
            ),
            body(
                "where a bucket's words of a chunk go",
                Counts { loads: 1, adds: 1, stores: 1, addresses: 1, iterations: 1, ..none },
                &[Load, Store],
                &[Add],
                true,
            ),
            body(
                "a word goes there",
                Counts { loads: 1, adds: 1, stores: 3, addresses: 2, ..none },
                &[Load, Add, Store],
                &[],
                false,
            ),
            body("no word is known", Counts { stores: 1, iterations: 1, ..none }, &[Store], &[], true),
            body(
                "a word once more",
                Counts { loads: 1, adds: 1, stores: 1, compares: 1, iterations: 1, ..none },
                &[Load, Compare, Add, Store],
                &[],
                false,
            ),
            body(
                "is it the word",
                Counts { loads: 2, compares: 3, adds: 1, iterations: 1, ..none },
                &[Load, Compare, Compare],
                &[Add, Compare],
                true,
            ),
            body("a word that is new", Counts { loads: 1, stores: 2, ..none }, &[Load, Store], &[], false),
        ]
    }

    fn execute(&self, watch: &mut dyn Watch) {
        self.counts(watch);
    }
}
