//! A program that has a coprocessor execute kernels on data that are in files.
//!
//! The coprocessor has no storage: the program reads a part of a file, brings it into order, copies it to the driver and sends it, has the kernel's next step
//! executed, receives, copies back, brings into order and writes (FlashAbacus, section 3: the execution model of conventional acceleration). One thread does one
//! thing after another; where a plan lets what is moved be moved beside the step before, a second one moves it. What is read and sent when is a [`Plan`]'s business; what
//! a call takes is the host's, what an order takes the coprocessor's.

mod costs;
mod files;
mod lane;
pub mod observe;
mod spent;
#[cfg(test)]
mod tests;

pub use costs::OffloadCosts;
pub use spent::{Executed, Phase, Shares, Spent};

use self::files::{Files, filed};
use self::lane::{Doing, Lane, Stage, Step};
use self::observe::Observer;
use super::HostProgram;
use super::served::Served;
use kernel::Time;
use proto::file::{Call, CallError, Fd, FileSpec, Next, OpenFlags, Program};
use proto::offload::{Action, Order, Plan, Stretch};

/// Bytes of a read or write at most (`MAX_RW_COUNT`).
const MOST: u64 = 0x7fff_f000;

/// Instances of a plan, executed one after another.
struct Application {
    plan: Plan,
    /// How many.
    instances: u32,
    /// Arrays that are in files, by their places in the plan: those that are read or written.
    arrays: Vec<u16>,
    /// Bytes of what is in files before an instance starts.
    input_bytes: u64,
}

impl Application {
    /// The descriptor of an array's file.
    fn fd(&self, array: u16) -> Fd {
        let place = self.arrays.binary_search(&array).expect("arrays that a plan moves are in files");
        Fd(place as u16)
    }
}

/// The program.
pub struct Offload {
    name: String,
    applications: Vec<Application>,
    files: Files,
    costs: OffloadCosts,
    /// Which coprocessor of its host.
    device: u16,
    /// The application and the instance under way.
    at: (usize, u32),
    stage: Stage,
    /// Its threads: one, or one that has steps executed and one that moves data.
    lanes: Vec<Lane>,
    /// Instances since the window began; the last may be under way.
    executed: Vec<Executed>,
    /// When all were offered; none before.
    offered: Option<Time>,
    /// Actions that are done, and all there are.
    done: u64,
    all: u64,
    served: Served,
    /// Looks on at everything that is done.
    pub observer: Option<Box<dyn Observer>>,
}

impl Offload {
    /// A program that executes so many instances of each plan, in order, on a coprocessor of its host, with files on one of its drives. Of an array that instances may
    /// share there is one file for all instances of a program, of others one for each.
    pub fn new(
        name: &str,
        plans: Vec<(Plan, u32)>,
        costs: OffloadCosts,
        (device, drive): (u16, u16),
    ) -> Offload {
        let applications = plans.into_iter().map(|(plan, instances)| {
            let given = plan.arrays.iter().filter(|array| array.is_given);
            let input_bytes = given.map(|array| array.bytes).sum();
            Application { arrays: filed(&plan), instances, input_bytes, plan }
        });
        let applications: Vec<Application> = applications.collect();
        let mut files = Files::new(drive);
        for application in &applications {
            files.add(&application.plan, &application.arrays, application.instances);
        }
        let actions = applications.iter().map(|at| at.plan.actions.len() as u64 * u64::from(at.instances));
        let lanes = 1 + usize::from(applications.iter().any(|at| at.plan.ahead));
        Offload {
            name: name.to_owned(),
            all: actions.sum(),
            applications,
            files,
            costs,
            device,
            at: (0, 0),
            stage: Stage::New,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            executed: Vec::new(),
            offered: None,
            done: 0,
            served: Served::new(&["kernel"]),
            observer: None,
        }
    }

    fn call(&mut self, lane: usize, phase: Phase, call: Call) {
        self.lanes[lane].moves.push_back((phase, Next::Call(call)));
    }

    fn order(&mut self, lane: usize, phase: Phase, order: Order) {
        self.lanes[lane].moves.push_back((phase, Next::Order { device: self.device, order }));
    }

    /// An instance begins: it opens its files.
    fn begin(&mut self, now: Time) {
        let at = (self.at.0 as u32, self.at.1);
        self.executed.push(Executed::new(at, now));
        for place in 0..self.applications[self.at.0].arrays.len() {
            let (fd, file) = (Fd(place as u16), self.files.of(at, place));
            self.call(0, Phase::Files, Call::Open { fd, file, flags: OpenFlags::default() });
        }
        self.stage = Stage::Begins;
    }

