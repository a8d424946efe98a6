//! How commands come in and completions go out.

use super::{Active, Device, Event, Out, milestone};
use crate::hostif::nvme::{Arbitration, Nvme};
use ::stats::Milestones;
use kernel::{Cx, Mutant, Snapshot, Time, planted_nth, resource::Pool};
use net::pcie::Link;
use proto::{Command, Completion, INNER, IoOp, Lpn, Status};

/// Bytes of a completion queue entry.
const COMPLETION_BYTES: u64 = 16;

/// How commands reach the device.
#[derive(Clone, Debug)]
pub struct HostParams {
    /// The host's way.
    pub outer: EntranceParams,
    /// The way of a processor inside the drive, if there is one.
    pub inner: Option<EntranceParams>,
    /// Controller cores, which both share.
    pub cores: u32,
    /// Core time a map unit of a command, on top.
    pub unit_cost: Time,
}

/// One way into the device.
#[derive(Clone, Debug)]
pub struct EntranceParams {
    /// The link.
    pub link: Link,
    /// Core time a command.
    pub command_cost: Time,
    /// NVMe queues; without, commands arrive over a memory port after the link's latency.
    pub nvme: Option<NvmeParams>,
    /// Whether the doorbell is folded into the fetch where nothing can come between.
    pub fold: bool,
}

/// NVMe queues.
#[derive(Clone, Debug)]
pub struct NvmeParams {
    /// Submission queues.
    pub queues: u16,
    /// Entries a submission queue.
    pub depth: u32,
    /// Commands that the controller holds at once, over all queues.
    pub in_controller: u32,
    /// Who is fetched next.
    pub arbitration: Arbitration,
    /// Doorbell write to fetch request, beyond the link's latency.
    pub doorbell: Time,
    /// Fetch request to command in the controller, beyond the link's round trip.
    pub fetch: Time,
    /// Completion entry written to host software running.
    pub interrupt: Time,
}

pub(super) struct Host {
    outer: Entrance,
    inner: Option<Entrance>,
    pub(super) cores: Pool,
    unit_cost: Time,
}

/// One way into the device.
struct Entrance {
    link: Link,
    command_cost: Time,
    nvme: Option<Nvme>,
    /// From the doorbell to the controller, and from there until the command has been fetched.
    doorbell: Time,
    fetch: Time,
    interrupt: Time,
    /// Nothing can hold a command back in its submission queue.
    folds: bool,
}

impl Entrance {
    fn new(params: EntranceParams) -> Entrance {
        let latency = params.link.latency();
        let (doorbell, fetch, interrupt) = match &params.nvme {
            Some(n) => (latency + n.doorbell, latency.times(2) + n.fetch, latency + n.interrupt),
            None => (latency, Time::ZERO, latency),
        };
        let never_full = params
            .nvme
            .as_ref()
            .is_none_or(|n| u64::from(n.in_controller) >= u64::from(n.queues) * u64::from(n.depth));
        Entrance {
            command_cost: params.command_cost,
            nvme: params.nvme.map(|n| Nvme::new(n.queues, n.in_controller, n.arbitration)),
            doorbell,
            fetch,
            interrupt,
            folds: params.fold && never_full,
            link: params.link,
        }
    }

    fn save(&self, out: &mut Vec<u8>) {
        let Entrance { link, command_cost: _, nvme, doorbell: _, fetch: _, interrupt: _, folds: _ } = self;
        link.save(out);
        nvme.iter().for_each(|n| n.save(out));
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.link.load(input)?;
        self.nvme.as_mut().map_or(Some(()), |n| n.load(input))
    }
}

impl Host {
    pub(super) fn new(params: HostParams) -> Host {
        Host {
            outer: Entrance::new(params.outer),
            inner: params.inner.map(Entrance::new),
            cores: Pool::new(params.cores.max(1) as usize),
            unit_cost: params.unit_cost,
        }
    }

    /// The way by which commands of a queue come and go.
    #[inline]
    fn way(&mut self, queue: u16) -> &mut Entrance {
        match &mut self.inner {
            Some(inner) if queue & INNER != 0 => inner,
            _ => &mut self.outer,
        }
    }

    /// Data of a read begins its way out over the link of its queue.
    #[inline]
    pub(super) fn data_out(&mut self, queue: u16, now: Time, bytes: u64) {
        self.way(queue).link.to_host(now, bytes);
    }

    /// Appends the state of the links, the cores and the queues' turns; nothing is outstanding.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Host { outer, inner, cores, unit_cost: _ } = self;
        outer.save(out);
        inner.iter().for_each(|inner| inner.save(out));
        cores.save(out);
    }

    /// Replaces it by what a host interface of the same parameters saved; `None` if that is cut short or malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.outer.load(input)?;
        if let Some(inner) = &mut self.inner {
            inner.load(input)?;
        }
        let cores = Pool::load(input).filter(|c| c.len() == self.cores.len())?;
        self.cores = cores;
        Some(())
    }
}

