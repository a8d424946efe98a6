//! A stripe against RAID 0 written down byte by byte.

use super::*;
use config::units::{Bytes, Duration};
use engine::Recorder;
use proptest::prelude::*;
use proto::Port;
use std::collections::BTreeMap;

fn spec(chunk: u64, submit_ns: u64) -> StripeSpec {
    StripeSpec { chunk: Bytes::new(chunk), submit: Duration::new(Time::from_ns(submit_ns)) }
}

fn stripe(chunk: u64, capacities: &[u64]) -> Stripe {
    Stripe::new(&spec(chunk, 0), capacities).expect("a valid stripe")
}

type Cxt = Recorder<Event, Out>;

/// Messages sent by a stripe: parts, and answers.
fn take(cx: &mut Cxt) -> (Vec<(u16, Command)>, Vec<Completion>) {
    let (mut parts, mut done) = (Vec::new(), Vec::new());
    for (_, out) in cx.sent.drain(..) {
        match out {
            Out::Submit { member, command } => parts.push((member, command)),
            Out::Complete(completion) => done.push(completion),
        }
    }
    (parts, done)
}

fn answer(tag: u32, status: Status, errors: u32) -> Completion {
    Completion { tag, to: Port::default(), status, errors, buffer: BufferState::Unknown }
}

/// RAID 0 by counting: chunks are dealt to the members in turn, each at the first place of its member that is free.
fn dealt(chunk: u64, members: usize, capacity: u64) -> Vec<(u16, u64)> {
    let mut filled = vec![0; members];
    let mut places = Vec::new();
    let mut turn = 0;
    while (places.len() as u64) < capacity {
        for _ in 0..chunk {
            places.push((turn as u16, filled[turn]));
            filled[turn] += 1;
        }
        turn = (turn + 1) % members;
    }
    places
}

#[test]
fn every_byte_is_one_byte_of_one_member_and_back() {
    for (chunk, capacities) in [
        (4u64, vec![40u64, 40, 40]),
        (4, vec![43, 40, 57, 41]),
        (6, vec![60]),
        (5, vec![21, 22]),
        (1, vec![7, 7, 7, 7, 7, 7, 7]),
    ] {
        let stripe = stripe(chunk, &capacities);
        let (members, smallest) = (capacities.len(), *capacities.iter().min().expect("members"));
        assert_eq!(stripe.capacity(), smallest / chunk * chunk * members as u64);
        assert_eq!(stripe.unused(), capacities.iter().sum::<u64>() - stripe.capacity());
        let places = dealt(chunk, members, stripe.capacity());
        let found: Vec<_> = (0..stripe.capacity()).map(|byte| stripe.place(byte)).collect();
        assert_eq!(found, places);
        let mut distinct = found;
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len() as u64, stripe.capacity());
        assert!(distinct.iter().all(|(member, byte)| *byte < capacities[usize::from(*member)]));
    }
}

#[test]
fn a_command_has_one_part_for_each_member_that_it_touches() {
    let (chunk, capacities) = (4, [22u64, 21, 25]);
    let mut stripe = stripe(chunk, &capacities);
    let places = dealt(chunk, capacities.len(), stripe.capacity());
    let mut cx = Cxt::default();
    for offset in 0..stripe.capacity() {
        for bytes in 1..=stripe.capacity() - offset {
            stripe.submit(Command::new(7, IoOp::Write, offset, bytes), &mut cx);
            let (parts, _) = take(&mut cx);
            let mut bytes_of = BTreeMap::<u16, Vec<u64>>::new();
            for (member, byte) in &places[offset as usize..][..bytes as usize] {
                bytes_of.entry(*member).or_default().push(*byte);
            }
            let order: Vec<u16> = parts.iter().map(|part| part.0).collect();
            let mut expected: Vec<u16> = Vec::new();
            for (member, _) in &places[offset as usize..][..bytes as usize] {
                if !expected.contains(member) {
                    expected.push(*member);
                }
            }
            assert_eq!(order, expected, "{offset}+{bytes}");
            for (member, command) in parts {
                let of: Vec<u64> = (command.offset..command.offset + command.bytes).collect();
                assert_eq!(Some(of), bytes_of.remove(&member), "{offset}+{bytes} on {member}");
                stripe.completed(member, answer(command.tag, Status::Success, 0), &mut cx);
            }
            assert_eq!(take(&mut cx).1, [answer(7, Status::Success, 0)]);
        }
    }
    stripe.check().expect("the accounts hold");
}

