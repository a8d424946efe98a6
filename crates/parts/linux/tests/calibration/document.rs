//! The measurement, as far as it is compared: what fio was asked for, facts of the guest, and figures.

const MEASURED: &str = include_str!("../../../../../tests/calibration/pagecache/uml-6.1.toml");

/// A job of the measurement.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    text: &'static str,
}

/// All jobs, in the order of the document.
pub(crate) fn jobs() -> impl Iterator<Item = Job> {
    MEASURED.split("[[job]]").skip(1).map(|text| Job { name: word(text, "name").expect("a name"), text })
}

/// A job by its name.
pub(crate) fn job(name: &str) -> Job {
    jobs().find(|job| job.name == name).expect("a job of this name")
}

fn word(text: &'static str, key: &str) -> Option<&'static str> {
    value(text, key)?.split('"').nth(1)
}

/// What stands behind a key.
fn value(text: &'static str, key: &str) -> Option<&'static str> {
    text.lines().find_map(|line| {
        let line = line.trim_start_matches('"').strip_prefix(key)?;
        line.strip_prefix('"').unwrap_or(line).strip_prefix(" = ")
    })
}

impl Job {
    /// Whether the guest used the block device without a file system.
    pub(crate) fn on_device(&self) -> bool {
        word(self.text, "target") == Some("raw")
    }

    /// Whether it runs on the page cache of the block device. Direct requests have none: in the model they are of a file.
    pub(crate) fn is_raw(&self) -> bool {
        self.on_device() && !self.fio().any(|option| option == "direct=1")
    }

    /// The options of fio.
    pub(crate) fn fio(&self) -> impl Iterator<Item = &'static str> {
        value(self.text, "fio").expect("options").split('"').skip(1).step_by(2)
    }

    /// Whether the limits of dirty pages were changed after boot.
    pub(crate) fn sets_limits(&self) -> bool {
        let settings = &self.text[..self.text.find("[job.facts]").expect("facts")];
        settings.contains("\"vm.dirty_ratio\"") || settings.contains("\"vm.dirty_bytes\"")
    }

    fn facts(&self) -> &'static str {
        let at = self.text.find("[job.facts]").expect("facts");
        &self.text[at..]
    }

    /// A word that the guest said of itself.
    pub(crate) fn fact(&self, key: &str) -> &'static str {
        word(self.facts(), key).expect("a fact")
    }

    /// The same as a number.
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.fact(key).parse().expect("a number")
    }

    /// A figure: the median of the runs.
    pub(crate) fn figure(&self, key: &str) -> Option<f64> {
        value(self.text, key)?.trim_start_matches('[').split(',').next()?.trim().parse().ok()
    }
}