impl Device {
    /// A command enters: the host has written it to its submission queue and rings the doorbell.
    pub fn submit(&mut self, command: Command, cx: &mut impl Cx<Event, Out>) {
        let (next, end) = self.units(&command);
        if next < end {
            // Those between lie in the same lines of the processor's cache, or follow in order.
            self.ftl.prefetch(Lpn(next));
            self.ftl.prefetch(Lpn(end - 1));
        }
        let life = Milestones::new(cx.now());
        let status = Status::Success;
        let active = Active {
            command,
            pending: 0,
            next,
            end,
            status,
            buffered_bytes: 0,
            waits: false,
            merge: None,
            life,
        };
        let id = self.active.insert(active);
        self.ledger.submitted(&self.ftl);
        if self.shadow.is_some() {
            let durable = self.promises_flash(&command);
            if let Some(shadow) = &mut self.shadow {
                shadow.enters(id, &command, durable, &self.ftl);
            }
        }
        let way = self.host.way(command.queue);
        let Some(nvme) = &mut way.nvme else {
            cx.after(way.doorbell, Event::Fetched(id));
            return;
        };
        if way.folds {
            cx.after(way.doorbell + way.fetch, Event::Fetched(id));
        } else {
            nvme.ring(command.queue & !INNER, id, cx.reserve());
            cx.after(way.doorbell, Event::Doorbell(command.queue));
        }
    }

    /// A doorbell write has arrived: one more entry of the queue may be fetched.
    pub(super) fn doorbell(&mut self, queue: u16, cx: &mut impl Cx<Event, Out>) {
        if let Some(nvme) = &mut self.host.way(queue).nvme {
            nvme.arrive(queue & !INNER);
        }
        self.fetch(queue, cx);
    }

    /// Fetches from the queues that lie beside `queue`, as far as the controller has room.
    fn fetch(&mut self, queue: u16, cx: &mut impl Cx<Event, Out>) {
        let way = self.host.way(queue);
        if let Some(nvme) = &mut way.nvme {
            while let Some((id, place)) = nvme.fetch() {
                cx.at_place(place, way.fetch, Event::Fetched(id));
            }
        }
    }

    /// A command has been fetched: a core works on it.
    pub(super) fn fetched(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.life.reach(milestone::SUBMISSION, cx.now());
        let mut cost = self.host.way(active.command.queue).command_cost;
        if self.host.unit_cost > Time::ZERO {
            cost += self.host.unit_cost.times(active.end - active.next);
        }
        if cost == Time::ZERO {
            self.ready(id, cx);
        } else {
            let end = self.host.cores.grant(cx.now(), cost);
            cx.after(end - cx.now(), Event::Ready(id));
        }
    }

    /// The controller knows what to do.
    pub(super) fn ready(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.life.reach(milestone::CONTROLLER, cx.now());
        if self.ftl.is_worn_out() && matches!(active.command.op, IoOp::Write | IoOp::WriteZeroes) {
            active.status = Status::WriteFault;
            self.complete(id, cx);
            return;
        }
        self.look_up_entries(id, cx);
    }

    /// Begins what a command asks for.
    pub(super) fn start(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &self.active[id];
        match active.command.op {
            IoOp::Read => self.start_read(id, cx),
            IoOp::Write => {
                let way = self.host.way(active.command.queue);
                let end = way.link.to_device(cx.now(), active.command.bytes);
                cx.after(end + way.link.latency() - cx.now(), Event::DataIn(id));
            }
            IoOp::Trim | IoOp::WriteZeroes | IoOp::Flush => self.start_dataless(id, cx),
        }
    }

    /// Sends the completion of a command that waits for nothing any more.
    pub(super) fn complete(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        debug_assert_eq!(self.active[id].pending, 0);
        let way = self.host.way(self.active[id].command.queue);
        let bytes = if way.nvme.is_some() { COMPLETION_BYTES } else { 0 };
        let end = way.link.to_host(cx.now(), bytes);
        cx.after(end + way.interrupt - cx.now(), Event::HostDone(id));
    }

    /// The host sees the completion.
    pub(super) fn host_done(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.life.reach(milestone::HOST_TRANSFER, cx.now());
        let status = active.status;
        self.stats.completed(&active.command, status, &active.life, cx.now());
        if planted_nth(Mutant::RecordedTwice, 101) {
            self.stats.completed(&active.command, status, &active.life, cx.now());
        }
        self.ledger.completed += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.leaves(id, status, &self.ftl);
        }
        let errors = u32::from(status != Status::Success);
        cx.emit(Out::Complete(Completion {
            tag: active.command.tag,
            to: active.command.from,
            status,
            errors,
        }));
        let queue = active.command.queue;
        self.active.remove(id);
        let way = self.host.way(queue);
        if let Some(nvme) = &mut way.nvme
            && !way.folds
        {
            nvme.done(queue & !INNER);
            self.fetch(queue, cx);
        }
    }

    /// Time that the host's link has been busy, to the host and to the device, and the controller's cores, up to `now`.
    pub fn host_busy(&self, now: Time) -> ((Time, Time), Time) {
        (self.host.outer.link.busy(now), self.host.cores.busy(now))
    }

    /// Time that the link of a processor inside the drive has been busy, to it and to the device, up to `now`.
    pub fn inner_busy(&self, now: Time) -> Option<(Time, Time)> {
        self.host.inner.as_ref().map(|inner| inner.link.busy(now))
    }
}