    /// A thread does its next action.
    fn act(&mut self, lane: usize) {
        self.done += 1;
        self.lanes[lane].acts = true;
        let action = self.lanes[lane].at;
        let application = &self.applications[self.at.0];
        let (program, action) = (application.plan.program, application.plan.actions[action]);
        match action {
            Action::Load(stretch) => {
                let bytes = stretch.bytes;
                let fd = application.fd(stretch.array);
                for (offset, bytes) in parts(stretch) {
                    self.call(lane, Phase::Read, Call::Read { fd, offset, bytes });
                }
                self.compute(lane, Phase::Marshal, self.costs.marshalling(bytes));
                self.compute(lane, Phase::Copy, self.costs.copying(bytes));
                self.order(lane, Phase::Send, Order::Send { bytes });
            }
            Action::Work(step) => self.order(lane, Phase::Work, Order::Work { program, step }),
            Action::Store(stretch) => {
                let bytes = stretch.bytes;
                let fd = application.fd(stretch.array);
                self.order(lane, Phase::Receive, Order::Receive { bytes });
                self.compute(lane, Phase::Copy, self.costs.copying(bytes));
                self.compute(lane, Phase::Marshal, self.costs.marshalling(bytes));
                for (offset, bytes) in parts(stretch) {
                    self.call(lane, Phase::Write, Call::Write { fd, offset, bytes });
                }
            }
        }
    }

    fn compute(&mut self, lane: usize, phase: Phase, time: Time) {
        if time > Time::ZERO {
            self.lanes[lane].moves.push_back((phase, Next::Compute(time)));
        }
    }

    /// An instance makes durable what it leaves, closes its files, and removes those that nobody wants.
    fn end(&mut self) {
        let Application { plan, arrays, .. } = &self.applications[self.at.0];
        let about: Vec<(bool, bool)> = arrays
            .iter()
            .map(|array| &plan.arrays[usize::from(*array)])
            .map(|array| (array.is_kept, array.is_kept || array.is_given))
            .collect();
        for (place, (is_kept, _)) in about.iter().enumerate() {
            if *is_kept && self.costs.sync {
                self.call(0, Phase::Sync, Call::Sync { fd: Fd(place as u16), data_only: false });
            }
        }
        for place in 0..about.len() {
            self.call(0, Phase::Files, Call::Close { fd: Fd(place as u16) });
        }
        for (place, (_, stays)) in about.iter().enumerate() {
            if !stays {
                let file = self.files.of((self.at.0 as u32, self.at.1), place);
                self.call(0, Phase::Files, Call::Unlink { file });
            }
        }
        self.stage = Stage::Ends;
    }

    /// An instance is over.
    fn ended(&mut self, now: Time) {
        let (offered, bytes) = (self.offered.unwrap_or(now), self.applications[self.at.0].input_bytes);
        if let Some(executed) = self.executed.last_mut() {
            executed.ended = Some(now);
            self.served.answered(0, bytes, offered, executed.begun, now);
        }
        self.at.1 += 1;
        self.stage = Stage::New;
    }
}

/// The calls that a stretch takes: the first byte and the length of each.
fn parts(Stretch { first, bytes, .. }: Stretch) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes.div_ceil(MOST)).map(move |part| (first + part * MOST, (bytes - part * MOST).min(MOST)))
}

impl Program for Offload {
    fn name(&self) -> &str {
        &self.name
    }

    fn files(&self) -> Vec<FileSpec> {
        self.files.specs.clone()
    }

    fn threads(&self) -> u32 {
        self.lanes.len() as u32
    }

    fn used(&mut self, thread: u32, core: Time) {
        let doing = &mut self.lanes[thread as usize].phase;
        if let (Some(doing), Some(executed)) = (doing, self.executed.last_mut()) {
            doing.core += core;
            executed.spend(thread, doing.phase, (Time::ZERO, core));
        }
    }

    fn next(&mut self, thread: u32, now: Time) -> Next {
        self.offered.get_or_insert(now);
        self.spent(thread, now);
        let lane = thread as usize;
        let (phase, next) = match self.step(lane, now) {
            Step::Do(phase, next) => (phase, next),
            Step::Wake(other) => return Next::Wake(other),
            Step::Wait => {
                self.lanes[lane].waits = Some(now);
                self.lanes[lane].sleeps = true;
                return Next::Wait;
            }
            Step::End => return Next::End,
        };
        self.lanes[lane].phase = Some(Doing { phase, since: now, core: Time::ZERO });
        match &next {
            Next::Call(call) => self.served.ask(call),
            Next::Order { order, .. } => {
                if let Some(executed) = self.executed.last_mut() {
                    executed.ordered(order);
                }
            }
            _ => {}
        }
        next
    }

    fn failed(&mut self, _: u32, error: CallError) {
        self.served.fail(error);
    }
}

impl HostProgram for Offload {
    fn reset_stats(&mut self, now: Time) {
        self.executed.retain(|executed| executed.ended.is_none());
        self.served.reset(now);
    }

    fn measured(&self) -> &Served {
        &self.served
    }

    fn progress(&self) -> Option<f64> {
        Some(if self.all == 0 { 1.0 } else { self.done as f64 / self.all as f64 })
    }

    fn executed(&self) -> &[Executed] {
        &self.executed
    }
}
