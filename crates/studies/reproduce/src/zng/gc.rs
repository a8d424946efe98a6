//! Fig. 17: what two programs side by side lose or gain while the log blocks of one are merged.
//!
//! The window reaches from the begin of the first merge to the end of the last one, and no further than the program
//! runs in either run: a program that has ended has no rate. A merge that is under way when the run ends reaches to its
//! end.

use super::gpu;
use crate::expected::Figure;
use crate::study::{Entry, Point};
use crate::zng::suite::Suite;
use config::Diagnostic;
use machine::result::{Document, GpuResult};

/// Instructions are recorded often enough: a merge takes milliseconds.
const SERIES: &str = "sim.series=10us";
/// The log blocks of the second program have no page left, those of the first are empty.
const FULL: &str = "memory.direct.mapping.log_filled=[\"0%\", \"100%\"]";

/// A figure's entry; none if it is not of Fig. 17.
pub(super) fn entry(figure: &Figure, suite: &Suite) -> Option<Entry> {
    // Which application is looked at, and the sign of what is told of it.
    let (app, sign) = match figure.id.strip_prefix("zng.gc.")? {
        "back_loss" => (1, -1.0),
        "betw_gain" => (0, 1.0),
        _ => return None,
    };
    let [with, without] = points(suite);
    let entry = compared(figure, with, without, app, sign);
    // That betw stood still had been seen in this row, before the application of a merge was held where it issues.
    Some(if app == 0 { entry.fitted() } else { entry.seen() })
}

/// The run with full log blocks, and the one without.
fn points(suite: &Suite) -> [Point; 2] {
    let without = suite.point("zng", "betw-back", 1, 1).set(SERIES);
    [without.clone().set(FULL), without]
}

/// Cost of merges over the whole run of `back`: the rate of its instructions with merges relative to that without.
pub(super) fn over_the_run(figure: &Figure, suite: &Suite) -> Option<Entry> {
    if figure.id != "zng.gc.back_loss" {
        return None;
    }
    let (figure, [with, without]) = (figure.clone(), points(suite));
    let points = vec![with.clone(), without.clone()];
    let compute = move |found: &crate::study::Found| {
        let rate = |point: &Point| -> Result<f64, Diagnostic> {
            let back = gpu(found.get(point)?)?.applications.get(1);
            back.map(|app| app.ipc).ok_or_else(|| Diagnostic::new("back has not run"))
        };
        let (merging, quiet) = (rate(&with)?, rate(&without)?);
        let note = format!("IPC of back {merging:.5} with merges, {quiet:.5} without");
        Ok(figure.row(100.0 * (1.0 - merging / quiet), note)?.swept())
    };
    Some(Entry::new("zng.gc.back_loss.whole", points, compute))
}

/// By how much the rate of an application differs between two runs in the window of the first one's merges.
fn compared(figure: &Figure, with: Point, without: Point, app: usize, sign: f64) -> Entry {
    let (id, figure, points) = (figure.id.clone(), figure.clone(), vec![with.clone(), without.clone()]);
    let compute = move |found: &crate::study::Found| {
        let (with, without) = (Run::of(found.get(&with)?, app)?, Run::of(found.get(&without)?, app)?);
        let (from, to) = with.merges()?;
        if without.merges().is_ok() {
            return Err(Diagnostic::new("log blocks are merged in the run without full ones too"));
        }
        let to = to.min(with.ended).min(without.ended);
        if to <= from {
            let what = format!(
                "the run has ended ({:.3} ms, without merges {:.3} ms) before the first merge begins ({:.3} ms)",
                with.ended / 1e6,
                without.ended / 1e6,
                from / 1e6
            );
            return Err(Diagnostic::new(what));
        }
        let (merging, quiet) = (with.issued(from, to)?, without.issued(from, to)?);
        if quiet <= 0.0 {
            let what = format!("{} issues nothing from {from} to {to} ns without merges", with.name());
            return Err(Diagnostic::new(what));
        }
        let note = format!(
            "{:.3} to {:.3} ms: {merging:.0} instructions of {} with merges, {quiet:.0} without; {} merges, the last \
             ends at {:.3} ms",
            from / 1e6,
            to / 1e6,
            with.name(),
            with.runs(),
            with.merges()?.1 / 1e6
        );
        figure.row(sign * 100.0 * (merging / quiet - 1.0), note)
    };
    Entry::new(id, points, compute)
}

/// One application of a run.
struct Run<'a> {
    gpu: &'a GpuResult,
    app: usize,
    /// End of the run, ns.
    ended: f64,
}

