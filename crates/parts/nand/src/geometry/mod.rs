//! Device geometry: channel, way, die, plane, block, page, and three units that must not be confused.
//!
//! * The **map unit** is the unit of the logical-to-physical map.
//! * The **program unit** is what one program operation writes: pages of one word line of one block.
//! * The **reclaim unit** is what garbage collection frees: a block, the blocks of a die's planes, or of all planes.
//!
//! Numbers are dense: `die = (channel * ways + way) * dies + die`, `plane = die * planes + plane`,
//! `block = plane * blocks + block`, `slot = block * units_per_block + unit`.

mod parity;

pub use parity::Address;

use crate::numbers::FastDiv;
use parity::Sets;
use proto::Slot;

/// Unit that garbage collection frees as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reclaim {
    /// One block of one plane.
    Block,
    /// Blocks of equal number in all planes of a die.
    PlaneSet,
    /// Blocks of equal number in all planes of the device.
    Superblock,
}

/// Digits of a plane's address, for stripe orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Digit {
    /// Channel.
    Channel,
    /// Way: a package on the channel.
    Way,
    /// Die in a package.
    Die,
    /// Plane in a die.
    Plane,
}

impl Digit {
    /// All digits.
    pub const ALL: [Digit; 4] = [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane];

    /// Returns the letter of the digit in a configuration.
    pub fn letter(self) -> char {
        match self {
            Digit::Channel => 'C',
            Digit::Way => 'W',
            Digit::Die => 'D',
            Digit::Plane => 'P',
        }
    }

    /// Returns the digit with a letter.
    pub fn of_letter(letter: char) -> Option<Digit> {
        Digit::ALL.into_iter().find(|digit| digit.letter() == letter)
    }
}

/// Sizes that a device is built from. Every field is a count of at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Number of channels.
    pub channels: u32,
    /// Ways (packages) per channel.
    pub ways: u32,
    /// Dies (LUNs) per package.
    pub dies: u32,
    /// Planes per die.
    pub planes: u32,
    /// Blocks per plane.
    pub blocks: u32,
    /// Pages per block.
    pub pages: u32,
    /// Bytes per page, without the spare area.
    pub page_bytes: u32,
    /// Bytes per map unit.
    pub unit_bytes: u32,
    /// Pages that one program operation writes into a block.
    pub program_pages: u32,
    /// Unit that garbage collection frees as a whole.
    pub reclaim: Reclaim,
    /// Order in which consecutive program units go over the device, fastest digit first.
    pub stripe: [Digit; 4],
    /// True if the dies of a package work in parallel.
    pub interleave: bool,
    /// Data program units protected by one parity unit on a different die; `None` without parity.
    pub parity: Option<u32>,
}

impl Shape {
    /// Returns the number of values of a digit.
    pub fn count(&self, digit: Digit) -> u32 {
        match digit {
            Digit::Channel => self.channels,
            Digit::Way => self.ways,
            Digit::Die => self.dies,
            Digit::Plane => self.planes,
        }
    }
}

/// Shape with everything derived from it.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Shape that the geometry was built from.
    pub shape: Shape,
    /// Dies on the device that can work in parallel. Those of a package that take turns count as one.
    pub die_count: u32,
    /// Planes of such a die.
    pub die_planes: u32,
    /// Planes on the device.
    pub plane_count: u32,
    /// Blocks on the device.
    pub block_count: u64,
    /// Map units per block; parity holds none.
    pub units_per_block: u32,
    /// Map units per program unit.
    pub units_per_program: u32,
    /// Program units per block, without those of parity.
    pub programs_per_block: u32,
    /// Number of planes that one reclaim unit spreads over.
    pub lanes: u32,
    /// Number of groups: sets of planes with their own free list.
    pub groups: u32,
    /// Reclaim units on the device; those of a group are consecutive.
    pub ru_count: u64,
    /// Program units per reclaim unit.
    pub programs_per_ru: u32,
    /// Map units per reclaim unit.
    pub units_per_ru: u32,
    /// Map units on the device.
    pub slots: u64,
    /// Stripe position to group.
    group_of_stripe: Vec<u32>,
    /// Group to stripe position.
    stripe_of_group: Vec<u32>,
    /// Lane to plane, inside a group.
    lane_plane: Vec<u32>,
    plane_lane: Vec<u32>,
    sets: Option<Sets>,
    by_units_per_block: FastDiv,
    by_blocks: FastDiv,
    by_lanes: FastDiv,
    by_groups: FastDiv,
    by_units_per_program: FastDiv,
    by_planes: FastDiv,
    by_page: FastDiv,
    by_units_per_page: FastDiv,
}

