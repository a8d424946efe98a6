//! Accesses of groups to media: pages on dies, and the link in front of the channels.

use super::{Event, GroupsFlash};
use engine::resource::Serial;
use engine::{Cx, Time};
use ftl::page_groups::spec::GroupsSpec;
use ftl::page_groups::{Layout, Logical, Physical, Write};
use nand::dies::Alike;
use nand::dies::op::{Class, Op, OpKind};
use nand::geometry::Address;
use net::Rate;
use net::energy::{LinkEnergySpec, LinkMeter};
use proto::Slot;
use proto::groups::Tell;

/// Purpose of an access to a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// A kernel's read.
    Read { request: u32, logical: Logical },
    /// A kernel's write.
    Write { request: u32, write: Write },
    /// A step of Storengine's.
    Chore(u32),
}

/// Access under way: a group that is read or programmed, or a block that is erased.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) purpose: Purpose,
    /// Group accessed, or the first one of the block.
    pub(super) group: Physical,
    pub(super) class: Class,
    /// Outstanding operations of dies.
    pub(super) left: u32,
    /// End of the link transfers of pages that have left their channels; reads only.
    over: Time,
    /// Time at which the access began.
    pub(super) since: Time,
}

/// Media of operations on groups.
pub(super) struct Media {
    planes: u32,
    blocks: u32,
    pages: u32,
    pub(super) page_bytes: u32,
    /// Pages per group.
    pub(super) group_pages: u32,
    /// Pages that behave alike, of which one is simulated.
    pub(super) alike: Alike,
    /// Number of simulated dies.
    pub(super) dies: u32,
    /// Dies of a channel that a block spans.
    pub(super) spread: u32,
    /// Erase count of each block.
    erases: Vec<u32>,
}

impl Media {
    pub(super) fn new(spec: &GroupsSpec, layout: &Layout, alike: Alike) -> Media {
        let geometry = &spec.geometry;
        Media {
            alike,
            dies: geometry.channels / alike.back_ends * geometry.packages * geometry.dies,
            planes: geometry.planes,
            blocks: geometry.blocks,
            pages: geometry.pages,
            page_bytes: geometry.page.get() as u32,
            group_pages: geometry.channels * geometry.planes,
            spread: layout.metadata_groups() / spec.metadata_pages,
            erases: vec![0; layout.blocks() as usize],
        }
    }

    /// Number of simulated die operations on a group.
    pub(super) fn operations(&self) -> u32 {
        self.group_pages / self.alike.pages()
    }

    /// Bytes of an operation on its channel.
    pub(super) fn operation_bytes(&self) -> u32 {
        self.page_bytes * self.alike.planes
    }

    /// Operation on one page or its block, together with those of other planes if they behave alike.
    fn op(&self, kind: OpKind, class: Class, at: Address, block: u32, owner: u32) -> Op {
        let plane = u64::from(at.die) * u64::from(self.planes) + u64::from(at.plane);
        let place = plane * u64::from(self.blocks) + u64::from(at.block);
        let slot = Slot(place * u64::from(self.pages) + u64::from(at.page));
        let (units, bytes) = if kind == OpKind::Erase { (0, 0) } else { (1, self.operation_bytes()) };
        let mut op = Op::new(kind, class, at, slot, units, bytes, owner);
        op.erases = self.erases[block as usize];
        op
    }
}

/// Link between channels and accelerator, first in, first out in each direction.
pub(super) struct Link {
    rate: Rate,
    /// Direction to the accelerator: a grant for each simulated page, followed by the pages that behave alike.
    pub(super) inward: Serial,
    /// Direction to the channels: one grant per group.
    pub(super) outward: Serial,
    pub(super) meter: Option<Box<LinkMeter>>,
}

impl Link {
    pub(super) fn new(bytes_per_s: u64, energy: Option<&LinkEnergySpec>) -> Link {
        Link {
            rate: Rate::new(bytes_per_s),
            inward: Serial::default(),
            outward: Serial::default(),
            meter: energy.map(|spec| Box::new(LinkMeter::new(spec))),
        }
    }

    /// Service time of consecutive pages.
    pub(super) fn service(&self, bytes: u64, pages: u32) -> Time {
        self.rate.time(bytes).times(pages.into())
    }

