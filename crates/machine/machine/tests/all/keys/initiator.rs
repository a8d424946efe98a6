//! A GPU that reaches its flash device by itself, inside the drive.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{BACK, Bench, Case, DRIVES, INSIDE, LONG_BACK};
use machine::{
    Loaded,
    precondition::{Precondition, apply, parse},
    run::Plan,
    state::{State, StateSpec},
};
use ssd::Device;
use std::collections::BTreeSet;

const SLAT: &str = "/io/read/slat_ns/mean";
const CONTROLLER: &str = "/breakdown_ns/load/controller";
const BUFFER: &str = "/breakdown_ns/load/buffer";

const PCIE: &[&str] = &[
    "flash.inner.link={ pcie = { generation = 3, lanes = 4, max_payload = \"256B\", latency = \"250ns\" } }",
];
/// Few commands at once get into the controller, from four queues.
const WEIGHTED: &[&str] = &[
    "memory.initiator.queues=4",
    "memory.initiator.depth=64",
    "flash.inner.nvme={ queues = 4, depth = 64, in_controller = 2, doorbell = \"0us\", fetch = \"0us\", interrupt = \"0us\", arbitration = { weighted = { burst = 1, high = 8, medium = 4, low = 2, classes = [1, 2, 3, 3] } } }",
];
const QUEUES: &[&str] = &[
    "memory.initiator.queues=2",
    "memory.initiator.depth=64",
    "flash.inner.nvme={ queues = 4, depth = 64, in_controller = 4, doorbell = \"0us\", fetch = \"0us\", interrupt = \"0us\", arbitration = { round_robin = { burst = 1 } } }",
];

