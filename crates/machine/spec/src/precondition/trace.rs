//! State `trace`: written in order, then with the writes of a trace, without their times.

use super::session::{Halt, Session};
use config::Diagnostic;
use config::units::Share;
use proto::{IoOp, Lpn};
use requests::trace::{Remap, TraceOptions, TraceReader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most passes: more are taken for a mistake.
const MOST_PASSES: u32 = 1000;

/// Parameters of `trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Path of the trace, in any format that a workload may have.
    pub file: String,
    /// Name of the trace's format; if left out, it is recognised by content.
    pub format: Option<String>,
    /// Treatment of requests beyond the device: `fit`, `error`, `wrap` or `compact`, as in a workload.
    pub remap: String,
    /// Share of the logical space, from its beginning, that is written in order first; zero for none.
    pub share: Share,
    /// Number of passes over the trace, at most 1000.
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
        return Err(Diagnostic::new("the state `trace` needs a trace").help("set file = \"PATH\"").into());
    }
    if !(1..=MOST_PASSES).contains(&params.passes) {
        return Err(Diagnostic::new(format!("{} passes over a trace", params.passes))
            .help(format!("1 to {MOST_PASSES} are allowed"))
            .into());
    }
    if params.share > Share::ZERO {
        session.share(params.share)?;
        session.fill_in_order();
    }
    // Drive writes count the whole logical space: a trace may write anywhere.
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

/// Replays the trace once: units touched by a write are written whole, and a deallocation drops the units that it
/// covers whole.
fn pass(mut trace: TraceReader, unit: u64, session: &mut Session<'_>) -> Result<(), Halt> {
    while let Some(request) = trace.next()? {
        // Reads and deallocations are work too.
        session.worked(1)?;
        let end = request.offset + request.bytes;
        match request.op {
            IoOp::Write | IoOp::WriteZeroes => session.write(request.offset / unit..end.div_ceil(unit))?,
            IoOp::Trim => {
                // Pending data are programmed before the deallocation.
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
