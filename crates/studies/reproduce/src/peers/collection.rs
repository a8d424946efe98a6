//! Garbage collection as MQSim's own configuration has it.
//!
//! Nobody has measured it: the two traces that MQSim is shipped with write too little to collect anything, and under steady
//! random writes it loses requests. So the reference is a closed form: the best of eleven blocks drawn at random
//! (`GC_Block_Selection_Policy` RGA over 2,048 blocks of a plane) in the mean field.

use super::amplification::{FRONTIERS, SHARE, overwrite};
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use ftl::page_map::gc::VictimPolicy;
use machine::spec::Loaded;
use theory::wa::{Spare, d_choices};

const ID: &str = "mqsim.default.waf";
const SYSTEM: &str = "mqsim-default";
/// One chip of one die: planes collect apart. And the whole map in memory: its cache is for all 128 planes.
const ONE_DIE: [&str; 4] = [
    "flash.geometry.channels=1",
    "flash.geometry.ways=1",
    "flash.geometry.dies=1",
    "flash.ftl.mapping=table",
];

/// Half of what the die can do at most, so that collection keeps up. Where the host always writes more, it has precedence, planes
/// come down to the 9 free blocks at which it must wait, and with all other spare blocks in use amplify less.
const PACE: &str = "iodepth=16,rate_iops=100";

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new([ID.to_owned()], rows)]
}

fn rows(context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let planes = format!("flash.geometry.planes={}", context.choose(2, 1));
    let overrides: Vec<String> = ONE_DIE.into_iter().chain([planes.as_str()]).map(str::to_owned).collect();
    let loaded = Loaded::load(SYSTEM, &overrides)?;
    let VictimPolicy::d_choices(policy) = &loaded.drive()?.flash.ftl.gc.victim else {
        return Err(Diagnostic::new(format!("{SYSTEM} does not choose among drawn blocks")));
    };
    let d = policy.d;
    let ran = overwrite(&loaded, PACE, context.choose(1.0, 0.25), context)?;
    let ftl = &ran.0.device().ftl;
    let (shape, limits) = (&ftl.geo.shape, ftl.thresholds);
    let plane = ftl.logical() * SHARE / 100 / u64::from(ftl.geo.groups);
    let closed = u64::from(shape.blocks - limits.start - FRONTIERS);
    let expected = d_choices(shape.pages, Spare::of_units(closed * u64::from(shape.pages), plane), d);
    let row = Row::new(ID, "ratio", expected, ran.amplification(), Rule::Share(0.02))
        .place("theory::wa::d_choices, mean field of B. Van Houdt, SIGMETRICS 2013; no run of MQSim")
        .note(format!(
            "one die, {PACE}, {SHARE} % of the logical space (to which MQSim reduces an occupancy of 100 %), best of {d}, {} blocks \
             kept free of {}; at least {} were",
            limits.start,
            shape.blocks,
            ftl.free_min()
        ));
    Ok(vec![row])
}
