//! Builds a host's path to its drives.

use crate::parts::{Hosted, Target};
use config::Diagnostic;
use linux::block::{Device, SchedulerPolicy};
use linux::path::{DiskSpec, Host, PathSpec};
use programs::host::HostProgram;
use requests::fio::Scheduler;
use requests::synth::Region;
use spec::{Id, Kind, Loaded, queues, queues_of};
use ssd::spec::FlashSpec;
use std::collections::BTreeMap;

/// Size of a logical block that a host addresses, bytes.
const BLOCK: u32 = 512;

/// Builds the host with its programs, and with the files and I/O schedulers of its drives, by drive number.
///
/// # Errors
/// A value that cannot be built.
pub(crate) fn build(
    loaded: &Loaded,
    programs: Vec<Box<dyn HostProgram>>,
    files: &BTreeMap<u16, Vec<Region>>,
    schedulers: &BTreeMap<usize, Scheduler>,
) -> Result<Hosted, Diagnostic> {
    let Some(part) = loaded.spec.host.first() else {
        return Err(Diagnostic::new(format!("the system `{}` has no host", loaded.name)).help(
            "requests through a page cache and programs of a host need the tables `flash` and `host`",
        ));
    };
    let spec = part.spec.linux.clone().unwrap_or_default();
    let drives = part.linked("drives");
    let mut disks = drives.iter().map(|drive| disk(loaded, *drive)).collect::<Result<Vec<_>, _>>()?;
    for (number, wanted) in schedulers {
        disks[*number].scheduler = Some(policy(*wanted, &spec.block.scheduler));
    }
    let explain = |error| loaded.explain(&format!("{}.linux", part.table()), error);
    let mut host = Host::new(&spec, &disks).map_err(explain)?;
    for program in programs {
        host.add_program(program).map_err(|fault| Diagnostic::new(fault.to_string()))?;
    }
    for (drive, files) in files {
        let files: Vec<(u64, u64)> = files.iter().map(|file| (file.start, file.bytes)).collect();
        host.lay_out_files(*drive, &files).map_err(|fault| Diagnostic::new(fault.to_string()))?;
    }
    Ok(Hosted {
        name: part.name.clone(),
        host,
        drives: drives.iter().map(|drive| target(*drive)).collect(),
        coprocessors: part.linked("coprocessors").iter().map(|id| id.number as u16).collect(),
    })
}

/// Size of the file that fills a drive of the host, bytes.
///
/// # Errors
/// A value that cannot be built.
pub(crate) fn file_bytes(loaded: &Loaded, drive: Id) -> Result<u64, Diagnostic> {
    let Some(part) = loaded.spec.host.first() else { return Ok(0) };
    let spec: PathSpec = part.spec.linux.clone().unwrap_or_default();
    let explain = |error| loaded.explain(&format!("{}.linux", part.table()), error);
    linux::path::file_bytes(&spec, loaded.capacity_of(drive)?).map_err(explain)
}

/// I/O scheduler with this name, with the spec's settings if the spec names the same one.
fn policy(wanted: Scheduler, spec: &SchedulerPolicy) -> SchedulerPolicy {
    match (wanted, spec) {
        (Scheduler::MqDeadline, SchedulerPolicy::mq_deadline(_))
        | (Scheduler::Kyber, SchedulerPolicy::kyber(_)) => spec.clone(),
        (Scheduler::None, _) => SchedulerPolicy::none,
        (Scheduler::MqDeadline, _) => SchedulerPolicy::mq_deadline(Default::default()),
        (Scheduler::Kyber, _) => SchedulerPolicy::kyber(Default::default()),
    }
}

fn target(drive: Id) -> Target {
    match drive.kind {
        Kind::Stripe => Target::Stripe(drive.number as u16),
        _ => Target::Drive(drive.number as u16),
    }
}

/// Properties of a drive that the host's driver sees.
fn disk(loaded: &Loaded, drive: Id) -> Result<DiskSpec, Diagnostic> {
    let (queues, members) = match drive.kind {
        Kind::Stripe => {
            let members = loaded.spec.stripe[drive.number].linked("drives");
            (queues_of(loaded, drive.number), members.iter().map(|member| member.number).collect())
        }
        _ => (queues(&loaded.spec.flash[drive.number].spec.flash), vec![drive.number]),
    };
    let flash = |number: &usize| &loaded.spec.flash[*number].spec.flash;
    let device = Device {
        max_transfer: 0,
        block: BLOCK,
        queues: queues.count,
        queue_depth: queues.depth.saturating_sub(1).clamp(1, 65_535),
        write_cache: members.iter().any(|number| is_volatile(flash(number))),
        fua: true,
    };
    Ok(DiskSpec { bytes: loaded.capacity_of(drive)?, device, scheduler: None })
}

/// Returns whether a drive may lose acknowledged writes at a power failure.
fn is_volatile(spec: &FlashSpec) -> bool {
    spec.buffer.as_ref().is_some_and(|buffer| !buffer.protected)
        || spec.registers.as_ref().is_some_and(|registers| !registers.protected)
}