impl Geometry {
    /// Derives a geometry from a shape. The caller has checked that every field is at least one, that a map unit
    /// divides a page or is a multiple of it, that program units fill a block, and that sets with parity fill the
    /// device and its blocks.
    pub fn new(shape: Shape) -> Geometry {
        let packages = shape.channels * shape.ways;
        let plane_count = packages * shape.dies * shape.planes;
        let die_count = if shape.interleave { packages * shape.dies } else { packages };
        let die_planes = plane_count / die_count;
        let block_count = u64::from(plane_count) * u64::from(shape.blocks);
        let program_pages = shape.program_pages.max(shape.unit_bytes.div_ceil(shape.page_bytes));
        let shape = Shape { program_pages, ..shape };
        let rows = shape.pages / program_pages;
        let sets = shape.parity.map(|data| Sets::new(data, shape.channels, die_count));
        let programs_per_block = sets.map_or(rows, |sets| sets.data_rows(rows));
        let units_per_program =
            (u64::from(program_pages) * u64::from(shape.page_bytes) / u64::from(shape.unit_bytes)) as u32;
        let units_per_block = programs_per_block * units_per_program;
        let lanes = match shape.reclaim {
            Reclaim::Block => 1,
            Reclaim::PlaneSet => shape.planes,
            Reclaim::Superblock => plane_count,
        };
        let order = planes_in_stripe_order(&shape);
        // Groups in stripe order: the order of their first planes.
        let mut group_of_stripe = Vec::new();
        let mut stripe_of_group = vec![u32::MAX; (plane_count / lanes) as usize];
        for plane in &order {
            let group = plane / lanes;
            if stripe_of_group[group as usize] == u32::MAX {
                stripe_of_group[group as usize] = group_of_stripe.len() as u32;
                group_of_stripe.push(group);
            }
        }
        // Lanes of a group in stripe order; every group has the same order.
        let lane_plane: Vec<u32> = order.iter().filter(|p| *p / lanes == 0).map(|p| p % lanes).collect();
        let mut plane_lane = vec![0; lane_plane.len()];
        for (lane, plane) in lane_plane.iter().enumerate() {
            plane_lane[*plane as usize] = lane as u32;
        }
        Geometry {
            die_count,
            die_planes,
            plane_count,
            block_count,
            units_per_block,
            units_per_program,
            programs_per_block,
            lanes,
            groups: plane_count / lanes,
            ru_count: block_count / u64::from(lanes),
            programs_per_ru: programs_per_block * lanes,
            units_per_ru: units_per_block * lanes,
            slots: block_count * u64::from(units_per_block),
            group_of_stripe,
            stripe_of_group,
            lane_plane,
            plane_lane,
            sets,
            by_units_per_block: FastDiv::new(u64::from(units_per_block)),
            by_blocks: FastDiv::new(u64::from(shape.blocks)),
            by_lanes: FastDiv::new(u64::from(lanes)),
            by_groups: FastDiv::new(u64::from(plane_count / lanes)),
            by_units_per_program: FastDiv::new(u64::from(units_per_program)),
            by_planes: FastDiv::new(u64::from(die_planes)),
            by_page: FastDiv::new(u64::from(shape.page_bytes)),
            by_units_per_page: FastDiv::new(u64::from((shape.page_bytes / shape.unit_bytes).max(1))),
            shape,
        }
    }