    /// Sends consecutive pages to the accelerator; returns the arrival of the last one.
    fn carry_in(&mut self, now: Time, bytes: u64, pages: u32) -> Time {
        let service = self.service(bytes, pages);
        let over = self.inward.grant(now, service);
        self.meter(bytes * u64::from(pages), over - service, over);
        over
    }

    /// Sends a group to the channels; returns its arrival.
    fn carry_out(&mut self, now: Time, bytes: u64) -> Time {
        let service = self.rate.time(bytes);
        let over = self.outward.grant(now, service);
        self.meter(bytes, over - service, over);
        over
    }

    fn meter(&mut self, bytes: u64, from: Time, to: Time) {
        if let Some(meter) = &mut self.meter {
            meter.transfer(bytes, from, to);
        }
    }
}

impl GroupsFlash {
    fn access(&mut self, purpose: Purpose, group: Physical, class: Class, left: u32, now: Time) -> u32 {
        if let Some(meter) = &mut self.backend.meter {
            meter.command_begins(now);
        }
        let name = self.accesses.insert(Access { purpose, group, class, left, over: now, since: now });
        self.accesses.fetch_next();
        name
    }

    /// Starts reading a group.
    pub(super) fn begin_read(&mut self, purpose: Purpose, group: Physical, class: Class, now: Time) {
        let name = self.access(purpose, group, class, self.media.operations(), now);
        self.queue(name, OpKind::Read, now);
    }

    /// Starts the transfer of a group to the channels, where it is programmed.
    pub(super) fn begin_program(
        &mut self,
        purpose: Purpose,
        group: Physical,
        class: Class,
        cx: &mut impl Cx<Event, Tell>,
    ) {
        let now = cx.now();
        let name = self.access(purpose, group, class, self.media.operations(), now);
        let bytes = self.layout().group_bytes();
        let over = self.link.carry_out(now, bytes);
        cx.after(over - now, Event::Crossed(name));
    }

    /// Programs a group that has reached the channels.
    pub(super) fn program(&mut self, name: u32, now: Time) {
        self.queue(name, OpKind::Program, now);
    }

    fn queue(&mut self, name: u32, kind: OpKind, now: Time) {
        let Access { group, class, .. } = self.accesses[name];
        let block = self.layout().block_of(group).0;
        // Channel by channel.
        for page in self.visor.layout().pages(group).take(self.media.operations() as usize) {
            self.backend.enqueue(now, self.media.op(kind, class, page, block, name));
            self.backend.ops.fetch_next();
        }
    }

    /// Starts erasing a block.
    pub(super) fn begin_erase(&mut self, purpose: Purpose, block: u32, now: Time) {
        let left = self.media.operations() * self.media.spread;
        let name = self.access(purpose, self.layout().group(block, 0), Class::Erase, left, now);
        let dies = self.media.dies;
        let each = self.media.alike.planes as u8;
        let simulated = |page: &Address| page.die < dies && page.plane.is_multiple_of(each);
        for page in self.visor.layout().erase(block).filter(simulated) {
            self.backend.enqueue(now, self.media.op(OpKind::Erase, Class::Erase, page, block, name));
        }
        self.media.erases[block as usize] += 1;
    }

    /// Completes a die's part of an access; data read crosses the link.
    pub(super) fn page_done(&mut self, op: u32, cx: &mut impl Cx<Event, Tell>) {
        let Op { owner, kind, .. } = self.backend.ops[op];
        self.backend.ops.remove(op);
        let now = cx.now();
        let access = &mut self.accesses[owner];
        access.left -= 1;
        if kind == OpKind::Read {
            access.over = self.link.carry_in(now, self.media.page_bytes.into(), self.media.alike.pages());
        }
        if access.left > 0 {
            return;
        }
        if kind == OpKind::Read {
            let wait = access.over - now;
            cx.after(wait, Event::Arrived(owner));
        } else {
            self.access_done(owner, cx);
        }
    }

    /// Completes an access.
    pub(super) fn access_done(&mut self, name: u32, cx: &mut impl Cx<Event, Tell>) {
        let access = self.accesses[name];
        self.accesses.remove(name);
        if let Some(meter) = &mut self.backend.meter {
            meter.command_ends(cx.now());
        }
        match access.purpose {
            Purpose::Read { request, logical } => self.group_read(request, logical, &access, cx),
            Purpose::Write { request, write } => self.group_written(request, write, &access, cx),
            Purpose::Chore(chore) => self.performed(chore),
        }
    }
}
