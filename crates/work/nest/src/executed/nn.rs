//! Nearest neighbours (Rodinia's `nn`, OpenMP): distances of all records at once, then one after another into a list
//! of the nearest.

use super::{Area, Body, Executed, Operation, Watch, load, store};
use crate::counts::Counts;
use crate::kernel::Section;

/// Bytes of a record (`REC_LENGTH`); latitude and longitude have five characters each from here on (`LATITUDE_POS`).
const RECORD: usize = Nn::RECORD;
const LATITUDE: usize = 27;
const WIDTH: usize = 5;
/// Number of records per piece.
const BLOCK: usize = 1 << 12;
/// Bytes of a list entry: the record and its distance.
const ENTRY: u64 = 56;

// Arrays, in order.
const RECORDS: usize = 0;
const DISTANCES: usize = 1;
const NEAREST: usize = 2;

// Bodies, in order.
const DIGIT: usize = 0;
const DISTANCE: usize = 1;
const BEGIN: usize = 2;
const TAKE: usize = 3;
const WORST: usize = 4;
const COPY: usize = 5;
const REPLACE: usize = 6;

/// Records of places as text, concatenated, and a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Nn {
    text: Vec<u8>,
    place: (f32, f32),
    count: usize,
}

impl Nn {
    /// Bytes of a record.
    pub const RECORD: usize = 49;

    /// Creates a search for the `count` records nearest to a place, by latitude and longitude.
    ///
    /// # Panics
    /// If the text is not records of 49 B, or `count` is zero.
    pub fn new(text: Vec<u8>, place: (f32, f32), count: usize) -> Nn {
        assert!(!text.is_empty() && text.len().is_multiple_of(RECORD), "records of {RECORD} B");
        assert!(count > 0, "some that are nearest");
        Nn { text, place, count }
    }

    /// Generates records of storms at random places: latitudes from 7 to 69, longitudes from 0 to 358 degrees, to a
    /// tenth.
    pub fn generate(records: usize, seed: u64, place: (f32, f32), count: usize) -> Nn {
        let mut text = Vec::with_capacity(records * RECORD);
        for at in 0..records as u64 {
            let bits = crate::execute::mixed(seed, at);
            let (latitude, longitude) = (70 + (bits >> 32) % 621, (bits & 0xffff_ffff) % 3_581);
            let line = format!(
                "1950 {:2} {:2} 12 {:4} STORM   {:3}.{} {:3}.{}",
                1 + bits % 12,
                1 + bits % 28,
                at % 10_000,
                latitude / 10,
                latitude % 10,
                longitude / 10,
                longitude % 10
            );
            let begin = text.len();
            text.extend_from_slice(line.as_bytes());
            text.resize(begin + RECORD - 1, b' ');
            text.push(b'\n');
        }
        Nn::new(text, place, count)
    }

    /// Returns the minimum page groups of `group` bytes that the largest piece of `records` records touches. The
    /// records are not needed.
    pub fn least_groups(records: u64, group: u64) -> u64 {
        if group < RECORD as u64 {
            return 0;
        }
        let span = |from: u64, below: u64| (below - 1) / group - from / group + 1;
        // From the first byte of a number to the last one: any group in between contains part of it.
        let (head, tail) = (LATITUDE as u64, (LATITUDE + WIDTH + 1 + WIDTH) as u64);
        let of = |piece: u64| {
            let (first, below) = (piece * BLOCK as u64, ((piece + 1) * BLOCK as u64).min(records));
            let size = RECORD as u64;
            span(first * size + head, (below - 1) * size + tail) + span(4 * first, 4 * below)
        };
        // The offsets of pieces in their groups repeat.
        (0..records.div_ceil(BLOCK as u64).min(group)).map(of).max().unwrap_or(0)
    }

