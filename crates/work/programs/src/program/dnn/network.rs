//! A model as an application: its sequence of launches, recorded pass by pass on demand, and the selection of those
//! to execute.

use crate::program::dnn::eager::Eager;
use crate::program::dnn::kernels::{Task, Warp};
use crate::program::dnn::memory::{Pass, lay_out};
use crate::program::dnn::model::Model;
use crate::program::{Code, Emit, Kernel, Params, Space, WarpAt};
use config::{Diagnostic, Place};
use serde::Deserialize;
use std::{ops::Range, path::Path, rc::Rc};

/// A model and its number of inputs.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) model: Rc<dyn Model>,
    pub(crate) inputs: u64,
    /// Number of launches of an input up to the end of each of its passes.
    ends: Vec<u64>,
    /// Maximum bytes of a pass, besides lasting tensors.
    bytes: u64,
}

impl Plan {
    /// Records every pass of an input once, to find its number of kernels and its memory.
    pub(crate) fn new(name: &'static str, model: Box<dyn Model>, inputs: u64) -> Plan {
        let mut plan = Plan { name, model: model.into(), inputs, ends: Vec::new(), bytes: 0 };
        let mut end = 0;
        for number in 0..plan.model.passes() {
            let pass = plan.pass(number);
            end += pass.tasks.len() as u64;
            plan.ends.push(end);
            plan.bytes = plan.bytes.max(pass.bytes);
        }
        plan
    }

    /// Returns the launches of an input.
    pub(crate) fn of_input(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the number of all launches.
    pub(crate) fn count(&self) -> u64 {
        self.of_input() * self.inputs
    }

    /// Returns one pass, laid out from zero up.
    pub(crate) fn pass(&self, number: u32) -> Pass {
        let mut eager = Eager::new(self.model.store());
        self.model.record(number, &mut eager);
        lay_out(eager)
    }

    /// Returns input, pass of the input, and kernel of the pass.
    fn locate(&self, launch: u64) -> (u64, u32, usize) {
        let (input, rest) = (launch / self.of_input(), launch % self.of_input());
        let pass = self.ends.partition_point(|end| *end <= rest);
        let begin = if pass == 0 { 0 } else { self.ends[pass - 1] };
        (input, pass as u32, (rest - begin) as usize)
    }
}

/// The launches of a program without executing it.
pub struct Launches {
    /// Kernels of an input.
    kernels: Vec<Kernel>,
    count: u64,
    next: u64,
    place: usize,
}

impl Launches {
    pub(super) fn new(plan: &Plan) -> Launches {
        let passes = (0..plan.model.passes()).flat_map(|n| plan.pass(n).tasks);
        let kernels = passes.map(|task| task.kernel()).collect();
        Launches { kernels, count: plan.count(), next: 0, place: 0 }
    }
}

impl Iterator for Launches {
    /// Number of the launch in the whole sequence, and its kernel with grid and block.
    type Item = (u64, Kernel);

    fn next(&mut self) -> Option<(u64, Kernel)> {
        if self.next == self.count {
            return None;
        }
        let (number, kernel) = (self.next, self.kernels[self.place]);
        self.next += 1;
        self.place = if self.place + 1 == self.kernels.len() { 0 } else { self.place + 1 };
        Some((number, kernel))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.count - self.next).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

/// The application.
#[derive(Clone)]
pub(crate) struct Network {
    plan: Plan,
    selection: Selection,
    space: Space,
    /// First byte of every lasting tensor, then of the pass's memory.
    bases: Vec<u64>,
    launched: u64,
    /// Recorded pass, and its number.
    pass: Option<(u32, Pass)>,
    task: Option<Task>,
    /// Rows that the current kernel picks, if it is a gather.
    rows: Vec<u32>,
}

impl Network {
    /// Creates an application that executes the selected launches of a plan.
    pub(crate) fn new(plan: Plan, selection: Selection) -> Network {
        let mut space = Space::default();
        let mut bases = Vec::new();
        for tensor in plan.model.store().tensors() {
            let len = tensor.dims.iter().product::<u64>() as usize;
            bases.push(space.array(tensor.name, tensor.width, len.max(1)).address(0));
        }
        let bytes = plan.bytes.max(1) as usize;
        bases.push(space.array("activations", 1, bytes).address(0));
        Network { plan, selection, space, bases, launched: 0, pass: None, task: None, rows: Vec::new() }
    }

