//! How near random reads come to what the dies allow.

use crate::stand::run;
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use proto::IoOp;

const DEPTHS: &[u32] = &[512, 1024, 4096];
const OVERRIDES: &[&str] = &["flash.die.multi_plane=off"];
/// Least share of the limit, per cent.
const LEAST: f64 = 95.0;
/// Command 295 ns (tCS 20, seven cycles of 25, tWB 100), tR, set-up of data 50 ns, 4 KiB at 800 MB/s.
const SERVICE_NS: f64 = 295.0 + 50_000.0 + 50.0 + 5_120.0;
const DIES: f64 = 32.0;

pub(super) fn cases() -> Vec<Case> {
    let case = |depth: &'static u32| {
        let id = format!("limit.read.qd{depth}");
        let ids = [id.clone()];
        Case::new(ids, move |context| rows(&id, *depth, context))
    };
    DEPTHS.iter().map(case).collect()
}

fn rows(id: &str, depth: u32, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let job = format!(
        "fio:rw=randread,bs=4k,norandommap=1,iodepth={depth},number_ios={}",
        context.choose(1_000_000, 400_000)
    );
    let ran = run(OVERRIDES, true, &job, context)?;
    let share = 100.0 * ran.bytes_per_s(IoOp::Read) / 4096.0 * SERVICE_NS * 1e-9 / DIES;
    let row = Row::new(id, "%", LEAST, share, Rule::AtLeast)
        .place("D16, single-plane random reads: share of 32 dies / (command + tR + data out), 576,940 IOPS")
        .note(format!("{job}; D16 as it is shipped, commands before data; MQSim comes to 85 %, because data before commands makes dies work in step"));
    Ok(vec![row])
}
