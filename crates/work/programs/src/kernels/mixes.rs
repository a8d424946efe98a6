//! Contents of FlashAbacus's mixes MX1 to MX14.
//!
//! Table 2 has a dot for each program of a mix, but the columns are lost. What is known is how many mixes hold a
//! program, that each holds six, and what the text says of single mixes (sections 5.1 and 5.2). An [`assignment`] is
//! drawn uniformly from all that fit these facts, not chosen by a result. Assignments are numbered, so that a number
//! always means the same one.
//!
//! * The first four kernels of MX1 are data-intensive, the last two are not: programs that process tens of bytes per
//!   thousand instructions, and those that process a few.
//! * MX4, 5, 8 and 14 contain several serial microblocks: at least two programs with one.
//! * Every mix contains a computing-intensive program.
//! * The prototype's flash holds every mix: its 32 GB had to. Instances of a program share the data that they only
//!   read.

use config::Diagnostic;
use engine::Rng;
use nest::{Array, Kernel, Section};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Names of the mixes.
pub const NAMES: [&str; 14] =
    ["mx1", "mx2", "mx3", "mx4", "mx5", "mx6", "mx7", "mx8", "mx9", "mx10", "mx11", "mx12", "mx13", "mx14"];

/// Number of assignments.
pub const ASSIGNMENTS: u32 = 200;

/// Number of programs per mix.
pub const PROGRAMS: usize = 6;

/// Number of dots of each program, in the order of [`nest::programs`].
const DOTS: [u32; 14] = [4, 4, 5, 9, 9, 8, 8, 5, 4, 5, 8, 7, 4, 4];

/// Programs of Table 2 that process more than 30 B per thousand instructions, a bit each; the others process less
/// than 6.
const DATA_INTENSIVE: u16 = 0b0000_0000_0111_1111;

/// Programs with a serial microblock: ATAX, BICG, ADI, FDTD, 3MM, COVAR, 2MM, CORR.
const SERIAL: u16 = 0b0010_1011_0011_0011;

/// Mixes that, according to the text, contain several serial microblocks.
const SEVERAL_SERIAL: [usize; 4] = [3, 4, 7, 13];

/// Number of instances of each program of a mix (section 5.1).
pub(super) const INSTANCES: u32 = 4;

/// Page groups that the instances of each program need: its input once, everything else per instance.
fn groups() -> &'static [u32; 14] {
    static GROUPS: OnceLock<[u32; 14]> = OnceLock::new();
    GROUPS.get_or_init(|| groups_of(1))
}

/// Page groups that the instances of each program need, each with its own input.
fn own_groups() -> &'static [u32; 14] {
    static GROUPS: OnceLock<[u32; 14]> = OnceLock::new();
    GROUPS.get_or_init(|| groups_of(INSTANCES))
}

/// Page groups that the instances of each program need, with `inputs` inputs among them.
fn groups_of(inputs: u32) -> [u32; 14] {
    std::array::from_fn(|program| {
        let (name, text) = nest::programs()[program];
        let kernel = Kernel::read(text, name, &[]).expect("a shipped program");
        let of = |array: &Array| {
            let times = if array.section == Section::Input { inputs } else { INSTANCES };
            array.bytes().div_ceil(GROUP) as u32 * times
        };
        kernel.arrays().iter().map(of).sum()
    })
}

/// Bytes of a page group: a page of 8 KiB on each of two planes of each of four channels (section 4.3).
const GROUP: u64 = 64 << 10;

/// Page groups of data that the prototype's flash holds under either translation, as in the system `flashabacus`: its
/// 8 dies per channel have 171 blocks per plane. A stripe keeps four of them free on every die; two of 384 pages of
/// each other block hold its metadata, and 33 groups hold the map.
pub const CAPACITY: u32 = 8 * (171 - 4) * (384 - 2) - 33;

/// Returns whether the prototype's flash holds each mix of each assignment when every instance has its own input.
pub fn with_own_inputs() -> Vec<[bool; 14]> {
    let needs = |mix: [usize; PROGRAMS]| mix.iter().map(|program| own_groups()[*program]).sum::<u32>();
    (0..ASSIGNMENTS).map(|number| assignment(number).map(|mix| needs(mix) <= CAPACITY)).collect()
}

