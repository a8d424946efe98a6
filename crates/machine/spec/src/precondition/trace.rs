//! Written in order, then with the writes of a trace, without their times.

use super::session::{Halt, Session};
use config::Diagnostic;
use config::units::Share;
use proto::{IoOp, Lpn};
use requests::trace::{Remap, TraceOptions, TraceReader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Passes beyond this are taken for a mistake.
const MOST_PASSES: u32 = 1000;

/// Parameters of `trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The trace, in any format that a workload may have.
    pub file: String,
    /// Name of its format; left out, it is recognised by content.
    pub format: Option<String>,
    /// What happens to requests beyond the device: `fit`, `error`, `wrap` or `compact`, as in a workload.
    pub remap: String,
    /// Share of the logical space, from its beginning, that is written in order before; zero for none.
    pub share: Share,
    /// How often the trace is gone through, at most 1000 times.
    #[schemars(range(min = 1, max = 1_000))]
    pub passes: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            file: String::new(),
            format: None,
            remap: "fit".into(),
            share: Share::percent(100),
            passes: 1,
        }
    }
}

pub(super) fn apply(params: &Params, session: &mut Session<'_>) -> Result<(), Halt> {
    if params.file.is_empty() {
        return Err(Diagnostic::new("the state `trace` names no trace").help("file = \"PATH\"").into());
    }
    if !(1..=MOST_PASSES).contains(&params.passes) {
        return Err(Diagnostic::new(format!("{} passes of a trace", params.passes))
            .help(format!("1 to {MOST_PASSES} are allowed"))
            .into());
    }
    if params.share > Share::ZERO {
        session.share(params.share)?;
        session.fill_in_order();
    }
    // Drive writes count the whole logical space: a trace goes where it likes.
    session.share(Share::ONE)?;
    let unit = u64::from(session.ftl.geo.shape.unit_bytes);
    let options = TraceOptions {
        format: params.format.clone(),
        remap: params.remap.parse::<Remap>()?,
        capacity: Some(session.ftl.logical() * unit),
        timed: false,
        others: programs::FILES,
        ..TraceOptions::default()
    };
    for _ in 0..params.passes {
        let before = session.done();
        pass(TraceReader::open(&params.file, &options)?, unit, session)?;
        session.amplified_since(before);
    }
    Ok(())
}

/// Units that a write touches are written whole; a deallocation drops those that it covers whole.
fn pass(mut trace: TraceReader, unit: u64, session: &mut Session<'_>) -> Result<(), Halt> {
    while let Some(request) = trace.next()? {
        // Reads and deallocations are work too.
        session.worked(1)?;
        let end = request.offset + request.bytes;
        match request.op {
            IoOp::Write | IoOp::WriteZeroes => session.write(request.offset / unit..end.div_ceil(unit))?,
            IoOp::Trim => {
                // What still waits for its program unit to fill up comes before the deallocation.
                session.finish()?;
                for dropped in request.offset.div_ceil(unit)..end / unit {
                    session.ftl.trim(Lpn(dropped));
                }
            }
            IoOp::Read | IoOp::Flush => {}
        }
    }
    Ok(())
}
