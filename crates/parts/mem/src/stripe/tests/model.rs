//! A stripe whose drives do parts in any order, against an array that is one drive.

use super::*;
use proptest::prelude::*;

/// Versions of each sector: a drive, or the whole array as one.
type Versions = Vec<u32>;

const SECTOR: u64 = 512;

#[derive(Clone, Copy, Debug)]
struct Step {
    op: IoOp,
    offset: u64,
    bytes: u64,
    /// How many parts are answered after it, and which first.
    answers: u8,
    pick: u64,
}

fn steps(sectors: u64) -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![
        4 => Just(IoOp::Write),
        4 => Just(IoOp::Read),
        2 => Just(IoOp::Trim),
        1 => Just(IoOp::WriteZeroes),
        1 => Just(IoOp::Flush),
    ];
    let step = (op, 0..sectors, 1u64..60, 0u8..6, any::<u64>());
    let step = step.prop_map(move |(op, at, len, answers, pick)| {
        let (offset, bytes) = (at * SECTOR, len.min(sectors - at) * SECTOR);
        let (offset, bytes) = if op == IoOp::Flush { (0, 0) } else { (offset, bytes) };
        Step { op, offset, bytes, answers, pick }
    });
    proptest::collection::vec(step, 1..150)
}

/// Drives behind a stripe that do parts in any order, beside an array that does each command when it comes.
struct Model {
    stripe: Stripe,
    cx: Cxt,
    drives: Vec<Versions>,
    array: Versions,
    places: Vec<(u16, u64)>,
    /// Parts that no drive has done.
    parts: Vec<(u16, Command)>,
    /// Commands that are not answered: range, what each sector should have held when it came.
    open: BTreeMap<u32, (IoOp, u64, u64, Versions)>,
    /// What parts of reads have found, by array sector.
    found: BTreeMap<(u32, u64), u32>,
    /// The name that each part's tag stands for now.
    named: BTreeMap<u32, u32>,
    version: BTreeMap<u32, u32>,
}

impl Model {
    fn new(chunk: u64, capacities: &[u64]) -> Model {
        let stripe = stripe(chunk, capacities);
        let sectors = stripe.capacity() / SECTOR;
        let dealt = dealt(chunk / SECTOR, capacities.len(), sectors);
        Model {
            drives: capacities.iter().map(|capacity| vec![0; (capacity / SECTOR) as usize]).collect(),
            array: vec![0; sectors as usize],
            places: dealt,
            stripe,
            cx: Cxt::default(),
            parts: Vec::new(),
            open: BTreeMap::new(),
            found: BTreeMap::new(),
            named: BTreeMap::new(),
            version: BTreeMap::new(),
        }
    }

    /// Whether a command has bytes of another that is not answered: their order would be open.
    fn overlaps(&self, step: Step) -> bool {
        self.open
            .values()
            .any(|(_, offset, bytes, _)| step.offset < offset + bytes && *offset < step.offset + step.bytes)
    }

    fn submit(&mut self, name: u32, step: Step) {
        let Step { op, offset, bytes, .. } = step;
        let range = (offset / SECTOR) as usize..((offset + bytes) / SECTOR) as usize;
        match op {
            IoOp::Write => self.array[range.clone()].fill(name + 1),
            IoOp::Trim | IoOp::WriteZeroes => self.array[range.clone()].fill(0),
            IoOp::Read | IoOp::Flush => {}
        }
        self.version.insert(name, if op == IoOp::Write { name + 1 } else { 0 });
        self.open.insert(name, (op, offset, bytes, self.array[range].to_vec()));
        self.stripe.submit(Command::new(name, op, offset, bytes), &mut self.cx);
        let (parts, done) = take(&mut self.cx);
        assert!(done.is_empty());
        for part in &parts {
            self.named.insert(part.1.tag, name);
        }
        self.parts.extend(parts);
    }

    /// A drive does one of the parts.
    fn answer(&mut self, pick: u64) {
        let (member, part) = self.parts.swap_remove((pick % self.parts.len() as u64) as usize);
        let name = self.named[&part.tag];
        let drive = &mut self.drives[usize::from(member)];
        for sector in part.offset / SECTOR..(part.offset + part.bytes) / SECTOR {
            match part.op {
                IoOp::Read => {
                    let at = self.places.iter().position(|place| *place == (member, sector));
                    self.found
                        .insert((name, at.expect("a sector of the array") as u64), drive[sector as usize]);
                }
                _ => drive[sector as usize] = self.version[&name],
            }
        }
        self.stripe.completed(member, answer(part.tag, Status::Success, 0), &mut self.cx);
        self.stripe.check().expect("the accounts hold");
        for completion in take(&mut self.cx).1 {
            self.ended(completion.tag);
        }
    }

    fn ended(&mut self, name: u32) {
        let (op, offset, bytes, expected) = self.open.remove(&name).expect("answered once");
        let still = |(_, part): &(u16, Command)| self.named[&part.tag] == name;
        assert!(!self.parts.iter().any(still), "every part is done");
        let sectors = offset / SECTOR..(offset + bytes) / SECTOR;
        let there: Versions = match op {
            IoOp::Read => sectors.map(|at| self.found[&(name, at)]).collect(),
            _ => {
                let place = |at: u64| self.places[at as usize];
                sectors.map(|at| self.drives[usize::from(place(at).0)][place(at).1 as usize]).collect()
            }
        };
        assert_eq!(there, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_stripe_is_one_drive_whatever_the_order_of_answers(
        steps in steps(96),
        chunk in 1u64..9,
        members in 1usize..6,
    ) {
        // At least 96 sectors together; the last member is larger.
        let each = 96u64.div_ceil(members as u64).next_multiple_of(chunk) * SECTOR;
        let mut capacities = vec![each; members];
        capacities[members - 1] += 3 * SECTOR;
        let mut model = Model::new(chunk * SECTOR, &capacities);
        for (name, step) in steps.iter().enumerate() {
            while model.overlaps(*step) {
                model.answer(step.pick);
            }
            model.submit(name as u32, *step);
            for n in 0..step.answers {
                if !model.parts.is_empty() {
                    model.answer(step.pick.rotate_left(n.into()));
                }
            }
        }
        while !model.parts.is_empty() {
            model.answer(7);
        }
        prop_assert!(model.open.is_empty() && model.stripe.outstanding() == 0);
        // What no command wrote nobody has touched.
        for (at, (member, sector)) in model.places.iter().enumerate() {
            prop_assert_eq!(model.drives[usize::from(*member)][*sector as usize], model.array[at]);
        }
        prop_assert!(model.drives[members - 1][(each / SECTOR) as usize..].iter().all(|v| *v == 0));
        prop_assert_eq!(model.stripe.stats.commands, steps.len() as u64);
    }
}