    /// Returns the text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn records(&self) -> usize {
        self.text.len() / RECORD
    }

    /// Returns the nearest records, by number, with their distances, in the order of the list.
    pub fn nearest(&self, watch: &mut dyn Watch) -> Vec<(usize, f32)> {
        let mut distances = vec![0.0; self.records()];
        watch.microblock(true);
        for first in (0..self.records()).step_by(BLOCK) {
            watch.piece();
            let below = (first + BLOCK).min(self.records());
            for (record, distance) in distances.iter_mut().enumerate().take(below).skip(first) {
                let at = record * RECORD + LATITUDE;
                let (latitude, longitude) = (self.number(at, watch), self.number(at + WIDTH + 1, watch));
                let apart = (latitude - self.place.0, longitude - self.place.1);
                *distance = libm::sqrtf(apart.0 * apart.0 + apart.1 * apart.1);
                watch.body(DISTANCE, 1, 1);
                store(watch, DISTANCES, 4 * record as u64);
            }
        }
        self.take(&distances, watch)
    }

    /// Compares each distance with the worst of the list, serially.
    fn take(&self, distances: &[f32], watch: &mut dyn Watch) -> Vec<(usize, f32)> {
        let mut list = vec![(0, f32::MAX); self.count];
        watch.microblock(false);
        for first in (0..self.records()).step_by(BLOCK) {
            watch.piece();
            if first == 0 {
                watch.body(BEGIN, 1, self.count as u64);
                (0..self.count as u64).for_each(|at| store(watch, NEAREST, at * ENTRY));
            }
            let below = (first + BLOCK).min(self.records());
            watch.body(TAKE, 1, (below - first) as u64);
            watch.body(WORST, (below - first) as u64, (below - first) as u64 * self.count as u64);
            for (record, distance) in distances.iter().enumerate().take(below).skip(first) {
                load(watch, DISTANCES, 4 * record as u64);
                let mut worst = 0;
                for at in 0..self.count {
                    load(watch, NEAREST, at as u64 * ENTRY);
                    if list[at].1 > list[worst].1 {
                        worst = at;
                    }
                }
                if *distance < list[worst].1 {
                    list[worst] = (record, *distance);
                    self.replace(record, worst, watch);
                }
            }
        }
        list
    }

    /// Copies a record into the list, byte by byte, with its distance.
    fn replace(&self, record: usize, at: usize, watch: &mut dyn Watch) {
        watch.body(REPLACE, 1, 1);
        store(watch, NEAREST, at as u64 * ENTRY);
        watch.body(COPY, 1, RECORD as u64);
        for byte in 0..RECORD as u64 {
            load(watch, RECORDS, (record * RECORD) as u64 + byte);
            store(watch, NEAREST, at as u64 * ENTRY + 4 + byte);
        }
    }

    /// Reads a number of five characters: digits, of which those after a point are tenths, hundredths and so on.
    fn number(&self, at: usize, watch: &mut dyn Watch) -> f32 {
        watch.body(DIGIT, 1, WIDTH as u64);
        let (mut number, mut scale, mut is_behind_point) = (0.0_f32, 1.0_f32, false);
        for byte in at..at + WIDTH {
            load(watch, RECORDS, byte as u64);
            match self.text[byte] {
                b'.' => is_behind_point = true,
                digit @ b'0'..=b'9' => {
                    number = number * 10.0 + f32::from(digit - b'0');
                    scale *= if is_behind_point { 10.0 } else { 1.0 };
                }
                _ => {}
            }
        }
        number / scale
    }
}

impl Executed for Nn {
    fn name(&self) -> &'static str {
        "nn"
    }

    fn arrays(&self) -> Vec<Area> {
        vec![
            Area::new("records", self.text.len() as u64, Section::Input),
            Area::new("distances", 4 * self.records() as u64, Section::Scratch),
            Area::new("nearest", ENTRY * self.count as u64, Section::Output),
        ]
    }

    fn bodies(&self) -> Vec<Body> {
        use Operation::{Add, Compare, Divide, Load, Multiply, SquareRoot, Store};
        let none = Counts::default();
        vec![
            Body {
                about: "a character of a number",
                own: Counts { loads: 1, compares: 3, multiplies: 2, adds: 2, iterations: 1, ..none },
                chain: &[Load, Compare, Add, Multiply, Add],
                recurrence: &[Multiply, Add],
                overlaps: true,
            },
            Body {
                about: "a distance",
                own: Counts {
                    stores: 1,
                    adds: 3,
                    multiplies: 2,
                    divides: 2,
                    square_roots: 1,
                    iterations: 1,
                    ..none
                },
                chain: &[Divide, Add, Multiply, Add, SquareRoot, Store],
                recurrence: &[],
                overlaps: false,
            },
            Body {
                about: "the list is empty",
                own: Counts { stores: 1, iterations: 1, ..none },
                chain: &[Store],
                recurrence: &[],
                overlaps: true,
            },
            Body {
                about: "a distance against the worst",
                own: Counts { loads: 1, compares: 1, iterations: 1, ..none },
                chain: &[Load, Compare],
                recurrence: &[],
                overlaps: false,
            },
            Body {
                about: "the worst of the list",
                own: Counts { loads: 1, compares: 3, iterations: 1, ..none },
                chain: &[Load, Compare, Compare],
                recurrence: &[Compare, Compare],
                overlaps: true,
            },
            Body {
                about: "a byte of a record",
                own: Counts { loads: 1, stores: 1, iterations: 1, ..none },
                chain: &[Load, Store],
                recurrence: &[],
                overlaps: true,
            },
            Body {
                about: "its distance",
                own: Counts { stores: 1, ..none },
                chain: &[Store],
                recurrence: &[],
                overlaps: false,
            },
        ]
    }

    fn execute(&self, watch: &mut dyn Watch) {
        self.nearest(watch);
    }
}
