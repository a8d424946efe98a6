//! Whole machines near the shipped ones: the first byte chooses a small system, the others choose policies and change values. What loads
//! runs with its shadow, and every check holds.

use super::Target;
use machine::Loaded;
use machine::catalogue::families;
use machine::run::{Plan, run_for};
use toml::{Table, Value};

pub(super) const TARGET: Target = Target {
    name: "machine",
    about: "specs of whole machines, run with a shadow",
    run,
    examples,
    reads,
    cases: 600,
};

/// A system made small, and what it does.
struct Platform {
    system: &'static str,
    set: &'static [&'static str],
    workloads: &'static [&'static str],
}

/// One channel of one way, filled once, under a shadow; the rest keeps what the system's thresholds of collection need.
macro_rules! drive {
    ($($set:literal),*) => {
        &[
            "flash.geometry.channels=1",
            "flash.geometry.ways=1",
            "flash.precondition=sequential",
            "sim.shadow=true",
            $($set),*
        ]
    };
}
const DIRECT: &[&str] = &[
    "memory.direct.geometry.channels=4",
    "memory.direct.geometry.dies=1",
    "memory.direct.geometry.planes=4",
    "memory.direct.geometry.blocks=16",
    "memory.direct.geometry.pages=16",
    "memory.direct.mapping.group=16",
    "memory.direct.mapping.data_blocks=8",
    "memory.direct.controller.count=4",
    "memory.direct.network={ mesh = { rows = 2, columns = 2 } }",
    "mmu.table.block.reach=1MiB",
    "sim.shadow=true",
];
const SERVER: &[&str] = &[
    "cpu.cores=4",
    "fabric.mesh.rows=2",
    "fabric.mesh.columns=2",
    "l2.banks=4",
    "l2.sets=64",
    "cpu.load.jobs=300",
    "cpu.warmup.fixed.jobs=30",
];
const REQUESTS: &[&str] = &[
    "fio:rw=randrw,bsrange=512-24k,iodepth=8,number_ios=300,fsync=9,size=40%,norandommap=1,io_size=1g",
    "fio:rw=randtrim,bs=16k,iodepth=2,number_ios=60,size=40%,norandommap=1,io_size=1g",
];
const GRAPH: &[&str] = &["bfs1:scale=7", "gaus:n=24"];
const JOBS: &[&str] = &["tatp:size=16MiB,work=200"];

const PLATFORMS: &[Platform] = &[
    Platform { system: "d16", set: drive!("flash.geometry.pages=16"), workloads: REQUESTS },
    Platform {
        system: "pm9a3",
        set: drive!("flash.geometry.blocks=128", "flash.geometry.pages=24"),
        workloads: REQUESTS,
    },
    Platform {
        system: "mqsim-default",
        set: drive!("flash.geometry.pages=16", "flash.geometry.dies=1"),
        workloads: REQUESTS,
    },
    Platform {
        system: "z-ssd",
        set: drive!("flash.geometry.blocks=64", "flash.geometry.pages=24"),
        workloads: REQUESTS,
    },
    Platform { system: "ideal", set: &["l2.sets=16"], workloads: GRAPH },
    Platform { system: "zng", set: DIRECT, workloads: GRAPH },
    Platform { system: "zng-wropt", set: DIRECT, workloads: GRAPH },
    Platform {
        system: "hybridgpu",
        set: &[
            "flash.geometry.channels=2",
            "flash.geometry.dies=2",
            "flash.geometry.planes=2",
            "flash.geometry.blocks=64",
            "flash.geometry.pages=16",
            "flash.ftl.gc.start=5",
            "flash.ftl.gc.stop=6",
            "memory.engine.read_buffer.capacity=64KiB",
            "memory.engine.write_buffer.capacity=64KiB",
            "l2.sets=16",
            "sim.shadow=true",
        ],
        workloads: GRAPH,
    },
    Platform {
        system: "hetero",
        set: &[
            "paging.granule=4KiB",
            "paging.memory=1MiB",
            "flash.geometry.blocks=64",
            "flash.geometry.pages=24",
            "sim.shadow=true",
        ],
        workloads: GRAPH,
    },
    Platform { system: "dram-only", set: SERVER, workloads: JOBS },
];

/// Looks at a run after which it is ended.
const LOOKS: u32 = 6;
/// The most pages of a device: tables of larger ones take memory.
const PAGES: u64 = 1 << 20;
/// The most overrides.
const OVERRIDES: usize = 4;