/// Returns whether it holds one program with `instances` instances that have their own input.
///
/// # Errors
/// If the text names no program.
pub fn program_fits_with_own_inputs(program: &str, instances: u32) -> Result<bool, Diagnostic> {
    let mut applications = super::open(&format!("{program}:instances={instances},inputs=fit"))?;
    let settled = super::settle(&mut applications, GROUP, CAPACITY.into());
    Ok(settled.is_some_and(|settled| settled.inputs == super::Inputs::Own))
}

/// Number of attempts to exchange two programs; one in five succeeds, so that each of the 84 places changes some
/// fifty times.
const EXCHANGES: u32 = 10_000;

/// Returns the programs of each mix, by their indices in [`nest::programs`], in that order.
///
/// Two programs of two mixes are exchanged repeatedly, wherever that breaks no constraint that held. The chain is
/// symmetric, so that all assignments that fit are equally likely in the end.
pub fn assignment(number: u32) -> [[usize; PROGRAMS]; 14] {
    let mut rng = Rng::stream(number.into(), "mixes of FlashAbacus");
    let mut mixes = first();
    let mut faults = faults_of(&mixes);
    for _ in 0..EXCHANGES {
        let (a, b) = (rng.below(14) as usize, rng.below(14) as usize);
        let (from_a, from_b) = (1 << rng.below(14), 1 << rng.below(14));
        let is_only_in = |one: u16, other: u16, program: u16| one & program != 0 && other & program == 0;
        if !is_only_in(mixes[a], mixes[b], from_a) || !is_only_in(mixes[b], mixes[a], from_b) {
            continue;
        }
        let before = mixes;
        mixes[a] ^= from_a | from_b;
        mixes[b] ^= from_a | from_b;
        let after = faults_of(&mixes);
        if after > faults {
            mixes = before;
        } else {
            faults = after;
        }
    }
    mixes.map(|mix| {
        let mut programs = (0..14).filter(|program| mix & 1 << program != 0);
        std::array::from_fn(|_| programs.next().expect("six programs"))
    })
}

/// Returns the mixes of each assignment, each as the first one with the same programs: its assignment, and its index
/// in [`NAMES`]. Running one of them covers all.
pub fn firsts() -> Vec<[(u32, usize); 14]> {
    let mut found = BTreeMap::new();
    let first = |number: u32| {
        let mixes = assignment(number);
        std::array::from_fn(|mix| *found.entry(mixes[mix]).or_insert((number, mix)))
    };
    (0..ASSIGNMENTS).map(first).collect()
}

/// Returns some mixes with the right dots: each program goes to those that have the fewest.
fn first() -> [u16; 14] {
    let mut mixes = [0_u16; 14];
    let mut programs: Vec<usize> = (0..14).collect();
    programs.sort_by_key(|program| std::cmp::Reverse(DOTS[*program]));
    for program in programs {
        let mut order: Vec<usize> = (0..14).collect();
        order.sort_by_key(|mix| mixes[*mix].count_ones());
        for mix in order.into_iter().take(DOTS[program] as usize) {
            mixes[mix] |= 1 << program;
        }
    }
    mixes
}

/// Returns how far mixes are from the text's statements.
fn faults_of(mixes: &[u16; 14]) -> u32 {
    let each = groups();
    let first = (mixes[0] & DATA_INTENSIVE).count_ones().abs_diff(4);
    let serial = |mix: &usize| 2_u32.saturating_sub((mixes[*mix] & SERIAL).count_ones());
    let light = mixes.iter().filter(|mix| **mix & !DATA_INTENSIVE == 0).count() as u32;
    let groups = |mix: &u16| {
        (0..14).filter(|program| *mix & 1 << program != 0).map(|program| each[program]).sum::<u32>()
    };
    let large = mixes.iter().filter(|mix| groups(mix) > CAPACITY).count() as u32;
    first + SEVERAL_SERIAL.iter().map(serial).sum::<u32>() + light + large
}