impl Run<'_> {
    fn of(document: &Document, app: usize) -> Result<Run<'_>, Diagnostic> {
        let gpu = gpu(document)?;
        // One that ends early begins again, until the last has ended.
        let ended = gpu.applications.iter().map(|app| app.ended_ns).collect::<Option<Vec<f64>>>();
        let ended = ended.ok_or_else(|| Diagnostic::new("an application has not ended"))?;
        let ended = ended.into_iter().fold(0.0, f64::max);
        Ok(Run { gpu, app, ended })
    }

    fn name(&self) -> &str {
        &self.gpu.applications[self.app].name
    }

    fn runs(&self) -> u64 {
        self.gpu.memory.behind.direct.as_ref().map_or(0, |direct| direct.gc_runs)
    }

    /// From the begin of the first merge to the end of the last one, ns.
    fn merges(&self) -> Result<(f64, f64), Diagnostic> {
        let direct = self.gpu.memory.behind.direct.as_ref();
        let begun = direct.and_then(|direct| direct.gc_begun_ns);
        let begun = begun.ok_or_else(|| Diagnostic::new("no log block is merged"))?;
        let all_ended = direct.is_some_and(|direct| direct.gc_under_way == 0);
        let ended = direct.and_then(|direct| direct.gc_ended_ns).filter(|_| all_ended);
        Ok((begun, ended.unwrap_or(f64::INFINITY)))
    }

    /// Instructions issued in a time, even inside a window of the series.
    fn issued(&self, from: f64, to: f64) -> Result<f64, Diagnostic> {
        let series = self.gpu.series.as_ref();
        let series = series.ok_or_else(|| Diagnostic::new("instructions were not recorded over time"))?;
        let inside = |window: &machine::parts::complex::InstructionWindow| {
            let (start, end) = (window.start_ns, window.start_ns + window.width_ns);
            let part = (to.min(end) - from.max(start)).max(0.0) / window.width_ns;
            part * window.warp_instructions[self.app] as f64
        };
        Ok(series.iter().map(inside).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Found;
    use std::sync::atomic::AtomicBool;

    /// Flash in 16 planes, with blocks of 64 pages, behind caches that hold next to nothing.
    const TINY: [&str; 21] = [
        "gpu.resident.blocks=4",
        "gpu.kernels=shared",
        "gpu.repeat=false",
        "memory.direct.array.merge_reads=false",
        "memory.direct.transfer=lines",
        "memory.direct.geometry.channels=4",
        "memory.direct.geometry.dies=1",
        "memory.direct.geometry.planes=4",
        "memory.direct.geometry.blocks=64",
        "memory.direct.geometry.pages=64",
        "memory.direct.mapping.group=16",
        "memory.direct.mapping.data_blocks=16",
        "memory.direct.mapping.log_share=1",
        "memory.direct.registers.count=2",
        "memory.direct.controller.count=4",
        "memory.direct.network.mesh.rows=2",
        "memory.direct.network.mesh.columns=2",
        "mmu.table.block.reach=4MiB",
        "l2.parked=0B",
        "l2.sets=4",
        "sim.series=1us",
    ];

    fn figure(id: &str) -> Figure {
        let expected = crate::zng::expected();
        expected.figures().iter().find(|figure| figure.id == id).expect("a figure of the paper").clone()
    }

    fn point() -> Point {
        let workloads = ["bfs1:scale=10", "back:n=1024"].map(str::to_owned).into();
        let point = Point { system: "zng".into(), workloads, seed: 1, ..Point::default() };
        TINY.iter().fold(point, |point, set| point.set(set))
    }

    fn found(points: &[Point]) -> Found {
        let run = |point: &Point| point.run(&AtomicBool::new(false)).map_err(|why| why.one_line());
        Found(points.iter().map(|point| (point.clone(), run(point))).collect())
    }

    #[test]
    fn merges_cost_their_owner_instructions() {
        let (with, without) = (point().set(FULL), point());
        let entry = compared(&figure("zng.gc.back_loss"), with, without, 1, -1.0);
        let row = entry.row(&found(&entry.points));
        let loss = row.measured.unwrap_or_else(|| panic!("{}", row.note));
        assert!(loss > 0.0 && loss <= 100.0, "{loss}: {}", row.note);
    }

    /// With planes of its own, the other application goes on: a few registers of packages are all that the merge takes
    /// from both. Blocks that are stopped must not fill the multiprocessors.
    #[test]
    fn merges_do_not_stop_others() {
        let apart = || point().set("memory.direct.mapping.group=8").set("mmu.table.block.reach=2MiB");
        let entry = compared(&figure("zng.gc.betw_gain"), apart().set(FULL), apart(), 0, 1.0);
        let row = entry.row(&found(&entry.points));
        let gain = row.measured.unwrap_or_else(|| panic!("{}", row.note));
        assert!(gain > -50.0, "{gain}: {}", row.note);
    }

    /// A run without a merge says nothing of merges, not that they cost nothing.
    #[test]
    fn no_merge_is_a_failure() {
        let entry = compared(&figure("zng.gc.back_loss"), point(), point().set("sim.series=2us"), 1, -1.0);
        let row = entry.row(&found(&entry.points));
        assert!(
            row.measured.is_none()
                && row.within == Some(false)
                && row.note.contains("no log block is merged"),
            "{row:?}"
        );
    }

    /// The run that merges are compared with has no merges.
    #[test]
    fn merges_in_both_runs_are_a_failure() {
        let entry = compared(&figure("zng.gc.back_loss"), point().set(FULL), point().set(FULL), 1, -1.0);
        let row = entry.row(&found(&entry.points));
        assert!(row.measured.is_none() && row.note.contains("too"), "{row:?}");
    }

    /// Whatever the cuts, and wherever they lie, all instructions are counted once.
    #[test]
    fn instructions_between_times_add_up() {
        let document = point().run(&AtomicBool::new(false)).expect("it runs");
        for app in 0..2 {
            let run = Run::of(&document, app).expect("a GPU");
            let all = run.gpu.applications[app].work.warp_instructions as f64;
            let cuts = [0.0, 1_234.5, 1_300.0, 20_000.0, 1e12];
            let parts = cuts.windows(2).map(|cut| run.issued(cut[0], cut[1]).expect("a series"));
            let sum: f64 = parts.sum();
            assert!((sum / all - 1.0).abs() < 1e-9, "{sum} of {all}");
        }
    }
}