#[test]
fn a_part_says_what_its_command_says() {
    let mut stripe = stripe(4096, &[1 << 20; 4]);
    let mut cx = Cxt::default();
    let command = Command {
        from: Port(9),
        fua: true,
        queue: 5,
        flow: 6,
        namespace: 3,
        placement: 2,
        priority: 1,
        ..Command::new(77, IoOp::Write, 4096 * 3, 8192)
    };
    stripe.submit(command, &mut cx);
    let (parts, _) = take(&mut cx);
    let tag = parts[0].1.tag;
    let part = |offset| Command { tag, offset, bytes: 4096, ..command };
    assert_eq!(parts, [(3, part(0)), (0, part(4096))]);
    stripe.completed(0, answer(tag, Status::Success, 0), &mut cx);
    assert!(take(&mut cx).1.is_empty());
    stripe.completed(3, answer(tag, Status::Success, 0), &mut cx);
    assert_eq!(take(&mut cx).1, [Completion { to: Port(9), ..answer(77, Status::Success, 0) }]);
}

#[test]
fn members_are_told_their_share_and_the_fullest_is_passed_on() {
    let mut stripe = stripe(4096, &[1 << 20; 4]);
    let mut cx = Cxt::default();
    stripe.submit(Command { announced: 10, ..Command::new(7, IoOp::Write, 0, 3 * 4096) }, &mut cx);
    let (parts, _) = take(&mut cx);
    // A quarter of ten pages, rounded up.
    assert_eq!(parts.iter().map(|(_, part)| part.announced).collect::<Vec<_>>(), [3, 3, 3]);
    let states = [BufferState::Room, BufferState::Full, BufferState::Unknown];
    for ((member, part), buffer) in parts.iter().zip(states) {
        stripe.completed(*member, Completion { buffer, ..answer(part.tag, Status::Success, 0) }, &mut cx);
    }
    assert_eq!(take(&mut cx).1[0].buffer, BufferState::Full);
}

