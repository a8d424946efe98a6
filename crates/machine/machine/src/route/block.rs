//! Routing of block commands, and of their completions.

use crate::parts::pager::Pager;
use crate::parts::{Parts, Target};
use crate::wires::{Sender, Wires};
use engine::{Mutant, planted_nth};
use proto::file::Advice;
use proto::{Batches, Command, Completion};

impl Parts {
    /// Sends a command of a part other than an injector to a drive or a stripe.
    pub(super) fn submit(&mut self, from: Sender, command: Command, wires: &mut Wires) {
        let target = match from {
            Sender::Memory(number) => self.memories[usize::from(number)].drive,
            Sender::Pager(number) => self.pagers[usize::from(number)].drive,
            Sender::Injector(_) | Sender::Stripe(_) | Sender::Host(_) => unreachable!("they say where"),
        };
        self.submit_to(target, from, command, wires);
    }

    /// Sends a command of a part other than an injector to a target.
    fn submit_to(&mut self, target: Target, from: Sender, command: Command, wires: &mut Wires) {
        let command = Command { from: from.port(), ..command };
        match target {
            Target::File { .. } => unreachable!("files are for the injector"),
            Target::Drive(drive) => self.claim(drive, command, wires),
            Target::Stripe(number) => {
                self.stripes[usize::from(number)].stripe.submit(command, &mut wires.at(number));
            }
        }
    }

    /// Handles a host's command for one of its drives, or an order for one of its coprocessors.
    pub(super) fn host_said(&mut self, from: u16, out: linux::path::Out, wires: &mut Wires) {
        match out {
            linux::path::Out::Submit { disk, command } => {
                let target = self.hosts[usize::from(from)].drives[usize::from(disk)];
                self.submit_to(target, Sender::Host(from), command, wires);
            }
            linux::path::Out::Order { tag, device, order } => {
                let number = self.hosts[usize::from(from)].coprocessors[usize::from(device)];
                let coprocessor = &mut self.driven[usize::from(number)].coprocessor;
                coprocessor.order(tag, order, &mut wires.at(number));
            }
            linux::path::Out::Complete(_) => unreachable!("requests are the injector's"),
        }
    }

    /// Sends a command of a part other than an injector to a drive.
    fn claim(&mut self, drive: u16, command: Command, wires: &mut Wires) {
        let at = &mut self.drives[usize::from(drive)];
        at.claimed += i64::from(!planted_nth(Mutant::Unclaimed, 4));
        at.device.submit(command, &mut wires.at(drive));
    }

    /// Sends a command of the injector to a drive or a stripe.
    #[inline]
    pub(crate) fn inject(&mut self, target: u16, command: Command, wires: &mut Wires) {
        match self.targets[usize::from(target)] {
            Target::Drive(drive) => {
                self.drives[usize::from(drive)].device.submit(command, &mut wires.at(drive));
            }
            Target::Stripe(number) => {
                self.stripes[usize::from(number)].stripe.submit(command, &mut wires.at(number));
            }
            Target::File { host, disk, way } => {
                self.hosts[usize::from(host)].host.submit_request(disk, way, command, &mut wires.at(host));
            }
        }
    }

    /// Path of a flow to a host's file.
    #[cold]
    pub(crate) fn open_flow(&mut self, target: u16, flow: u16, batches: Option<Batches>, advice: Advice) {
        if let Target::File { host, disk, way } = self.targets[usize::from(target)] {
            self.hosts[usize::from(host)].host.open_flow(disk, way, flow, batches, advice);
        }
    }

    /// Sends a command of a stripe to one of its drives.
    pub(super) fn striped(&mut self, from: u16, member: u16, command: Command, wires: &mut Wires) {
        let drive = self.stripes[usize::from(from)].drives[usize::from(member)];
        let command = Command { from: Sender::Stripe(from).port(), ..command };
        self.claim(drive, command, wires);
    }

    /// Delivers a drive's completion of a command of a part other than an injector.
    pub(crate) fn completed(&mut self, drive: u16, completion: Completion, wires: &mut Wires) {
        self.drives[usize::from(drive)].claimed -= 1;
        if let Sender::Stripe(number) = Sender::of(completion.to) {
            let member = self.drives[usize::from(drive)].member;
            let stripe = &mut self.stripes[usize::from(number)].stripe;
            return stripe.completed(member, completion, &mut wires.at(number));
        }
        self.answered(completion, wires);
    }

    /// Delivers a completion to a part that is neither an injector nor a stripe.
    pub(crate) fn answered(&mut self, completion: Completion, wires: &mut Wires) {
        self.record(wires.queue.now());
        match Sender::of(completion.to) {
            Sender::Memory(number) => self.memory(number).completed(completion, &mut wires.at(number)),
            Sender::Pager(number) => match self.pager(number) {
                Pager::Paging(paging) => paging.completed(completion, &mut wires.at(number)),
                Pager::Swap(swap) => swap.completed(completion, &mut wires.at(number)),
            },
            Sender::Host(number) => {
                self.hosts[usize::from(number)].host.completed(completion, &mut wires.at(number));
            }
            Sender::Injector(_) | Sender::Stripe(_) => unreachable!("they have their own"),
        }
    }
}
