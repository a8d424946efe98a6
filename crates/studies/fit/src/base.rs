//! The drive that a fit begins with.

use config::Diagnostic;
use engine::Time;
use machine::spec::Loaded;
use ssd::spec::{ControllerSpec, UpkeepSpec};

/// What a fit needs to know of the drive that it begins with.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// Tables of the drive and of the host.
    pub(super) flash: String,
    pub(super) host: String,
    /// By page type, microseconds.
    pub(super) read: Vec<f64>,
    /// By page or pass, microseconds.
    pub(super) program: Vec<f64>,
    pub(super) erase: Time,
    pub(super) pages: u32,
    pub(super) controller: ControllerSpec,
    pub(super) thread: f64,
    /// Whether it is a SATA drive; else it has NVMe queues.
    pub(super) is_sata: bool,
    /// From the end of a command to software running, microseconds.
    pub(super) interrupt: f64,
    /// Exit latencies of its link and of the host's cores, microseconds; zero where they do not sleep.
    pub(super) link_exit: f64,
    pub(super) core_exit: f64,
    /// Commands that a host has under way at once.
    pub(super) queue: u64,
    pub(super) capacity: u64,
}

/// A time in microseconds.
pub(super) fn us(time: Time) -> f64 {
    time.ps() as f64 / 1e6
}

impl Base {
    /// Work on writes that follows their acknowledgement.
    pub(super) fn upkeep(&self) -> Option<&UpkeepSpec> {
        self.controller.write.as_ref()?.upkeep.as_ref()
    }

    /// Of a system's first drive.
    ///
    /// # Errors
    /// A system that has none, or one without queues, or a drive that cannot be built.
    pub(super) fn of(loaded: &Loaded, like: &str) -> Result<Base, Diagnostic> {
        const HELP: &str = "a fit begins with a system of one drive with queues, such as pm9a3 or 860-pro";
        let drive = loaded.drive().map_err(|fault| fault.help(HELP))?;
        let flash = drive.flash;
        let (is_sata, interrupt, queue) = match (&flash.host.nvme, &flash.host.ahci) {
            (_, Some(ahci)) => (true, ahci.interrupt, u64::from(ahci.slots)),
            (Some(nvme), None) => (false, nvme.interrupt, u64::MAX),
            (None, None) => {
                return Err(
                    Diagnostic::new(format!("the drive of `{like}` has no queues of a host")).help(HELP)
                );
            }
        };
        let times = |times: &[config::units::Duration]| times.iter().map(|time| us(time.time())).collect();
        Ok(Base {
            flash: loaded.spec.flash[0].table().to_owned(),
            host: loaded.spec.host[0].table().to_owned(),
            read: times(&flash.cell.read),
            program: times(&flash.cell.program),
            erase: flash.cell.erase.time(),
            pages: flash.geometry.pages,
            controller: flash.host.controller.clone(),
            thread: drive.host.thread.map_or(0.0, |thread| us(thread.time())),
            is_sata,
            interrupt: us(interrupt.time()),
            link_exit: flash.host.sleep.map_or(0.0, |sleep| us(sleep.exit.time())),
            core_exit: drive.host.sleep.map_or(0.0, |sleep| us(sleep.exit.time())),
            queue,
            capacity: loaded.device(1)?.capacity(),
        })
    }
}
