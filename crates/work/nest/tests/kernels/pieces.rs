//! Pieces against walks through their accesses: shipped kernels, and random ones.

use std::collections::BTreeSet;

use crate::{counted, read, small};
use nest::{Access, Counts, Extent, Kernel, Piece, programs};
use proptest::prelude::*;

fn accesses(kernel: &Kernel, piece: &Piece) -> Vec<Access> {
    let mut accesses = Vec::new();
    kernel.accesses(piece, &mut |access| accesses.push(access));
    accesses
}

/// Returns the bytes of the extents of an array, and those that accesses touch.
fn touched(kernel: &Kernel, piece: &Piece, array: usize) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let element = kernel.arrays()[array].element.bytes();
    let own = |extent: &&Extent| extent.array == array;
    let footprint = kernel.footprint(piece);
    let said = footprint.iter().filter(own).flat_map(Extent::ranges).flatten().collect();
    let walked = accesses(kernel, piece).into_iter().filter(|access| access.array == array);
    (said, walked.flat_map(|access| access.byte..access.byte + element).collect())
}

fn ends(bytes: &BTreeSet<u64>) -> Option<(u64, u64)> {
    Some((*bytes.first()?, *bytes.last()?))
}

/// Checks everything that holds for a piece of any kernel.
pub(crate) fn check(kernel: &Kernel, piece: &Piece) {
    let counts = kernel.counts(piece);
    assert_eq!(counts, counted(kernel, piece), "{piece:?}");
    let walked = accesses(kernel, piece);
    assert_eq!(counts.loads + counts.stores, walked.len() as u64);
    let mut by_loop = Vec::new();
    kernel.iterations(piece, &mut by_loop);
    assert_eq!(by_loop.iter().sum::<u64>(), counts.iterations);
    for array in 0..kernel.arrays().len() {
        let (said, walked) = touched(kernel, piece, array);
        assert!(said.is_superset(&walked), "{piece:?}, array {array}");
    }
    let footprint = kernel.footprint(piece);
    for access in &walked {
        let covers = |extent: &&Extent| {
            let rows = extent.array == access.array && extent.hull().contains(&access.byte);
            rows && (access.byte - extent.first) % extent.stride < extent.row
        };
        let mut covering = footprint.iter().filter(covers);
        assert!(covering.any(|extent| if access.write { extent.writes } else { extent.reads }), "{access:?}");
    }
    for extent in footprint {
        assert!(extent.hull().end <= kernel.arrays()[extent.array].bytes());
        let is_meant = |access: &Access| access.array == extent.array && (access.write || !extent.writes);
        assert!(walked.is_empty() || walked.iter().any(is_meant), "{extent:?}");
        for group in [1, 4, 12, 64, 100] {
            let groups: BTreeSet<u64> = extent.ranges().flatten().map(|byte| byte / group).collect();
            assert_eq!(extent.groups(group), groups.len() as u64, "{extent:?} in groups of {group}");
        }
    }
}

/// Checks that sections make up the screen: the same accesses in the same order, and the same operations; each fits,
/// unless it cannot be smaller.
fn check_sections(kernel: &Kernel, screen: Piece, budget: u64, group: u64) {
    let mut walked = Vec::new();
    let mut counts = Counts::default();
    for section in kernel.sections(screen, budget, group) {
        check(kernel, &section);
        kernel.accesses(&section, &mut |access| walked.push(access));
        counts += kernel.counts(&section);
        let footprint = kernel.footprint(&section);
        let bytes: u64 = footprint.iter().map(|extent| extent.groups(group) * group).sum();
        let iterations = section.steps().last().map_or(1, |(_, range)| range.end - range.start);
        assert!(bytes <= budget || iterations == 1, "{section:?} has {bytes} B");
    }
    assert_eq!(walked, accesses(kernel, &screen), "{screen:?} with {budget} B");
    assert_eq!(counts, kernel.counts(&screen), "{screen:?} with {budget} B");
}

/// Checks that parts of parts, down to single statements, make up the piece.
fn check_parts(kernel: &Kernel, piece: &Piece) {
    fn all(kernel: &Kernel, piece: &Piece, walked: &mut Vec<Access>) -> Counts {
        let parts = match piece.range() {
            Some((_, range)) if range.end - range.start > 1 => {
                range.map(|at| piece.narrowed(at..at + 1)).collect()
            }
            _ => kernel.parts(piece),
        };
        let mut counts = Counts::default();
        for part in parts {
            assert_eq!(kernel.counts(&part), counted(kernel, &part), "{part:?}");
            if part.range().is_some() {
                counts += all(kernel, &part, walked);
            } else {
                kernel.accesses(&part, &mut |access| walked.push(access));
                counts += kernel.counts(&part);
            }
        }
        counts
    }
    let mut walked = Vec::new();
    let counts = all(kernel, piece, &mut walked);
    assert_eq!(counts, kernel.counts(piece), "{piece:?}");
    assert_eq!(walked, accesses(kernel, piece), "{piece:?}");
}