    /// Returns the kernel of a launch, with its operands' addresses, and the rows that it picks.
    fn take(&mut self, launch: u64) -> (Task, Vec<u32>) {
        let (input, number, place) = self.plan.locate(launch);
        let recorded = self.pass.take().filter(|(known, _)| *known == number);
        let (_, pass) = self.pass.insert(recorded.unwrap_or_else(|| (number, self.plan.pass(number))));
        let mut task = pass.tasks[place].clone();
        let lasting = self.bases.len() - 1;
        task.bind(|tensor| match self.bases.get(tensor as usize) {
            Some(base) if (tensor as usize) < lasting => *base,
            _ => {
                let n = pass.places.binary_search_by_key(&tensor, |place| place.tensor);
                self.bases[lasting] + pass.places[n.expect("a kernel's tensor has a place")].offset
            }
        });
        let stream = input * u64::from(self.plan.model.passes()) + u64::from(number);
        let rows = if let Task::Gather(gather) = &task { gather.pick(stream) } else { Vec::new() };
        (task, rows)
    }
}

impl Code for Network {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        self.plan.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        let number = self.selection.get(self.launched)?;
        self.launched += 1;
        let (task, rows) = self.take(number);
        let kernel = task.kernel();
        (self.task, self.rows) = (Some(task), rows);
        Some(kernel)
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        let task = self.task.as_ref().expect("a warp is of a kernel");
        task.step(warp, &self.rows, e)
    }
}

// Selection of the launches to execute.

/// Launches, by their numbers in the whole sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    Range(Range<u64>),
    /// Launches in ascending order, without duplicates.
    List(Vec<u64>),
}

/// Content of a file of sampled kernels; further tables and keys belong to the sampler.
#[derive(Deserialize)]
struct Sampled {
    /// Number of kernels of the sampled run.
    kernels: Option<u64>,
    #[serde(default)]
    group: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    samples: Vec<u64>,
}

impl Selection {
    /// Reads the parameters `launches` and `kernels` for a sequence of `count` launches.
    ///
    /// # Errors
    /// If a range or a file cannot be read, both are given, or the sequence lacks the launches.
    pub(crate) fn read(params: &Params, count: u64) -> Result<Selection, Diagnostic> {
        let (range, file) = (params.text("launches"), params.text("kernels"));
        match (range, file) {
            (None, None) => Ok(Selection::Range(0..count)),
            (Some(_), Some(_)) => {
                let both = Diagnostic::new("`launches` and `kernels` both select the launches to execute");
                Err(both.help("give one of them"))
            }
            (Some(text), None) => {
                let bounds =
                    text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                let within = bounds.filter(|(a, b): &(u64, u64)| a < b && *b <= count);
                let allowed = || {
                    params.refused("launches", vec![format!("A..B, from A up to B - 1, within 0..{count}")])
                };
                within.map(|(a, b)| Selection::Range(a..b)).ok_or_else(allowed)
            }
            (None, Some(file)) => Selection::from_file(Path::new(file), count),
        }
    }

    fn from_file(path: &Path, count: u64) -> Result<Selection, Diagnostic> {
        let name = path.display().to_string();
        let place = || Place { source: name.clone(), ..Place::default() };
        let text = std::fs::read_to_string(path)
            .map_err(|e| Diagnostic::new(format!("cannot read `{name}`: {e}")).at(place()))?;
        let sampled: Sampled = toml::from_str(&text).map_err(|e| {
            Diagnostic::new(format!("not a file of sampled kernels: {}", e.message())).at(place())
        })?;
        if let Some(other) = sampled.kernels.filter(|kernels| *kernels != count) {
            let what = format!(
                "the samples are of a run with {other} kernels, but the program has {count} launches"
            );
            return Err(Diagnostic::new(what).at(place()).help("sample the program with these parameters"));
        }
        let mut list: Vec<u64> = sampled.group.into_iter().flat_map(|group| group.samples).collect();
        list.sort_unstable();
        list.dedup();
        match list.last() {
            None => Err(Diagnostic::new("the file of sampled kernels has no samples")
                .at(place())
                .help("`nandscape sample` writes tables [[group]] with samples = [launch, ...]")),
            Some(last) if *last >= count => {
                let what = format!("sample {last} is beyond the end of a program with {count} launches");
                Err(Diagnostic::new(what).at(place()).help("sample the program with these parameters"))
            }
            Some(_) => Ok(Selection::List(list)),
        }
    }

    /// Returns the number of the `n`-th selected launch.
    pub(crate) fn get(&self, n: u64) -> Option<u64> {
        match self {
            Selection::Range(range) => Some(range.start + n).filter(|number| *number < range.end),
            Selection::List(list) => list.get(usize::try_from(n).ok()?).copied(),
        }
    }
}