#[test]
fn a_flush_waits_for_every_member() {
    let mut stripe = stripe(4096, &[1 << 20; 5]);
    let mut cx = Cxt::default();
    stripe.submit(Command::new(1, IoOp::Flush, 0, 0), &mut cx);
    let (parts, _) = take(&mut cx);
    assert_eq!(parts.iter().map(|part| part.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(parts.iter().all(|(_, part)| part.op == IoOp::Flush && part.bytes == 0));
    for (n, member) in [3, 0, 4, 1, 2].into_iter().enumerate() {
        assert_eq!(stripe.outstanding(), 1);
        stripe.completed(member, answer(parts[0].1.tag, Status::Success, 0), &mut cx);
        assert_eq!(take(&mut cx).1.len(), usize::from(n == 4));
    }
    assert_eq!(stripe.outstanding(), 0);
}

#[test]
fn the_worst_status_and_all_errors_are_answered() {
    use Status::{Success, UnrecoveredRead, WriteFault};
    for (statuses, worst) in [
        ([Success, UnrecoveredRead, Success], UnrecoveredRead),
        ([WriteFault, UnrecoveredRead, Success], WriteFault),
        ([UnrecoveredRead, Success, WriteFault], WriteFault),
    ] {
        let mut stripe = stripe(4096, &[1 << 20; 3]);
        let mut cx = Cxt::default();
        stripe.submit(Command::new(1, IoOp::Read, 0, 3 * 4096), &mut cx);
        let (parts, _) = take(&mut cx);
        for ((member, part), status) in parts.iter().zip(statuses) {
            stripe.completed(*member, answer(part.tag, status, 2), &mut cx);
        }
        assert_eq!(take(&mut cx).1, [answer(1, worst, 6)]);
        assert_eq!(stripe.stats.failed, 1);
    }
}

#[test]
fn a_sequential_stream_spreads_evenly() {
    let (chunk, members) = (128 << 10, 4u64);
    let mut stripe = stripe(chunk, &[1 << 30; 4]);
    let mut cx = Cxt::default();
    // 4 KiB after 4 KiB over a thousand rows; then whole rows at once.
    for (step, rows) in [(4096, 1000), (chunk * members, 1000)] {
        stripe.reset_stats(Time::ZERO);
        let end = rows * chunk * members;
        for offset in (0..end).step_by(step as usize) {
            stripe.submit(Command::new(0, IoOp::Read, offset, step), &mut cx);
            for (member, part) in take(&mut cx).0 {
                stripe.completed(member, answer(part.tag, Status::Success, 0), &mut cx);
            }
            take(&mut cx);
        }
        let each = MemberStats { commands: rows * chunk / step.min(chunk), bytes: rows * chunk };
        assert_eq!(stripe.stats.members, [each; 4]);
        let commands = end / step;
        let crossed = if step > chunk { commands } else { 0 };
        assert_eq!((stripe.stats.commands, stripe.stats.crossed), (commands, crossed));
        assert_eq!(stripe.stats.parts, 4 * each.commands);
    }
}

#[test]
fn the_software_delays_its_command_and_no_other() {
    let mut stripe = Stripe::new(&spec(4096, 300), &[1 << 20; 2]).expect("a valid stripe");
    let mut cx = Cxt::default();
    for tag in 0..3 {
        stripe.submit(Command::new(tag, IoOp::Read, u64::from(tag) * 4096, 4096), &mut cx);
    }
    assert!(cx.sent.is_empty());
    stripe.check().expect("what waits is accounted for");
    while let Some(event) = cx.queue.pop() {
        stripe.handle(event, &mut cx);
    }
    assert_eq!(cx.sent.iter().map(|sent| sent.0).collect::<Vec<_>>(), [Time::from_ns(300); 3]);
    stripe.check().expect("the accounts hold");
}

#[test]
fn the_time_between_first_and_last_answer_is_counted() {
    let mut stripe = Stripe::new(&spec(4096, 100), &[1 << 20; 2]).expect("a valid stripe");
    let mut cx = Cxt::default();
    stripe.submit(Command::new(0, IoOp::Read, 0, 8192), &mut cx);
    let split = cx.queue.pop().expect("the software's end");
    stripe.handle(split, &mut cx);
    let (parts, _) = take(&mut cx);
    stripe.completed(0, answer(parts[0].1.tag, Status::Success, 0), &mut cx);
    // Another command's time passes.
    stripe.submit(Command::new(1, IoOp::Read, 0, 4096), &mut cx);
    cx.queue.pop();
    stripe.completed(1, answer(parts[0].1.tag, Status::Success, 0), &mut cx);
    assert_eq!(stripe.stats.straggling, Time::from_ns(100));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused =
        |chunk, capacities: &[u64]| Stripe::new(&spec(chunk, 0), capacities).err().map(|error| error.key);
    assert_eq!(refused(4096, &[]).as_deref(), Some("drives"));
    assert_eq!(refused(0, &[1 << 20]).as_deref(), Some("chunk"));
    assert_eq!(refused(8192, &[1 << 20, 4096]).as_deref(), Some("chunk"));
    assert_eq!(refused(4096, &[1 << 60; 32]).as_deref(), Some("drives"));
    assert_eq!(refused(4096, &[1 << 20; 1025]).as_deref(), Some("drives"));
    assert_eq!(refused(4096, &[1 << 20]), None);
}

#[test]
fn the_check_finds_what_is_missing() {
    let mut cx = Cxt::default();
    let broken = |harm: fn(&mut Stripe)| {
        let mut stripe = stripe(4096, &[1 << 20; 2]);
        let mut cx = Cxt::default();
        stripe.submit(Command::new(0, IoOp::Write, 0, 8192), &mut cx);
        stripe.check().expect("the accounts hold");
        harm(&mut stripe);
        stripe.check().expect_err("harm is found")
    };
    assert_eq!(broken(|stripe| stripe.ledger.completed += 1), "1 commands, 1 completed, 1 inside");
    assert_eq!(broken(|stripe| stripe.ledger.parts -= 1), "1 parts, 0 answered, 2 unanswered");
    assert_eq!(
        broken(|stripe| stripe.ledger.parted -= 1),
        "8192 bytes of commands, 8191 of their parts, 0 waiting"
    );
    // Not twice the same part.
    let mut stripe = stripe(4096, &[1 << 20; 2]);
    stripe.submit(Command::new(0, IoOp::Write, 0, 8192), &mut cx);
    stripe.completed(0, answer(0, Status::Success, 0), &mut cx);
    stripe.check().expect("the accounts hold");
}

// A stripe whose drives do parts in any order, against an array that is one drive.

/// Versions of each sector: a drive, or the whole array as one.
type Versions = Vec<u32>;

const SECTOR: u64 = 512;

#[derive(Clone, Copy, Debug)]
struct Step {
    op: IoOp,
    offset: u64,
    bytes: u64,
    /// Number of parts answered after it, and the first of them.
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
    /// Parts not yet done by a drive.
    parts: Vec<(u16, Command)>,
    /// Unanswered commands: range, and the expected contents of each sector at their arrival.
    open: BTreeMap<u32, (IoOp, u64, u64, Versions)>,
    /// Contents found by parts of reads, by array sector.
    found: BTreeMap<(u32, u64), u32>,
    /// Name that each part's tag represents now.
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

    /// Returns true if a command has bytes of another that is not answered: their order would be undefined.
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
        // Sectors that no command wrote are untouched.
        for (at, (member, sector)) in model.places.iter().enumerate() {
            prop_assert_eq!(model.drives[usize::from(*member)][*sector as usize], model.array[at]);
        }
        prop_assert!(model.drives[members - 1][(each / SECTOR) as usize..].iter().all(|v| *v == 0));
        prop_assert_eq!(model.stripe.stats.commands, steps.len() as u64);
    }
}