/// What a value of a spec can become.
enum Choice {
    /// One of the policies of a family.
    Policy(Vec<&'static str>),
    /// What stands there, changed.
    Value(Value),
}

/// Every key of a resolved spec with what it can become.
fn choices(table: &Table, prefix: &str, into: &mut Vec<(String, Choice)>) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        if let Some(listed) = families().iter().find(|listed| listed.keys.contains(&key)) {
            let plain = listed.family.entries.iter().filter(|entry| entry.parameters.is_none());
            into.push((key, Choice::Policy(plain.map(|entry| entry.name).collect())));
        } else if let Some(table) = value.as_table() {
            choices(table, &format!("{key}."), into);
        } else {
            into.push((key, Choice::Value(value.clone())));
        }
    }
}

/// A neighbour of a number, or one from the edge of what there is.
fn near(number: u64, how: u8) -> u64 {
    match how % 8 {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => number / 2,
        4 => number.saturating_mul(2),
        5 => number.saturating_sub(1),
        6 => number + 1,
        _ => 7,
    }
}

impl Choice {
    /// As text of an override; none where a value cannot be changed in this way.
    fn take(&self, how: u8) -> Option<String> {
        match self {
            Choice::Policy(names) => Some((*names.get(usize::from(how) % names.len().max(1))?).to_owned()),
            Choice::Value(Value::Boolean(on)) => Some((!on).to_string()),
            Choice::Value(Value::Integer(number)) => Some(near(number.unsigned_abs(), how).to_string()),
            Choice::Value(Value::String(text)) => {
                let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
                let number = text[..text.len() - unit.len()].parse().ok()?;
                Some(format!("{}{unit}", near(number, how)))
            }
            Choice::Value(_) => None,
        }
    }
}

/// A platform as it is shipped here, with all that can be changed of it.
fn resolved(platform: &Platform) -> Vec<(String, Choice)> {
    let set: Vec<String> = platform.set.iter().map(|text| (*text).to_owned()).collect();
    let loaded = Loaded::load(platform.system, &set).unwrap_or_else(|fault| panic!("{fault}"));
    let mut all = Vec::new();
    choices(&table(&loaded), "", &mut all);
    all
}

fn table(loaded: &Loaded) -> Table {
    loaded.to_toml().parse().expect("a resolved spec is TOML")
}

/// The run that the bytes ask for: the first byte chooses a platform, each three more a key and its value.
fn plan(bytes: &[u8]) -> Option<Plan> {
    let (which, rest) = bytes.split_first()?;
    let platform = &PLATFORMS[usize::from(*which) % PLATFORMS.len()];
    let mut plan = Plan::new(platform.system, platform.workloads[0]);
    plan.workloads = platform.workloads.iter().map(|text| (*text).to_owned()).collect();
    plan.set = platform.set.iter().map(|text| (*text).to_owned()).collect();
    let keys = if rest.is_empty() { Vec::new() } else { resolved(platform) };
    for chosen in rest.chunks_exact(3).take(OVERRIDES) {
        let (key, choice) = &keys[usize::from(u16::from_le_bytes([chosen[0], chosen[1]])) % keys.len()];
        plan.set.extend(choice.take(chosen[2]).map(|value| format!("{key}={value}")));
    }
    Some(plan)
}

/// Pages of every device of a spec.
fn pages(spec: &Table) -> u64 {
    let at = |path: &[&str]| {
        path.iter().try_fold(Value::Table(spec.clone()), |value, key| value.get(key).cloned())
    };
    [&["flash", "geometry"][..], &["memory", "direct", "geometry"]]
        .into_iter()
        .filter_map(at)
        .filter_map(|geometry| {
            let counts = geometry.as_table()?.iter().filter_map(|(_, value)| value.as_integer());
            Some(counts.fold(1_u64, |all, count| all.saturating_mul(count.unsigned_abs())))
        })
        .fold(0, u64::saturating_add)
}

fn run(bytes: &[u8]) {
    let Some(plan) = plan(bytes) else { return };
    let loaded = match Loaded::load(&plan.system, &plan.set) {
        Ok(loaded) => loaded,
        Err(fault) => {
            assert!(!fault.what.is_empty() && fault.place.is_some(), "{:?}: {fault}", plan.set);
            return;
        }
    };
    if pages(&table(&loaded)) > PAGES {
        return;
    }
    match run_for(&plan, LOOKS) {
        Ok(document) => assert!(document.is_sound(), "{:?}: {:?}", plan.set, document.checks),
        Err(fault) => assert!(!fault.what.is_empty(), "{:?}: {fault}", plan.set),
    }
}

/// Each platform as it is, and with overrides that damage makes others of.
fn examples() -> Vec<Vec<u8>> {
    let all = 0..PLATFORMS.len() as u8;
    all.flat_map(|which| {
        (0..=OVERRIDES as u8).map(move |n| [vec![which], vec![255 - n; 3 * usize::from(n)]].concat())
    })
    .collect()
}

/// Overrides may be refused: only the platforms themselves must load.
fn reads(bytes: &[u8]) -> bool {
    plan(&bytes[..1]).is_some_and(|plan| Loaded::load(&plan.system, &plan.set).is_ok())
}
