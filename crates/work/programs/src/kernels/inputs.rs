//! Which instances have input of their own, and how much room that takes.

use super::{Application, Program};
use nest::Section;
use nest::executed::{Area, Executed};

/// Whose input an instance reads where it only reads it. What it also writes is its own in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inputs {
    /// One input for all instances of a program.
    #[default]
    Shared,
    /// Input of the instance's own.
    Own,
    /// An input for each instance if there is room for all, otherwise one for all: [`settle`] decides.
    Fit,
}

impl Inputs {
    /// What may be written for it.
    pub const NAMES: [(&str, Inputs); 3] =
        [("shared", Inputs::Shared), ("own", Inputs::Own), ("fit", Inputs::Fit)];
}

/// Parts of `unit` bytes that the data of all instances take, each array whole parts of its own.
fn needed(applications: &[Application], unit: u64) -> u64 {
    let mut shared: Vec<&Program> = Vec::new();
    let mut sum = 0;
    for Application { program, instances, inputs, .. } in applications {
        let is_known = shared.contains(&program);
        for Area { bytes, section, .. } in program.areas() {
            let times = match section {
                Section::Input if *inputs == Inputs::Shared => u64::from(!is_known),
                _ => u64::from(*instances),
            };
            sum += bytes.div_ceil(unit) * times;
        }
        if *inputs == Inputs::Shared && !is_known {
            shared.push(program);
        }
    }
    sum
}

/// What came of instances that are to have input of their own where it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Whose input they read: never [`Inputs::Fit`].
    pub inputs: Inputs,
    /// Parts that the data of all instances take if these have input of their own.
    pub needed: u64,
}

/// Gives instances input of their own that are to have it if it fits: all of them if all data are then at most `room` parts of `unit` bytes, otherwise none. Nothing if none is to have it.
pub fn settle(applications: &mut [Application], unit: u64, room: u64) -> Option<Settled> {
    let asked: Vec<usize> =
        (0..applications.len()).filter(|at| applications[*at].inputs == Inputs::Fit).collect();
    if asked.is_empty() {
        return None;
    }
    asked.iter().for_each(|at| applications[*at].inputs = Inputs::Own);
    let needed = needed(applications, unit);
    let inputs = if needed <= room { Inputs::Own } else { Inputs::Shared };
    asked.iter().for_each(|at| applications[*at].inputs = inputs);
    Some(Settled { inputs, needed })
}

impl Program {
    /// Arrays of the program.
    fn areas(&self) -> Vec<Area> {
        match self {
            Program::Nest(kernel) => {
                let area = |array: &nest::Array| Area {
                    name: array.name.clone(),
                    bytes: array.bytes(),
                    section: array.section,
                };
                kernel.arrays().iter().map(area).collect()
            }
            Program::Executed(on_data) => on_data.arrays(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::open;

    /// Of three instances each has a matrix of 16 groups of 64 KiB, and a vector of one for input, output and between: 57 groups. One less is too few, and then matrix and vector are there once. What is
    /// shared or own on purpose stays so.
    #[test]
    fn all_have_their_own_or_none_has() {
        let all = || {
            let texts =
                ["atax:m=512,n=512,instances=2,inputs=fit", "atax:m=512,n=512,instances=1,inputs=fit"];
            let mut all: Vec<Application> =
                texts.iter().flat_map(|text| open(text).expect("a program")).collect();
            all.extend(open("mvt:n=256,t=64,inputs=own").expect("a program"));
            all
        };
        let whose = |of: &[Application]| of.iter().map(|one| one.inputs).collect::<Vec<_>>();
        // MVT has a matrix of 4 groups and four vectors.
        for (room, inputs) in [(65, Inputs::Own), (64, Inputs::Shared)] {
            let mut applications = all();
            let settled = settle(&mut applications, 64 << 10, room);
            assert_eq!(settled, Some(Settled { inputs, needed: 57 + 8 }));
            assert_eq!(whose(&applications), [inputs, inputs, Inputs::Own]);
        }
        let mut shared = all();
        settle(&mut shared, 64 << 10, 0);
        assert_eq!(needed(&shared, 64 << 10), 17 + 3 * 2 + 8);
        assert_eq!(settle(&mut shared, 64 << 10, 0), None);
    }
}