    /// Returns the block of a slot, and the unit in it.
    #[inline]
    pub fn block_of_slot(&self, slot: Slot) -> (u64, u32) {
        let (block, unit) = self.by_units_per_block.div_rem(slot.0);
        (block, unit as u32)
    }
    /// Returns the first slot of a block.
    #[inline]
    pub fn first_slot(&self, block: u64) -> Slot {
        Slot(block * u64::from(self.units_per_block))
    }
    /// Returns the block of an address.
    pub fn block_at(&self, at: Address) -> u64 {
        let plane = at.die * self.die_planes + u32::from(at.plane);
        u64::from(plane) * self.by_blocks.get() + u64::from(at.block)
    }
    /// Returns the plane of a block.
    #[inline]
    pub fn plane_of_block(&self, block: u64) -> u32 {
        self.by_blocks.quotient(block) as u32
    }
    /// Returns the die of a plane, and the plane's number in it.
    #[inline]
    pub fn die_of_plane(&self, plane: u32) -> (u32, u32) {
        let (die, plane) = self.by_planes.div_rem(u64::from(plane));
        (die as u32, plane as u32)
    }
    /// Returns the channel of a die.
    #[inline]
    pub fn channel_of_die(&self, die: u32) -> u32 {
        die / (self.die_count / self.shape.channels)
    }
    /// Returns the first page that a unit of a block occupies on a die.
    #[inline]
    fn page_of_unit(&self, die: u32, unit: u32) -> u32 {
        let page = self.by_page.quotient(u64::from(unit) * u64::from(self.shape.unit_bytes)) as u32;
        let Some(sets) = self.sets else { return page };
        let nth = self.by_units_per_program.quotient(u64::from(unit)) as u32;
        page + (sets.row(die, nth) - nth) * self.shape.program_pages
    }
    /// Returns the first page of program unit `nth` of a block on a die.
    pub fn page_of_program(&self, die: u32, nth: u32) -> u32 {
        self.sets.map_or(nth, |sets| sets.row(die, nth)) * self.shape.program_pages
    }
    /// Returns the program unit, within its block, of a slot.
    fn program_of_block(&self, slot: Slot) -> u32 {
        self.by_units_per_program.quotient(u64::from(self.block_of_slot(slot).1)) as u32
    }
    /// Returns the number of pages that one map unit touches.
    #[inline]
    pub fn pages_per_unit(&self) -> u32 {
        self.shape.unit_bytes.div_ceil(self.shape.page_bytes)
    }
    /// Returns a name for the page in which a slot begins: equal for the slots of one page, different for those of two.
    #[inline]
    pub fn page_name(&self, slot: Slot) -> u64 {
        self.by_units_per_page.quotient(slot.0)
    }
    /// Returns the map units per page; one if a unit is as large as a page or larger.
    pub fn units_per_page(&self) -> u32 {
        (self.shape.page_bytes / self.shape.unit_bytes).max(1)
    }
    /// Returns the reclaim unit of a block.
    #[inline]
    pub fn ru_of_block(&self, block: u64) -> u64 {
        if self.lanes == 1 {
            return block;
        }
        let (plane, number) = self.by_blocks.div_rem(block);
        self.by_lanes.quotient(plane) * self.by_blocks.get() + number
    }
    /// Returns the reclaim unit of a slot.
    #[inline]
    pub fn ru_of_slot(&self, slot: Slot) -> u64 {
        self.ru_of_block(self.by_units_per_block.quotient(slot.0))
    }
    /// Returns the group of a reclaim unit.
    #[inline]
    pub fn group_of_ru(&self, ru: u64) -> u32 {
        self.by_blocks.quotient(ru) as u32
    }
    /// Returns the block of a reclaim unit in lane `lane` of its stripe order.
    #[inline]
    pub fn block_of_ru(&self, ru: u64, lane: u32) -> u64 {
        if self.lanes == 1 {
            return ru;
        }
        let (group, number) = self.by_blocks.div_rem(ru);
        let plane = group * u64::from(self.lanes) + u64::from(self.lane_plane[lane as usize]);
        plane * self.by_blocks.get() + number
    }
    /// Returns the plane of lane `lane` of a group.
    pub fn plane_of_lane(&self, group: u32, lane: u32) -> u32 {
        group * self.lanes + self.lane_plane[lane as usize]
    }
    /// Returns all planes of the device, the first digit of `order` changing fastest.
    pub fn planes_in_order(&self, order: [Digit; 4]) -> Vec<u32> {
        planes_in_stripe_order(&Shape { stripe: order, ..self.shape })
    }
    /// Returns the first slot of program unit `index` of a reclaim unit, in fill order.
    #[inline]
    pub fn slot_of_program(&self, ru: u64, index: u32) -> Slot {
        let (row, lane) = self.by_lanes.div_rem(u64::from(index));
        let block = self.block_of_ru(ru, lane as u32);
        Slot(self.first_slot(block).0 + row * u64::from(self.units_per_program))
    }
    /// Inverts [`Geometry::slot_of_program`]: returns the reclaim unit, the program unit in it, and the unit in that.
    pub fn program_of_slot(&self, slot: Slot) -> (u64, u32, u32) {
        let (block, unit) = self.block_of_slot(slot);
        let (row, unit) = self.by_units_per_program.div_rem(u64::from(unit));
        let lane = if self.lanes == 1 {
            0
        } else {
            self.plane_lane[(self.plane_of_block(block) % self.lanes) as usize]
        };
        (self.ru_of_block(block), row as u32 * self.lanes + lane, unit as u32)
    }
    /// Returns the groups with planes on a die.
    pub fn groups_of_die(&self, die: u32) -> std::ops::RangeInclusive<u32> {
        let first = die * self.die_planes;
        first / self.lanes..=(first + self.die_planes - 1) / self.lanes
    }
    /// Returns the die of a group's first plane.
    pub fn first_die_of_group(&self, group: u32) -> u32 {
        self.die_of_plane(group * self.lanes).0
    }
    /// Returns the group at a position of the device's stripe order; positions wrap around.
    #[inline]
    pub fn group_at(&self, position: u64) -> u32 {
        let (_, position) = self.by_groups.div_rem(position);
        self.group_of_stripe[position as usize]
    }
    /// Returns the stripe position of a logical unit: logical space is divided into program units.
    #[inline]
    pub fn stripe_of_unit(&self, unit: u64) -> u64 {
        self.by_units_per_program.quotient(unit)
    }
    /// Returns the place of a logical unit when the logical space is written once, in order, onto the empty device:
    /// group, program unit in the group (counted over its reclaim units), unit in the program unit.
    pub fn sequential_place(&self, unit: u64) -> (u32, u64, u32) {
        let (stripe, in_program) = self.by_units_per_program.div_rem(unit);
        let (nth, position) = self.by_groups.div_rem(stripe);
        (self.group_of_stripe[position as usize], nth, in_program as u32)
    }
    /// Inverts [`Geometry::sequential_place`].
    pub fn sequential_unit(&self, group: u32, nth: u64, in_program: u32) -> u64 {
        let stripe = nth * u64::from(self.groups) + u64::from(self.stripe_of_group[group as usize]);
        stripe * u64::from(self.units_per_program) + u64::from(in_program)
    }
    /// Returns the die, plane, block and page in which a slot begins.
    #[inline]
    pub fn address(&self, slot: Slot) -> Address {
        let (block, unit) = self.block_of_slot(slot);
        let (plane, number) = self.by_blocks.div_rem(block);
        let (die, plane) = self.by_planes.div_rem(plane);
        let die = die as u32;
        Address { die, plane: plane as u8, block: number as u32, page: self.page_of_unit(die, unit) }
    }
    /// Returns the number of map units that the pages of the device would hold without parity.
    pub fn raw_units(&self) -> u64 {
        self.slots + self.parity_programs() * u64::from(self.units_per_program)
    }
    /// Returns the raw capacity in bytes.
    pub fn raw_bytes(&self) -> u64 {
        self.raw_units() * u64::from(self.shape.unit_bytes)
    }
}

