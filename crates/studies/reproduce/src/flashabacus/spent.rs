//! Energy of a run, as the paper divides it: what moves data, what computes, what stores.

use super::metrics::{offloaded, span};
use config::Diagnostic;
use config::units::Power;
use machine::result::{Document, PartEnergy};
use std::fmt;

/// Energy of the rival's parts, J.
pub(super) struct Items {
    /// Its host, while data move.
    moves: f64,
    /// Its accelerator.
    computes: f64,
    /// Its drive, while data move.
    stores: f64,
}

impl Items {
    fn all(&self) -> f64 {
        self.moves + self.computes + self.stores
    }

    /// The share that moves and stores data, per cent.
    pub(super) fn transfer_share(&self) -> f64 {
        100.0 * (self.moves + self.stores) / self.all()
    }
}

impl fmt::Display for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {:.3} J, accelerator {:.3} J, drive {:.3} J", self.moves, self.computes, self.stores)
    }
}

/// A part's energy.
fn part<'a>(document: &'a Document, name: &str) -> Result<&'a PartEnergy, Diagnostic> {
    let parts = document.energy.iter().flat_map(|energy| &energy.parts);
    let found = parts.into_iter().find(|part| part.name == name);
    found.ok_or_else(|| Diagnostic::new(format!("no energy of `{name}` on {}", document.system)))
}

/// Energy of an activity of a part, J.
///
/// # Errors
/// A name that the part reports no energy under.
fn activity(part: &PartEnergy, name: &str) -> Result<f64, Diagnostic> {
    let found = part.activities.iter().find(|of| of.activity == name);
    found.map(|of| of.energy_j).ok_or_else(|| {
        let known = part.activities.iter().map(|of| of.activity);
        Diagnostic::new(format!("`{}` reports no activity `{name}`", part.name)).allowed(name, known)
    })
}

/// A power of the spec, W.
fn power(document: &Document, path: &[&str]) -> Result<f64, Diagnostic> {
    let value = path.iter().try_fold(&document.spec, |table, key| table.get(*key));
    let power = value.and_then(|value| value.as_str()).and_then(|text| text.parse::<Power>().ok());
    let power = power.map(|power| power.microwatts() as f64 / 1e6);
    power.ok_or_else(|| Diagnostic::new(format!("no power {} of {}", path.join("."), document.system)))
}

/// A part's energy in those phases in which an activity that goes on in others lasts, J: what is spent all the time is shared out by time.
fn while_moving(of: &PartEnergy, always: &[&str], share: f64) -> Result<f64, Diagnostic> {
    let constant = always.iter().map(|name| activity(of, name)).sum::<Result<f64, _>>()?;
    Ok(of.energy_j - (1.0 - share) * constant)
}

/// The rival's three items: host and drive while data move.
pub(super) fn items(document: &Document) -> Result<Items, Diagnostic> {
    let (moving, working) = span(document)?;
    let share = moving / (moving + working);
    let host = part(document, "host")?;
    let drive = part(document, "flash")?;
    // Its controller has nothing to do while the accelerator works.
    let idle = power(document, &["flash", "energy", "controller", "idle"])? * working;
    Ok(Items {
        moves: while_moving(host, &["cores on", "package on", "memory on"], share)?,
        computes: part(document, "coprocessor")?.energy_j,
        stores: while_moving(drive, &["die idle", "link on"], share)?
            - idle.min(activity(drive, "controller idle")?),
    })
}

/// Energy of a run, J: of FlashAbacus all that its accelerator and its flash spend, of the rival the three items.
pub(super) fn energy(document: &Document) -> Result<f64, Diagnostic> {
    if offloaded(document) {
        return Ok(items(document)?.all());
    }
    whole_energy(document)
}

/// Energy of a run with all its parts, J: of the rival also what host and drive spend while the accelerator computes.
pub(super) fn whole_energy(document: &Document) -> Result<f64, Diagnostic> {
    let total = document.energy.as_ref().and_then(|energy| energy.total.as_ref());
    let total = total.ok_or_else(|| Diagnostic::new(format!("no energy of {}", document.system)))?;
    Ok(total.energy_j)
}

