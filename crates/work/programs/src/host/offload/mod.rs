//! A program that has a coprocessor execute kernels on data in files.
//!
//! The coprocessor has no storage. The program reads a part of a file, reorders it, copies it to the driver and sends
//! it, has the kernel's next step executed, receives, copies back, reorders and writes (FlashAbacus, section 3: the
//! execution model of conventional acceleration). One thread does these one after another; if a plan allows data to
//! move during the previous step, a second thread moves it. Several of them ([`OffloadCosts::threads`]) take one
//! instance after another, and so move data during each other's steps. A [`Plan`] determines what is read and sent
//! when; the host determines the time of a call, the coprocessor that of an order.

mod lane;
#[cfg(test)]
mod tests;

pub use lane::{Executed, Phase, Shares, Spent};

use self::lane::{Doing, Place, Slot, Stage, Step};
use super::HostProgram;
use super::server::Served;
use config::units::Bandwidth;
use engine::Time;
use proto::file::{Call, CallError, Fd, FileId, FileSpec, Next, OpenFlags, Program};
use proto::offload::{Action, Order, Plan, Stretch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum bytes of a read or write (`MAX_RW_COUNT`).
const MOST: u64 = 0x7fff_f000;

/// Instances of a plan.
struct Application {
    plan: Plan,
    /// Number of instances.
    instances: u32,
    /// Arrays that are in files, by index in the plan: those that are read or written.
    arrays: Vec<u16>,
    /// Bytes in files before an instance starts.
    input_bytes: u64,
}

impl Application {
    /// Returns the index of an array among those in files.
    fn place(&self, array: u16) -> usize {
        self.arrays.binary_search(&array).expect("arrays that a plan moves are in files")
    }
}

/// Program that offloads kernels.
pub struct Offload {
    name: String,
    applications: Vec<Application>,
    files: Files,
    costs: OffloadCosts,
    /// Number of its coprocessor in the host.
    device: u16,
    /// Application and instance that is begun next.
    next: (usize, u32),
    /// Slots of the instances in progress.
    slots: Vec<Slot>,
    /// Number of threads per slot.
    lanes: usize,
    /// Descriptors per slot: the maximum files of an instance.
    descriptors: usize,
    /// Instances since the window began, including those in progress.
    executed: Vec<Executed>,
    /// Time at which all were offered; none before.
    offered: Option<Time>,
    /// Number of actions done, and of all.
    done: u64,
    all: u64,
    served: Served,
    /// Observer of all activities.
    pub observer: Option<Box<dyn Observer>>,
}

impl Offload {
    /// Creates a program that executes `instances` instances of each plan, in order, on a coprocessor of its host,
    /// with files on one of its drives. An array that instances may share has one file for all instances of a
    /// program, others have one per instance.
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
        let descriptors = applications.iter().map(|at| at.arrays.len()).max().unwrap_or(0);
        Offload {
            name: name.to_owned(),
            all: actions.sum(),
            applications,
            files,
            costs,
            device,
            next: (0, 0),
            slots: (0..costs.threads.max(1)).map(|_| Slot::new(lanes)).collect(),
            lanes,
            descriptors,
            executed: Vec::new(),
            offered: None,
            done: 0,
            served: Served::new(&["kernel"]),
            observer: None,
        }
    }

    /// Returns the slot of a thread, and its index among the threads of the slot.
    fn place(&self, thread: u32) -> Place {
        let thread = thread as usize;
        Place { slot: thread / self.lanes, lane: thread % self.lanes }
    }

    /// Returns the descriptor of a file of a slot's instance.
    fn fd(&self, slot: usize, place: usize) -> Fd {
        Fd((slot * self.descriptors + place) as u16)
    }

    /// Returns the record of a slot's instance.
    fn of(&mut self, slot: usize) -> Option<&mut Executed> {
        self.slots[slot].executed.map(|at| &mut self.executed[at])
    }

    fn push(&mut self, at: Place, phase: Phase, next: Next) {
        self.slots[at.slot].lanes[at.lane].moves.push_back((phase, next));
    }

    fn call(&mut self, at: Place, phase: Phase, call: Call) {
        self.push(at, phase, Next::Call(call));
    }

    fn order(&mut self, at: Place, phase: Phase, order: Order) {
        self.push(at, phase, Next::Order { device: self.device, order });
    }

    /// Begins an instance: it opens its files.
    fn begin(&mut self, slot: usize, now: Time) {
        let at = (self.next.0 as u32, self.next.1);
        (self.slots[slot].at, self.slots[slot].executed) = (self.next, Some(self.executed.len()));
        self.next.1 += 1;
        self.executed.push(Executed::new(at, now));
        for place in 0..self.applications[at.0 as usize].arrays.len() {
            let (fd, file) = (self.fd(slot, place), self.files.of(at, place));
            let flags = OpenFlags::default();
            self.call(Place { slot, lane: 0 }, Phase::Files, Call::Open { fd, file, flags });
        }
        self.slots[slot].stage = Stage::Begins;
    }

    /// Executes the next action of a thread.
    fn act(&mut self, at: Place) {
        self.done += 1;
        let slot = &mut self.slots[at.slot];
        slot.lanes[at.lane].acts = true;
        let application = &self.applications[slot.at.0];
        let (program, action) = (application.plan.program, application.plan.actions[slot.lanes[at.lane].at]);
        match action {
            Action::Load(stretch) => {
                let bytes = stretch.bytes;
                let fd = self.fd(at.slot, application.place(stretch.array));
                for (offset, bytes) in parts(stretch) {
                    self.call(at, Phase::Read, Call::Read { fd, offset, bytes });
                }
                self.compute(at, Phase::Marshal, self.costs.marshalling(bytes));
                self.compute(at, Phase::Copy, self.costs.copying(bytes));
                self.order(at, Phase::Send, Order::Send { bytes });
            }
            Action::Work(step) => self.order(at, Phase::Work, Order::Work { program, step }),
            Action::Store(stretch) => {
                let bytes = stretch.bytes;
                let fd = self.fd(at.slot, application.place(stretch.array));
                self.order(at, Phase::Receive, Order::Receive { bytes });
                self.compute(at, Phase::Copy, self.costs.copying(bytes));
                self.compute(at, Phase::Marshal, self.costs.marshalling(bytes));
                for (offset, bytes) in parts(stretch) {
                    self.call(at, Phase::Write, Call::Write { fd, offset, bytes });
                }
            }
        }
    }

    fn compute(&mut self, at: Place, phase: Phase, time: Time) {
        if time > Time::ZERO {
            self.push(at, phase, Next::Compute(time));
        }
    }

    /// Ends an instance: makes its results durable, closes its files, and removes those not needed any more.
    fn end(&mut self, slot: usize) {
        let (first, instance) = (Place { slot, lane: 0 }, self.slots[slot].at);
        let Application { plan, arrays, .. } = &self.applications[instance.0];
        let about: Vec<(bool, bool)> = arrays
            .iter()
            .map(|array| &plan.arrays[usize::from(*array)])
            .map(|array| (array.is_kept, array.is_kept || array.is_given))
            .collect();
        for (place, (is_kept, _)) in about.iter().enumerate() {
            if *is_kept && self.costs.sync {
                let fd = self.fd(slot, place);
                self.call(first, Phase::Sync, Call::Sync { fd, data_only: false });
            }
        }
        for place in 0..about.len() {
            let fd = self.fd(slot, place);
            self.call(first, Phase::Files, Call::Close { fd });
        }
        for (place, (_, stays)) in about.iter().enumerate() {
            if !stays {
                let file = self.files.of((instance.0 as u32, instance.1), place);
                self.call(first, Phase::Files, Call::Unlink { file });
            }
        }
        self.slots[slot].stage = Stage::Ends;
    }

    /// Records the end of an instance.
    fn ended(&mut self, slot: usize, now: Time) {
        let Slot { at, executed, .. } = self.slots[slot];
        let (offered, bytes) = (self.offered.unwrap_or(now), self.applications[at.0].input_bytes);
        if let Some(at) = executed {
            let executed = &mut self.executed[at];
            executed.ended = Some(now);
            self.served.answered(0, bytes, offered, executed.begun, now);
        }
        self.slots[slot].stage = Stage::New;
    }
}