/// Room for all commands.
const ROOMY: &[&str] = &[
    "memory.initiator.queues=2",
    "memory.initiator.depth=64",
    "flash.inner.nvme={ queues = 4, depth = 64, in_controller = 1024, doorbell = \"0us\", fetch = \"0us\", interrupt = \"0us\", arbitration = { round_robin = { burst = 1 } } }",
];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "memory.initiator.entrance",
        context: &[],
        jobs: BACK,
        values: &["host", "inner"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "memory.initiator.dispatch_time",
        context: &[],
        jobs: BACK,
        values: &["0ns", "5ns", "100ns"],
        predicted: Rises(CONTROLLER),
    },
    Case {
        key: "memory.initiator.queues",
        context: &["memory.initiator.depth=1"],
        jobs: BACK,
        values: &["1", "2", "8"],
        predicted: Falls(SLAT),
    },
    Case {
        key: "memory.initiator.depth",
        context: &["memory.initiator.queues=1"],
        jobs: BACK,
        values: &["1", "2", "8"],
        predicted: Falls(SLAT),
    },
    Case {
        key: "memory.initiator.gather.capacity",
        context: &[],
        jobs: LONG_BACK,
        values: &["32KiB", "1MiB"],
        predicted: Falls("/gpu/0/memory/initiator/evictions"),
    },
    Case {
        key: "memory.initiator.gather.ways",
        context: &["memory.initiator.gather.capacity=32KiB"],
        jobs: LONG_BACK,
        values: &["1", "2", "4"],
        predicted: Differ,
    },
    Case {
        key: "memory.initiator.gather.latency",
        context: &[],
        jobs: BACK,
        values: &["0ns", "10ns", "1us"],
        predicted: Rises(BUFFER),
    },
    Case {
        key: "flash.inner.link",
        context: PCIE,
        jobs: BACK,
        values: &["{ pcie = {} }", "{ plain = { bandwidth = \"100MB/s\", latency = \"0us\" } }"],
        predicted: Rises("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.pcie.generation",
        context: PCIE,
        jobs: BACK,
        values: &["1", "3", "5"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.pcie.lanes",
        context: PCIE,
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.pcie.max_payload",
        context: PCIE,
        jobs: BACK,
        values: &["128B", "256B", "512B"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.pcie.latency",
        context: PCIE,
        jobs: BACK,
        values: &["0ns", "250ns", "1us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.link.pcie.flow_control",
        context: PCIE,
        jobs: BACK,
        values: &["0%", "8.07%", "50%"],
        predicted: Rises("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.plain.bandwidth",
        context: &[],
        jobs: BACK,
        values: &["100MB/s", "1GB/s", "16GB/s"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.plain.latency",
        context: &[],
        jobs: BACK,
        values: &["0ns", "1us", "5us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.command",
        context: &[],
        jobs: BACK,
        values: &["0us", "1us", "5us"],
        predicted: Rises("/breakdown_ns/read/controller"),
    },
    // Without queues of its own a command is in the controller after the link's latency.
    Case {
        key: "flash.inner.nvme.queues",
        context: QUEUES,
        jobs: BACK,
        values: &["4", "1"],
        predicted: RefusedAfterFirst("2 is more than the device has: 1"),
    },
    Case {
        key: "flash.inner.nvme.depth",
        context: QUEUES,
        jobs: BACK,
        values: &["64", "8"],
        predicted: RefusedAfterFirst("64 is more than the device has: 8"),
    },
    Case {
        key: "flash.inner.nvme.in_controller",
        context: QUEUES,
        jobs: BACK,
        values: &["1", "4", "64"],
        predicted: Falls("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.nvme.doorbell",
        context: ROOMY,
        jobs: BACK,
        values: &["0us", "5us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.nvme.fetch",
        context: ROOMY,
        jobs: BACK,
        values: &["0us", "5us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.nvme.interrupt",
        context: ROOMY,
        jobs: BACK,
        values: &["0us", "5us"],
        predicted: Rises("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.nvme.arbitration",
        context: WEIGHTED,
        jobs: BACK,
        values: &["{ weighted = {} }", "{ round_robin = { burst = 1 } }"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.round_robin.burst",
        context: QUEUES,
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.burst",
        context: WEIGHTED,
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.high",
        context: WEIGHTED,
        jobs: BACK,
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.medium",
        context: WEIGHTED,
        jobs: BACK,
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.low",
        context: WEIGHTED,
        jobs: BACK,
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.classes",
        context: WEIGHTED,
        jobs: BACK,
        values: &["[1, 2, 3, 3]", "[3, 2, 1, 1]"],
        predicted: Differ,
    },
];

// The digest of a state leaves keys out: those that preconditioning does not see. Each key of `flash` is changed here.

/// States that ask much of a device: collection, wear and frontiers in step; a fill.
const STATES: [&str; 2] = ["zipf:share=70%,writes=1", "interleaved"];

/// A value of a case, whose device is to be brought into a state.
struct Tried {
    value: String,
    plan: Plan,
    loaded: Loaded,
    digest: String,
}

/// The values of a case that are not refused.
fn tried(bench: &Bench, case: &Case, state: &str) -> Vec<Tried> {
    let of = |value: &&str| {
        let own = format!("{}={value}", case.key);
        let set = bench.set.iter().copied().flatten().chain(case.context).copied().chain([own.as_str()]);
        let mut plan = set.fold(Plan::new(bench.system, ""), |plan, set| plan.set(set));
        plan.precondition = Some(parse(state).expect("a state"));
        let loaded = Loaded::load(&plan.system, &plan.set).ok()?;
        let digest = StateSpec::of(&plan, &loaded, 0).expect("no trace").digest();
        Some(Tried { value: own, plan, loaded, digest })
    };
    case.values.iter().filter_map(of).collect()
}

impl Tried {
    fn device(&self) -> Device {
        self.loaded.device(self.plan.seed).expect("a device")
    }

    fn precondition(&self) -> &Precondition {
        self.plan.precondition.as_ref().expect("it was given")
    }

    /// The device that makes its state, and the state; `None` where it does not fit.
    fn made(&self) -> Option<(Device, State)> {
        let mut device = self.device();
        let flash = self.loaded.drive().expect("a drive").flash;
        let report = apply(self.precondition(), flash, &mut device.ftl, self.plan.seed).ok()?;
        device.format_map();
        let state = State::save(&report, &device);
        Some((device, state))
    }
}

fn whole(device: &Device) -> Vec<u8> {
    let mut bytes = Vec::new();
    device.save(&mut bytes).expect("an idle device");
    bytes
}

/// Whether values of a case share a digest; a fault if their states are not the same byte for byte, or a device that takes the
/// state of another value is not the one that makes its own.
fn shares(bench: &Bench, case: &Case) -> Result<bool, String> {
    let mut shared = false;
    for state in STATES {
        let mut tried = tried(bench, case, state).into_iter();
        while let Some(first) = tried.next() {
            let alike: Vec<&Tried> =
                tried.as_slice().iter().filter(|other| other.digest == first.digest).collect();
            let Some((_, state)) = (if alike.is_empty() { None } else { first.made() }) else { continue };
            for other in alike {
                let Some((made, own)) = other.made() else {
                    return Err(format!(
                        "{}: the state is not reached, though that of {} is",
                        other.value, first.value
                    ));
                };
                let mut taking = other.device();
                state.load(other.precondition(), &mut taking).map_err(|fault| fault.to_string())?;
                if own != state || whole(&made) != whole(&taking) {
                    return Err(format!("{} and {}: one digest, two states", first.value, other.value));
                }
                shared = true;
            }
        }
    }
    Ok(shared)
}

/// Keys that share a state, as `flash/src/spec/state.rs` has them.
#[test]
fn the_same_digest_is_the_same_state() {
    let drives = DRIVES.iter().map(|(bench, cases)| (*bench, *cases));
    let cases = drives.chain([(&INSIDE, CASES)]).flat_map(|(bench, cases)| {
        cases.iter().filter(|case| case.key.starts_with("flash.")).map(move |case| (bench, case))
    });
    let (mut seen, mut sharing, mut faults) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (bench, case) in cases {
        seen.insert(case.key.to_owned());
        match shares(bench, case) {
            Ok(true) => drop(sharing.insert(case.key)),
            Ok(false) => {}
            Err(fault) => faults.push(fault),
        }
    }
    assert_eq!(faults.join("\n"), "");
    let keys = machine::catalogue::params().into_iter().map(|param| param.key);
    let unseen: Vec<_> = keys.filter(|key| key.starts_with("flash.") && !seen.contains(key)).collect();
    assert!(unseen.is_empty(), "keys that no case changes here: {unseen:?}");
    // The keys that sweeps vary most.
    for key in ["flash.cell.read", "flash.channel.rate", "flash.die.scheduler", "flash.buffer.capacity"] {
        assert!(sharing.contains(key), "{key} has a state for each value");
    }
    let apart = ["flash.geometry.blocks", "flash.ftl.gc.victim", "flash.ftl.over_provisioning"];
    assert!(apart.iter().all(|key| !sharing.contains(key)), "{sharing:?}");
}
