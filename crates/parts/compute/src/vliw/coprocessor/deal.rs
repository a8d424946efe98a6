//! How a microblock becomes steps, and a step is dealt out to cores.
//!
//! A microblock is a step if memory has room for all that it touches. Otherwise it is executed in sections, each as large as memory, which are steps. A step is dealt out as a static loop over
//! the iterations of the split loop that it has. Where these are so few that cores cannot have as much of them each, because one goes through much of what memory holds, cores have equal shares of
//! the whole loop instead, each in sections as large as its share of memory, and all go from section to section together: what they read at the same time comes once.
//! That is done where it is shorter and memory has room for it.

use super::places::{Places, needs_of};
use super::spec::CoprocessorSpec;
use crate::vliw::GROUP;
use crate::vliw::program::{Part, Program};
use config::SpecError;

/// How many times as long the longest cores of all steps together may issue as the longest core would if the whole loop was dealt out at once.
const LONGER: (u64, u64) = (21, 20);

/// What of its share of memory a core uses, in eighths: arrays begin anywhere in page groups, so that cores with the whole share may get sections of different lengths, and wait for each other.
const EIGHTHS: [u64; 3] = [8, 7, 6];

/// The steps of a microblock, in order: the part of each core, of those that have one.
///
/// # Errors
/// More sections than a program may have.
pub(super) fn deal(
    program: &Program,
    microblock: usize,
    spec: &CoprocessorSpec,
    places: &Places<'_>,
) -> Result<Vec<Vec<Part>>, SpecError> {
    let cores = u64::from(spec.cores);
    let (mut needs, mut sections, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    for whole in program.screens(microblock, 1) {
        needs_of(program, &[whole], places, &mut needs);
        if !needs.is_empty() && needs.len() as u64 <= spec.frames_of_a_step() {
            sections.push(whole);
        } else {
            program.sections(whole, spec.frames_of_a_step() * GROUP, &mut sections)?;
        }
    }
    let steps: Vec<Vec<Part>> = sections.iter().map(|section| program.dealt(section, cores)).collect();
    let screens = program.screens(microblock, cores);
    let mut cycles = |steps: &[Vec<Part>]| -> u64 {
        let mut of = |part: &Part| program.cost(part, false, &spec.core, &mut scratch).issue;
        steps.iter().map(|parts| parts.iter().map(&mut of).max().unwrap_or(0)).sum()
    };
    let in_sections = cycles(&steps);
    if in_sections * LONGER.1 <= cycles(std::slice::from_ref(&screens)) * LONGER.0 {
        return Ok(steps);
    }
    let mut best = (in_sections, steps);
    for eighths in EIGHTHS {
        // Too many sections for a program are no other way to do it.
        let budget = spec.frames_of_a_step() * eighths / (8 * cores) * GROUP;
        let Ok(together) = together(program, &screens, budget) else { continue };
        let fits = |parts: &Vec<Part>| {
            needs_of(program, parts, places, &mut needs);
            needs.len() as u64 <= spec.frames_of_a_step()
        };
        let cycles = cycles(&together);
        if cycles < best.0 && together.iter().all(fits) {
            best = (cycles, together);
        }
    }
    Ok(best.1)
}

/// Screens in sections of at most so many bytes, the first of all at once, then the second of all, and so on.
fn together(program: &Program, screens: &[Part], budget: u64) -> Result<Vec<Vec<Part>>, SpecError> {
    let sections = |screen: &Part| {
        let mut sections = Vec::new();
        program.sections(*screen, budget, &mut sections).map(|()| sections)
    };
    let each = screens.iter().map(sections).collect::<Result<Vec<_>, _>>()?;
    let count = each.iter().map(Vec::len).max().unwrap_or(0);
    let at = |step| each.iter().filter_map(|sections| sections.get(step).copied()).collect();
    Ok((0..count).map(at).collect())
}