/// Returns all planes of the device in stripe order.
fn planes_in_stripe_order(shape: &Shape) -> Vec<u32> {
    let count = |d: Digit| shape.count(d);
    let total = shape.channels * shape.ways * shape.dies * shape.planes;
    (0..total)
        .map(|mut n| {
            let (mut channel, mut way, mut die, mut plane) = (0, 0, 0, 0);
            for digit in shape.stripe {
                let value = n % count(digit);
                n /= count(digit);
                match digit {
                    Digit::Channel => channel = value,
                    Digit::Way => way = value,
                    Digit::Die => die = value,
                    Digit::Plane => plane = value,
                }
            }
            ((channel * shape.ways + way) * shape.dies + die) * shape.planes + plane
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn small(reclaim: Reclaim) -> Shape {
        Shape {
            channels: 2,
            ways: 3,
            dies: 2,
            planes: 2,
            blocks: 8,
            pages: 12,
            page_bytes: 16384,
            unit_bytes: 4096,
            program_pages: 3,
            reclaim,
            stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
            interleave: true,
            parity: None,
        }
    }

    proptest! {
        #[test]
        fn every_program_unit_has_one_place(which in 0usize..3, ru in 0u64..8, index in 0u32..1000) {
            let geo = Geometry::new(small([Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock][which]));
            let ru = ru % geo.ru_count;
            let index = index % geo.programs_per_ru;
            let slot = geo.slot_of_program(ru, index);
            prop_assert_eq!(geo.program_of_slot(slot), (ru, index, 0));
            prop_assert_eq!(geo.ru_of_slot(slot), ru);
        }

        #[test]
        fn sequential_places_are_a_bijection(which in 0usize..3, unit in 0u64..10_000) {
            let geo = Geometry::new(small([Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock][which]));
            let (group, nth, in_program) = geo.sequential_place(unit);
            prop_assert_eq!(geo.sequential_unit(group, nth, in_program), unit);
        }
    }

    #[test]
    fn cwdp_puts_neighbours_on_different_channels() {
        // MQSim's CWDP: channel varies fastest, then way, die, plane.
        let geo = Geometry::new(Shape { program_pages: 1, unit_bytes: 16384, ..small(Reclaim::Block) });
        let plane = |c: u32, w: u32, d: u32, p: u32| ((c * 3 + w) * 2 + d) * 2 + p;
        let order: Vec<u32> = (0..24).map(|n| geo.group_at(n)).collect();
        assert_eq!(order[..3], [plane(0, 0, 0, 0), plane(1, 0, 0, 0), plane(0, 1, 0, 0)]);
        assert_eq!(order[6], plane(0, 0, 1, 0));
        assert_eq!(order[12], plane(0, 0, 0, 1));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..24).collect::<Vec<_>>());
    }

    #[test]
    fn dies_that_take_turns_are_one() {
        let geo = |interleave| Geometry::new(Shape { interleave, ..small(Reclaim::Block) });
        let (apart, together) = (geo(true), geo(false));
        assert_eq!((apart.die_count, together.die_count), (12, 6));
        for slot in (0..apart.slots).step_by(97).map(Slot) {
            let (a, t) = (apart.address(slot), together.address(slot));
            assert_eq!((a.die / 2, a.die as u8 % 2 * 2 + a.plane), (t.die, t.plane));
            assert_eq!((a.block, a.page), (t.block, t.page));
            assert_eq!(apart.channel_of_die(a.die), together.channel_of_die(t.die));
        }
        assert_eq!(together.groups_of_die(5), 20..=23);
    }

    #[test]
    fn units_of_three_sizes() {
        let geo = Geometry::new(small(Reclaim::PlaneSet));
        assert_eq!((geo.units_per_page(), geo.units_per_program, geo.units_per_block), (4, 12, 48));
        assert_eq!((geo.lanes, geo.groups, geo.units_per_ru), (2, 12, 96));
        let large = Geometry::new(Shape { unit_bytes: 65536, program_pages: 1, ..small(Reclaim::Block) });
        assert_eq!((large.pages_per_unit(), large.units_per_program, large.units_per_block), (4, 1, 3));
    }
}