/// The rival's parts over the whole run.
pub(super) fn whole_items(document: &Document) -> Result<Items, Diagnostic> {
    let of = |name: &str| Ok::<f64, Diagnostic>(part(document, name)?.energy_j);
    Ok(Items { moves: of("host")?, computes: of("coprocessor")?, stores: of("flash")? })
}

/// Power of an accelerator that waits for data, W.
fn waiting(document: &Document, kind: &str, cores: f64, state: &str) -> Result<f64, Diagnostic> {
    let of = |path: &[&str]| power(document, &[&[kind, "energy"], path].concat());
    Ok(cores * of(&["worker", state])? + of(&["memory_on"])? + of(&["chip_on"])?)
}

/// Power while storage is accessed, W.
pub(super) fn access_power(document: &Document) -> Result<f64, Diagnostic> {
    if offloaded(document) {
        let (moving, _) = span(document)?;
        let Items { moves, stores, .. } = items(document)?;
        let cores = document.coprocessor[0].cores.len() as f64;
        return Ok((moves + stores) / moving + waiting(document, "coprocessor", cores, "idle")?);
    }
    let at = document.accelerator.first();
    let at =
        at.ok_or_else(|| Diagnostic::new(format!("no accelerator in the run on {}", document.system)))?;
    let workers = at.workers.len() as f64;
    let firmware = 2.0 * power(document, &["accelerator", "energy", "firmware", "busy"])?;
    let flash = part(document, "group_flash")?.power_w_mean;
    Ok(flash + firmware + waiting(document, "accelerator", workers, "waits")?)
}

/// Power of the accelerator while it computes, W.
pub(super) fn compute_power(document: &Document) -> Result<f64, Diagnostic> {
    if offloaded(document) {
        let (moving, working) = span(document)?;
        let cores = document.coprocessor[0].cores.len() as f64;
        let idle = waiting(document, "coprocessor", cores, "idle")? * moving;
        return Ok((part(document, "coprocessor")?.energy_j - idle) / working);
    }
    Ok(part(document, "accelerator")?.power_w_max)
}

#[cfg(test)]
mod tests {
    use super::super::suite::SIMD;
    use super::*;
    use machine::run::{Plan, run_alone};

    /// A small run of the rival.
    fn rival() -> Document {
        let plan = Plan::new(SIMD, "atax:m=256,n=256,instances=2").set("coprocessor.sample=16384");
        run_alone(&plan).expect("a run")
    }

    /// The item of the host by its definition: all cores, package and memory while data move, from the powers of the spec, and what cores at work take besides.
    #[test]
    fn the_hosts_item_is_its_power_while_data_move() {
        let document = rival();
        let (moving, working) = span(&document).expect("phases");
        let measured = document.energy.as_ref().expect("powers").measured_ns / 1e9;
        let of = |path: &[&str]| {
            power(&document, &[&["host", "linux", "cores", "energy"], path].concat()).expect("a power")
        };
        let cores = document.spec["host"]["linux"]["cores"]["count"].as_u64().expect("a number") as f64;
        let always = cores * of(&["core", "idle"]) + of(&["package_on"]) + of(&["memory_on"]);
        let host = part(&document, "host").expect("a host");
        let work: f64 = ["core in user mode", "core in system mode", "core in interrupts"]
            .into_iter()
            .map(|name| activity(host, name).expect("an activity"))
            .sum();
        let expected = always * measured * moving / (moving + working) + work;
        let found = items(&document).expect("items").moves;
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} J instead of {expected} J");
        assert!(working > 0.01 * moving, "an accelerator that hardly works shows nothing");
    }

    #[test]
    fn an_activity_that_is_not_reported_is_an_error() {
        let document = rival();
        let host = part(&document, "host").expect("a host");
        let fault = activity(host, "core idle").expect_err("the host has none").one_line();
        assert!(fault.contains("`host` reports no activity `core idle`"), "{fault}");
        assert!(fault.contains("cores on"), "{fault}");
        assert!(while_moving(host, &["package on", "core idle"], 0.5).is_err());
        assert!(part(&document, "hosts").is_err());
        assert!(power(&document, &["host", "energy", "cores"]).is_err());
    }
}
