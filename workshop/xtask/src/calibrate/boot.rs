//! Boots a guest on a served block device and waits for its end, with a limit on every step.

use super::disk::Served;
use super::jobs::{self, OUTCOME, Outcome, PLAN, Plan};
use super::{Law, Store, vhost};
use anyhow::{Context, Result, bail};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Size of the device in bytes.
pub(super) const DEVICE_BYTES: u64 = 4 << 30;
/// Maximum number of outstanding requests of the guest.
pub(super) const DEPTH: u32 = 32;
const PATIENCE: Duration = Duration::from_secs(20);

/// Programs that the guest needs.
pub(super) struct Programs {
    /// User-Mode Linux.
    uml: PathBuf,
    /// Folder with a folder of modules for each release of User-Mode Linux.
    modules: PathBuf,
}

impl Programs {
    /// Finds the programs: those given, or else those in the path.
    ///
    /// # Errors
    /// A program is missing; the message names its package.
    pub(super) fn find(uml: Option<&Path>) -> Result<Self> {
        let uml = program(uml, &["linux.uml", "linux"]).context(
            "no User-Mode Linux: install the Debian package user-mode-linux, or unpack it anywhere (`apt-get download user-mode-linux`, \
             `dpkg -x`) and name its linux.uml with --uml",
        )?;
        for (name, package) in
            [("fio", "fio"), ("setpriv", "util-linux"), ("insmod", "kmod"), ("mkfs.ext4", "e2fsprogs")]
        {
            program(None, &[name])
                .with_context(|| format!("no {name}: install the Debian package {package}"))?;
        }
        let beside = uml.parent().and_then(Path::parent).map(|up| up.join("lib/uml/modules"));
        let modules = [beside, Some("/usr/lib/uml/modules".into())]
            .into_iter()
            .flatten()
            .find(|folder| folder.is_dir());
        let modules = modules.context("no folder lib/uml/modules beside the folder of User-Mode Linux")?;
        Ok(Self { uml, modules })
    }

    /// Init script of the guest, which sees the host's files, read only.
    fn script(&self, folder: &Path) -> Result<String> {
        let (own, modules) = (std::env::current_exe()?, self.modules.display());
        Ok(format!(
            "#!/bin/sh\n\
             PATH=/usr/sbin:/usr/bin:/sbin:/bin; export PATH\n\
             mount -t proc proc /proc\n\
             mount -t sysfs sys /sys\n\
             mkdir -p /dev/cal/out /dev/cal/fs\n\
             mount -t hostfs none /dev/cal/out -o {}\n\
             modules={modules}/$(uname -r)/kernel\n\
             insmod $modules/drivers/block/virtio_blk.ko queue_depth={DEPTH}\n\
             insmod $modules/kernel/configs.ko\n\
             {} calibrate-pagecache --guest /dev/cal/out\n\
             echo o > /proc/sysrq-trigger\n\
             sleep 10\n",
            folder.display(),
            own.display()
        ))
    }
}

/// Finds the program at a path, or the first of some names in the path or among the system's own tools.
fn program(named: Option<&Path>, names: &[&str]) -> Option<PathBuf> {
    if let Some(path) = named {
        return path.is_file().then(|| fs::canonicalize(path).ok()).flatten();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

/// Child process that ends when this value is dropped, with all that it has started.
struct Running(Child);

impl Running {
    /// Starts the process so that the system ends it if this program is killed.
    fn start(program: &Path, with: impl FnOnce(&mut Command) -> &mut Command) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(program).stdin(Stdio::null()).process_group(0);
        let child = with(&mut command).spawn();
        Ok(Self(child.with_context(|| format!("{} did not start", program.display()))?))
    }

    /// Waits up to the limit; returns whether the process ended on its own.
    fn ends_within(&mut self, limit: Duration) -> Result<bool> {
        let begin = Instant::now();
        while self.0.try_wait()?.is_none() {
            if begin.elapsed() > limit {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(true)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group has the number of its first process.
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

/// Boots a guest with this much memory, lets it run its plan, and returns its outcome and the remains of its device.
///
/// # Errors
/// A step fails or takes longer than its limit; the message ends with the guest's last output.
pub(super) fn run(
    programs: &Programs,
    memory_mib: u32,
    plan: &Plan,
    law: Option<Law>,
    store: Store,
    limit: Duration,
) -> Result<(Outcome, Served)> {
    let folder = tempfile::Builder::new().prefix("calibrate").tempdir()?;
    let folder = folder.path();
    let file = |name: &str| folder.join(name);
    jobs::save_message(folder, PLAN, plan)?;
    fs::write(file("init"), programs.script(folder)?)?;
    fs::set_permissions(file("init"), fs::Permissions::from_mode(0o755))?;
    let listener = UnixListener::bind(file("disk"))?;
    let served = thread::spawn(move || vhost::serve(&listener, PATIENCE, DEVICE_BYTES, law, store));
    let console = fs::File::create(file("console"))?;
    let errors = console.try_clone()?;
    let mut guest = Running::start(&programs.uml, |command| {
        command
            .arg(format!("mem={memory_mib}M"))
            .args(["rootfstype=hostfs", "rootflags=/", "ro", "con=null", "con0=null,fd:1", "quiet"])
            .arg(format!("init={}", file("init").display()))
            .arg(format!("virtio_uml.device={}:2", file("disk").display()))
            .stdout(console)
            .stderr(errors)
    })?;
    let ended = guest.ends_within(limit)?;
    drop(guest);
    let served = served.join().map_err(|_| anyhow::anyhow!("the block device died"))?;
    let last_words = || {
        let text = fs::read(file("console")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    };
    if !ended && !file(OUTCOME).exists() {
        bail!("the guest did not end within {} s:\n{}", limit.as_secs(), last_words());
    }
    let outcome = jobs::load_message(folder, OUTCOME)
        .with_context(|| format!("the guest failed:\n{}", last_words()))?;
    Ok((outcome, served?))
}