#[test]
fn footprints_of_shipped_kernels_are_the_bytes_that_they_touch() {
    for (name, text) in programs() {
        let kernel = small(name, text);
        // A triangle is not a block.
        let is_triangle = |array: usize| kernel.arrays()[array].name == "symmat";
        for at in 0..kernel.microblocks().len() {
            for screen in kernel.screens(at, 3).chain([Piece::whole(at)]) {
                for piece in kernel.sections(screen, 700, 1).chain([screen]) {
                    check(&kernel, &piece);
                    for array in 0..kernel.arrays().len() {
                        let (said, walked) = touched(&kernel, &piece, array);
                        if is_triangle(array) {
                            assert_eq!(ends(&said), ends(&walked), "{name}, {piece:?}");
                        } else {
                            assert_eq!(said, walked, "{name}, {piece:?}, array {array}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn sections_of_shipped_kernels_are_their_screens() {
    for (name, text) in programs() {
        let kernel = small(name, text);
        for at in 0..kernel.microblocks().len() {
            for budget in [150, 900] {
                kernel.screens(at, 2).for_each(|screen| check_sections(&kernel, screen, budget, 16));
            }
        }
    }
}

#[test]
fn screens_are_equal_ranges_of_the_split_loop() {
    let (name, text) = programs()[0];
    let kernel = read(text, name, &[("m".to_owned(), 10)]);
    let ranges = |count| kernel.screens(0, count).filter_map(|piece| piece.screen()).collect::<Vec<_>>();
    assert_eq!(ranges(4), [0..3, 3..6, 6..9, 9..10]);
    // Nine screens of two would be five.
    assert_eq!(ranges(9).len(), 5);
    assert_eq!(ranges(100).len(), 10);
    assert_eq!(kernel.screens(1, 4).collect::<Vec<_>>(), [Piece::whole(1)]);
}

/// Checks that the distributed parts of a section execute its statements, each once, and share no written element;
/// the loops around the split one belong to each part.
#[test]
fn what_a_section_is_dealt_out_as_is_the_section() {
    let mut most = 0;
    for (name, text) in programs() {
        let kernel = small(name, text);
        for at in 0..kernel.microblocks().len() {
            for budget in [150, 900, 1 << 20] {
                let whole = kernel.screens(at, 1).next().expect("a screen");
                for section in kernel.sections(whole, budget, 16) {
                    let dealt = kernel.dealt(&section, 3);
                    most = most.max(dealt.len());
                    assert!((1..=3).contains(&dealt.len()), "{name}");
                    assert!(kernel.microblocks()[at].split.is_some() || dealt == [section], "{name}");
                    let sorted = |mut all: Vec<Access>| {
                        all.sort_by_key(|access| (access.array, access.byte, access.write));
                        all.into_iter()
                            .map(|access| (access.array, access.byte, access.write))
                            .collect::<Vec<_>>()
                    };
                    let walked: Vec<Vec<Access>> =
                        dealt.iter().map(|piece| accesses(&kernel, piece)).collect();
                    assert_eq!(
                        sorted(walked.concat()),
                        sorted(accesses(&kernel, &section)),
                        "{name}, {section:?}"
                    );
                    for (own, all) in walked.iter().enumerate() {
                        let written: BTreeSet<_> =
                            all.iter().filter(|one| one.write).map(|one| (one.array, one.byte)).collect();
                        let others = walked.iter().enumerate().filter(|(other, _)| *other != own);
                        for one in others.flat_map(|(_, all)| all) {
                            assert!(!written.contains(&(one.array, one.byte)), "{name}, {section:?}");
                        }
                    }
                }
            }
        }
    }
    assert_eq!(most, 3);
}

/// A row of `x` and one of `y` are 40 B each: of 30 iterations nine fit into 720 B, and eight into 719 B.
#[test]
fn sections_are_as_large_as_fits() {
    let text = "name = \"rows\"\n[sizes]\nn = 30\n[arrays.x]\nshape = [\"n\", \"10\"]\nelement = \"f32\"\nsection = \"input\"\n\
                [arrays.y]\nshape = [\"n\", \"10\"]\nelement = \"f32\"\nsection = \"output\"\n\
                [[microblocks]]\nsplit = \"i\"\ncode = \"for i in 0..n { for j in 0..10 { y[i][j] = 0; y[i][j] += x[i][j]; } }\"\n";
    let kernel = read(text, "rows", &[]);
    let ranges = |budget| -> Vec<_> {
        let sections = kernel.sections(Piece::whole(0), budget, 1);
        sections.filter_map(|piece| piece.range()).map(|(_, range)| range).collect()
    };
    assert_eq!(ranges(720), [0..9, 9..18, 18..27, 27..30]);
    assert_eq!(ranges(719), [0..8, 8..16, 16..24, 24..30]);
    assert_eq!(ranges(100_000).len(), 1);
    // A single row is too large: its elements follow, four of each at a time.
    assert_eq!(ranges(32)[..4], [0..4, 4..8, 8..10, 0..4]);
    // `x` is read, `y` written and read again.
    let used: Vec<_> =
        kernel.footprint(&Piece::whole(0)).iter().map(|one| (one.bytes(), one.reads, one.writes)).collect();
    assert_eq!(used, [(1200, true, false), (1200, true, true)]);
}

/// Checks that screens of a microblock leave the same values in any order.
#[test]
fn screens_do_not_depend_on_each_other() {
    for (name, text) in programs() {
        let kernel = small(name, text);
        let run = |is_turned: bool| {
            let mut data = nest::Data::generate(&kernel, 3);
            for at in 0..kernel.microblocks().len() {
                let mut screens: Vec<Piece> = kernel.screens(at, 4).collect();
                if is_turned {
                    screens.reverse();
                }
                for screen in &screens {
                    kernel.execute_piece(screen, &mut data);
                }
            }
            data
        };
        let mut whole = nest::Data::generate(&kernel, 3);
        kernel.execute(&mut whole);
        assert!(run(false) == whole && run(true) == whole, "{name}");
    }
}

/// Random kernel: bounds that depend on outer variables, blocks, steps, reversed loops, bodies with several nodes.
pub(crate) struct Random {
    state: u64,
    text: String,
    names: usize,
}

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    /// Returns a subscript; every variable is from 0 to 8, so it is from 0 to 39.
    fn subscript(&mut self, around: &[String]) -> String {
        let constant = self.below(4);
        if around.is_empty() {
            return constant.to_string();
        }
        let mut variable = || around[self.below(around.len() as u64) as usize].clone();
        let (a, b) = (variable(), variable());
        match self.below(5) {
            0 => constant.to_string(),
            1 => format!("{a} + {constant}"),
            2 => format!("n + 1 - {a}"),
            3 => format!("2*{a} + {b}"),
            _ => a,
        }
    }

    fn element(&mut self, around: &[String]) -> String {
        let (i, j) = (self.subscript(around), self.subscript(around));
        match self.below(3) {
            0 => format!("B[{i}]"),
            _ => format!("A[{i}][{j}]"),
        }
    }

    fn statement(&mut self, around: &[String]) {
        let (target, a, b) = (self.element(around), self.element(around), self.element(around));
        let operator = self.pick(&["=", "+=", "-=", "*="]);
        let value = match self.below(4) {
            0 => format!("{a} * 0.5 - {b}"),
            1 => format!("min({a}, -{b}) + n"),
            2 => format!("{a} < {b} ? sqrt(abs({a})) : 2"),
            _ => a,
        };
        self.text += &format!("{target} {operator} {value};\n");
    }

    fn body(&mut self, around: &mut Vec<String>) {
        for _ in 0..=self.below(2) {
            if around.len() < 4 && self.below(10) < 8 { self.a_loop(around) } else { self.statement(around) }
        }
    }

    fn a_loop(&mut self, around: &mut Vec<String>) {
        let name = format!("v{}", self.names);
        self.names += 1;
        let outer = around.last().cloned().unwrap_or("0".to_owned());
        let first = around.first().cloned().unwrap_or("1".to_owned());
        let bounds = match self.below(9) {
            0 => format!("{outer}..n"),
            1 => format!("{outer} + 1..n"),
            2 => format!("0..{outer}"),
            3 => format!("0..{outer} + 1 reversed"),
            4 => "0..n step 3".to_owned(),
            5 => "1..n - 1 reversed".to_owned(),
            6 => format!("{first}..n"),
            7 if around.len() < 3 => {
                self.text += &format!("for {name} in 0..n step t {{\n");
                around.push(name.clone());
                let inner = format!("v{}", self.names);
                self.names += 1;
                self.text += &format!("for {inner} in {name}..min({name} + t, n) {{\n");
                around.push(inner);
                self.body(around);
                self.text += "} }\n";
                around.truncate(around.len() - 2);
                return;
            }
            _ => "0..n".to_owned(),
        };
        self.text += &format!("for {name} in {bounds} {{\n");
        around.push(name);
        self.body(around);
        around.pop();
        self.text += "}\n";
    }

    pub(crate) fn kernel(seed: u64) -> Kernel {
        let mut random = Random { state: seed, text: String::new(), names: 0 };
        let (n, t) = (3 + random.below(6), 1 + random.below(4));
        random.body(&mut Vec::new());
        let text = format!(
            "name = \"random\"\n[sizes]\nn = {n}\nt = {t}\n\
             [arrays.A]\nshape = [\"40\", \"40\"]\nelement = \"f64\"\nsection = \"scratch\"\n\
             [arrays.B]\nshape = [\"40\"]\nelement = \"i32\"\nsection = \"scratch\"\n\
             [[microblocks]]\ncode = '''\n{}'''\n",
            random.text
        );
        read(&text, "random.toml", &[])
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels_are_what_executing_them_shows(seed: u64) {
        check(&Random::kernel(seed), &Piece::whole(0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn sections_of_random_kernels_are_the_kernel(seed: u64, budget in 1u64..4000) {
        check_sections(&Random::kernel(seed), Piece::whole(0), budget, 8);
    }

    #[test]
    fn parts_of_random_kernels_are_the_kernel(seed: u64) {
        check_parts(&Random::kernel(seed), &Piece::whole(0));
    }
}
