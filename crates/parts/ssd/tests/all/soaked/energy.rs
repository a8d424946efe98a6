//! What media spend, against what somebody notes who looks on at every command.

use config::StatePower;
use config::units::{Energy, Power, TransferRate};
use engine::Time;
use nand::dies::observe::{Observer, Tenure};
use nand::dies::op::OpKind;
use nand::dies::timing::Timing;
use nand::energy::FlashEnergySpec;
use net::energy::LinkEnergySpec;
use ssd::soak::{Combination, End, Host, Memory, combinations};
use ssd::spec::{Built, FlashSpec, Programming, timing};
use std::cell::RefCell;
use std::rc::Rc;

const READ: u64 = 1_500_000_000_003;
const PROGRAM: u64 = 90_000_000_000_007;
const ERASE: u64 = 400_000_000_000_011;
const BYTE: u64 = 41_000_013;
const POWERS: [u64; 4] = [1_003, 21_017, 900_001, 3_100_007];

fn spec(combination: &Combination) -> FlashSpec {
    let power =
        |idle: usize| StatePower { idle: Power::new(POWERS[idle]), busy: Power::new(POWERS[idle + 1]) };
    let mut spec = combination.spec();
    // Who looks on sees a command's last transfer only.
    spec.cell.errors = None;
    // A byte in a nanosecond.
    spec.channel.rate = TransferRate::new(1_000_000_000);
    spec.energy = Some(FlashEnergySpec {
        read: vec![Energy::new(READ)],
        program: vec![Energy::new(PROGRAM)],
        erase: Energy::new(ERASE),
        transfer: Energy::new(BYTE),
        die: power(0),
        controller: power(2),
        link: LinkEnergySpec { transfer: Energy::new(0), on: Power::new(1_000) },
    });
    spec
}

/// Planes that have programmed, planes that have erased, and bytes on channels.
#[derive(Default)]
struct Noted {
    programs: u64,
    erases: u64,
    bytes: u64,
}

struct Notes {
    timing: Timing,
    has_registers: bool,
    noted: Rc<RefCell<Noted>>,
}

impl Observer for Notes {
    fn ended(&mut self, tenure: &Tenure) {
        let mut noted = self.noted.borrow_mut();
        let (planes, passes) = (u64::from(tenure.planes), u64::from(self.timing.passes));
        let bytes = |held: Time, overhead: Time| (held - overhead).ps() / 1_000;
        match tenure.kind {
            OpKind::Read if tenure.moved == tenure.ended => {}
            OpKind::Read => {
                noted.bytes += bytes(tenure.ended - tenure.moved, self.timing.data_out.times(planes));
            }
            OpKind::Program => {
                let command = (self.timing.program_command + self.timing.data_in).times(planes * passes);
                noted.programs += planes;
                // What registers hold has come before, by a transfer of its own.
                noted.bytes +=
                    if self.has_registers { 0 } else { bytes(tenure.sent - tenure.started, command) };
            }
            OpKind::CopyBack => noted.programs += planes,
            OpKind::Erase => noted.erases += planes,
        }
    }
}

#[test]
fn media_spend_what_somebody_notes_who_looks_on() {
    for combination in combinations(5).iter().filter(|combination| !combination.tight) {
        let spec = spec(combination);
        let built = Built { seed: 5, name: "soak".into(), fold: combination.fold };
        let mut device =
            combination.filled(spec.build(&built).expect("it can be built"), 5).expect("it fits");
        let timing = timing(&spec.cell, &spec.channel, &device.ftl.geo, &built).expect("times by type");
        let noted = Rc::new(RefCell::new(Noted::default()));
        let has_registers = matches!(combination.memory, Memory::Registers | Memory::ProtectedRegisters);
        let notes = Notes { timing: timing.clone(), has_registers, noted: Rc::clone(&noted) };
        device.backend.observer = Some(Box::new(notes));
        let mut host = Host::new(device, 5, combination.depth);
        assert_eq!((host.drive(2_000), host.failed.as_slice()), (End::Done, &[][..]), "{combination}");

        let (now, device) = (host.now(), &host.device);
        let energy = device.energy(now).expect("the spec says what things cost");
        assert!(energy.conserves(), "{combination}");
        let counters = &device.backend.counters;
        let (program_pages, unit_pages) = (u64::from(timing.program_pages), u64::from(timing.pages_per_unit));
        let pages = counters.senses * unit_pages + counters.copy_backs * program_pages;
        assert_eq!(energy.of("read"), u128::from(pages * READ), "{combination}: {pages} pages read");
        let each = if spec.cell.programming == Programming::page { program_pages } else { 1 };
        let noted = noted.borrow();
        let of = |count: u64, energy: u64| u128::from(count) * u128::from(energy);
        assert_eq!(energy.of("program"), of(noted.programs * each, PROGRAM), "{combination}");
        assert_eq!(energy.of("erase"), of(noted.erases, ERASE), "{combination}");
        let transfers = energy.of("channel transfer");
        let least = of(noted.bytes, BYTE);
        assert!(if has_registers { transfers > least } else { transfers == least }, "{combination}");
        // Each die is idle or at work all the time, and so are the controllers.
        let dies = device.backend.die_busy(now);
        let busy: u64 = dies.iter().map(|time| time.ps()).sum();
        assert_eq!(energy.of("die busy"), of(busy, POWERS[1]), "{combination}");
        assert_eq!(
            energy.of("die idle"),
            of(dies.len() as u64 * now.ps() - busy, POWERS[0]),
            "{combination}"
        );
        let (idle, works) = (energy.of("controller idle"), energy.of("controller busy"));
        let time = idle / u128::from(POWERS[2]) + works / u128::from(POWERS[3]);
        assert_eq!(time, now.ps().into(), "{combination}");
        assert_eq!(energy.of("link on"), of(now.ps(), 1_000), "{combination}");
    }
}

/// Nothing else changes when it is known what things cost.
#[test]
fn energy_changes_no_other_result() {
    for combination in &combinations(6)[..4] {
        let with = |energy: bool| {
            let mut spec = spec(combination);
            spec.energy = spec.energy.filter(|_| energy);
            let built = Built { seed: 6, name: "soak".into(), fold: combination.fold };
            let device =
                spec.build(&built).and_then(|device| combination.filled(device, 6)).expect("it fits");
            let mut host = Host::new(device, 6, combination.depth);
            assert_eq!(host.drive(1_000), End::Done);
            assert_eq!(host.device.energy(host.now()).is_some(), energy);
            (host.digest(), host.device.backend.counters.clone())
        };
        assert_eq!(with(false), with(true), "{combination}");
    }
}