/// Returns the calls for a stretch: the first byte and the length of each.
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
        (self.slots.len() * self.lanes) as u32
    }

    fn used(&mut self, thread: u32, core: Time) {
        let Place { slot, lane } = self.place(thread);
        let Slot { lanes, executed, .. } = &mut self.slots[slot];
        if let (Some(doing), Some(at)) = (&mut lanes[lane].phase, *executed) {
            doing.core += core;
            self.executed[at].spend(lane, doing.phase, (Time::ZERO, core));
        }
    }

    fn next(&mut self, thread: u32, now: Time) -> Next {
        self.offered.get_or_insert(now);
        self.spent(thread, now);
        let at = self.place(thread);
        let step = self.step(at, now);
        let lane = &mut self.slots[at.slot].lanes[at.lane];
        let (phase, next) = match step {
            Step::Do(phase, next) => (phase, next),
            Step::Wake(other) => return Next::Wake((at.slot * self.lanes + other) as u32),
            Step::Wait => {
                (lane.waits, lane.sleeps) = (Some(now), true);
                return Next::Wait;
            }
            Step::End => return Next::End,
        };
        lane.phase = Some(Doing { phase, since: now, core: Time::ZERO });
        match &next {
            Next::Call(call) => self.served.ask(call),
            Next::Order { order, .. } => {
                if let Some(executed) = self.of(at.slot) {
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
        let stays: Vec<bool> = self.executed.iter().map(|executed| executed.ended.is_none()).collect();
        for slot in &mut self.slots {
            let before = |at: &usize| stays[..*at].iter().filter(|stays| **stays).count();
            slot.executed = slot.executed.filter(|at| stays[*at]).map(|at| before(&at));
        }
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

// Observation of a program that has kernels executed: what it did for which instance when.

/// Activity of a program for an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<'a> {
    /// Phase of the activity.
    pub phase: Phase,
    /// Program that the instance executes.
    pub program: &'a str,
    /// Index of its application in the run.
    pub application: u32,
    /// Index of the instance in the application.
    pub instance: u32,
    /// Index of the program's thread.
    pub thread: u32,
    /// Start time.
    pub from: Time,
    /// End time.
    pub to: Time,
    /// Core time included; the rest is waiting.
    pub core: Time,
}

/// Observer of everything that a program does.
///
/// Observers cannot schedule anything: results are identical bit for bit with and without them.
pub trait Observer {
    /// Reports a finished activity.
    fn done(&mut self, done: &Done<'_>);
}

// Costs of a program on its host that works with a coprocessor.

/// Work of a program on data between files and a coprocessor, on one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OffloadCosts {
    /// Number of passes over all bytes to reorder them for kernels or for files.
    #[schemars(range(min = 0, max = 16))]
    pub passes: u32,
    /// Rate of one such pass, in bytes per second.
    pub marshal: Bandwidth,
    /// Rate of the copy between the program's memory and the driver's, in bytes per second.
    pub copy: Bandwidth,
    /// True if a program makes its written data durable before it ends (`fsync`).
    pub sync: bool,
    /// Number of threads that take one instance after another, each with an equal share of the coprocessor's memory:
    /// one reads a file while a different one has a step executed. With two buffers, each has a second thread that
    /// moves data.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 64))]
    pub threads: u32,
}

fn is_one(threads: &u32) -> bool {
    *threads == 1
}

impl Default for OffloadCosts {
    fn default() -> OffloadCosts {
        OffloadCosts {
            // Chosen: objects are "reconstructed and set in order" once (FlashAbacus, section 2.1); binary arrays, 1 to 4 GB/s.
            passes: 1,
            marshal: Bandwidth::new(2_000_000_000),
            // From memory: memcpy of one core, 5 to 7 GB/s.
            copy: Bandwidth::new(5_000_000_000),
            // A kernel of the rival's opponent waits until what it leaves is on flash.
            sync: true,
            threads: 1,
        }
    }
}

impl OffloadCosts {
    fn marshalling(&self, bytes: u64) -> Time {
        Time::transfer(bytes, self.marshal.bytes_per_s()).times(self.passes.into())
    }

    fn copying(&self, bytes: u64) -> Time {
        Time::transfer(bytes, self.copy.bytes_per_s())
    }
}

// Files of a program, and which instance uses which.

/// Returns the arrays of a plan that have to be in files: those that it loads or stores.
fn filed(plan: &Plan) -> Vec<u16> {
    let mut arrays: Vec<u16> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Load(stretch) | Action::Store(stretch) => Some(stretch.array),
            Action::Work(_) => None,
        })
        .collect();
    arrays.sort_unstable();
    arrays.dedup();
    arrays
}

/// Files of a program, all on one drive.
struct Files {
    drive: u16,
    specs: Vec<FileSpec>,
    /// Files by application and instance.
    ids: Vec<Vec<Vec<FileId>>>,
    /// Files shared by instances, by program and array.
    shared: BTreeMap<(u32, u16), FileId>,
}

impl Files {
    fn new(drive: u16) -> Files {
        Files { drive, specs: Vec::new(), ids: Vec::new(), shared: BTreeMap::new() }
    }

    /// Adds files for some arrays of a plan, for the instances of one more application.
    fn add(&mut self, plan: &Plan, arrays: &[u16], instances: u32) {
        let application = self.ids.len();
        let mut ids = Vec::new();
        for instance in 0..instances {
            let of_instance = arrays.iter().map(|array| {
                let about = &plan.arrays[usize::from(*array)];
                let key = (plan.program, *array);
                if let Some(known) = self.shared.get(&key) {
                    return *known;
                }
                let id = FileId(self.specs.len() as u32);
                let name = match about.is_shared {
                    true => format!("{}/{}", plan.name, about.name),
                    false => format!("{}.{application}.{instance}/{}", plan.name, about.name),
                };
                let bytes = about.is_given.then_some(about.bytes);
                self.specs.push(FileSpec { name, bytes, drive: self.drive });
                if about.is_shared {
                    self.shared.insert(key, id);
                }
                id
            });
            ids.push(of_instance.collect());
        }
        self.ids.push(ids);
    }

    /// Returns the file of an instance's array, by the array's index among those in files.
    fn of(&self, (application, instance): (u32, u32), place: usize) -> FileId {
        self.ids[application as usize][instance as usize][place]
    }
}
