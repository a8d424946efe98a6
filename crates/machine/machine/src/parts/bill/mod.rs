//! Energy as a bill: counts of the parts times the constants of the spec, compared with the meters of the parts.
//!
//! Meters hold the constants that a part was built with, and count where energy is spent. A bill takes the constants
//! from the resolved spec, and the counts from statistics, from booked times, or from queued work.

mod parts;

use crate::parts::Parts;
use config::units::{Energy, Power};
use engine::Time;
use serde_json::Value;
use ssd::Check;
use stats::{Attojoules, EnergyReport};
use std::str::FromStr;

/// Allowed relative difference between a bill and a meter: one in `TOLERANCE`.
const TOLERANCE: Attojoules = 1_000_000_000;

/// Name of the check.
pub(crate) const CHECK: &str = "every activity costs the energy that its count says";

/// Measured window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Start of the window.
    pub(crate) from: Time,
    /// Present time.
    pub(crate) now: Time,
}

impl Span {
    /// Length of the window, picoseconds.
    fn ps(self) -> u128 {
        self.now.since(self.from).ps().into()
    }

    /// Returns whether the window began with the run, so that everything begun in it was also counted in it.
    fn is_whole(self) -> bool {
        self.from == Time::ZERO
    }
}

/// Table `energy` of a part.
#[derive(Clone, Copy, Debug)]
struct Costs<'s>(&'s Value);

impl<'s> Costs<'s> {
    /// Table at a path below the part's table; several parts of a table are `table.0` and so on.
    fn of(spec: &'s Value, part: &str, path: &str) -> Option<Costs<'s>> {
        let table = part.split('.').next().unwrap_or(part);
        spec.pointer(&format!("/{table}{path}")).map(Costs)
    }

    fn read<T: FromStr>(value: &Value) -> Option<T> {
        value.as_str()?.parse().ok()
    }

    fn power(self, key: &str) -> Option<Attojoules> {
        Some(Costs::read::<Power>(self.0.pointer(key)?)?.microwatts().into())
    }

    /// Least and greatest energy of a list by page type.
    fn energy(self, key: &str) -> Option<[Attojoules; 2]> {
        let value = self.0.pointer(key)?;
        let one = |value: &Value| Some(Attojoules::from(Costs::read::<Energy>(value)?.attojoules()));
        let Some(list) = value.as_array() else { return one(value).map(|each| [each; 2]) };
        let all: Vec<Attojoules> = list.iter().map(one).collect::<Option<_>>()?;
        Some([*all.iter().min()?, *all.iter().max()?])
    }
}

/// Energy that a part must have spent.
struct Bill<'b> {
    part: &'b str,
    costs: Costs<'b>,
    energy: &'b EnergyReport,
    span: Span,
    /// Activities without a known comparison, or compared by other checks.
    open: Vec<&'static str>,
    faults: &'b mut Vec<String>,
}

impl Bill<'_> {
    fn spent(&self, activity: &'static str) -> Attojoules {
        let found = self.energy.activities.iter().find(|spent| spent.activity.name == activity);
        found.map_or(0, |spent| spent.energy)
    }

    fn fault(&mut self, what: &str) {
        self.faults.push(format!("{}: {what}", self.part));
    }

    /// Requires an activity to cost between two energies.
    fn within(&mut self, activity: &'static str, due: Option<[Attojoules; 2]>) {
        let spent = self.spent(activity);
        self.open.retain(|open| *open != activity);
        let Some([least, most]) = due else { return self.fault(&format!("`{activity}` has no constant")) };
        if spent < least - least / TOLERANCE || spent > most + most / TOLERANCE {
            self.fault(&format!("{spent} aJ of `{activity}`, {least} to {most} aJ by the count"));
        }
    }

    /// Bills an activity for a number of operations between two bounds.
    fn operations(&mut self, activity: &'static str, key: &str, [least, most]: [u64; 2]) {
        let each = self.costs.energy(key);
        let due = each.map(|[low, high]| [low * Attojoules::from(least), high * Attojoules::from(most)]);
        self.within(activity, due);
    }

    /// Bills an activity for an exact number of operations.
    fn exactly(&mut self, activity: &'static str, key: &str, count: u64) {
        self.operations(activity, key, [count, count]);
    }

    /// Bills a power for a time, which may be off by `off` picoseconds.
    fn lasts(&mut self, activity: &'static str, power: Option<Attojoules>, ps: u128, off: u128) {
        self.within(activity, power.map(|power| [power * ps.saturating_sub(off), power * (ps + off)]));
    }

    /// Bills the power of `count` units for the whole window.
    fn stays(&mut self, activity: &'static str, key: &str, count: u64) {
        let ps = self.span.ps() * u128::from(count);
        self.lasts(activity, self.costs.power(key), ps, 0);
    }

    /// Bills the additional power of work over idling, for a time that may be off by `off` picoseconds.
    fn works(&mut self, activity: &'static str, [idle, busy]: [&str; 2], ps: u128, off: u128) {
        let (idle, busy) = (self.costs.power(idle), self.costs.power(busy));
        let more = busy.zip(idle).map(|(busy, idle)| busy.saturating_sub(idle));
        self.lasts(activity, more, ps, off);
    }

    /// Bills states of which `count` last at each time: their times sum to the window's. A state without power may take
    /// any time.
    fn tile(&mut self, states: &[(&'static str, &str)], count: u64) {
        let (mut ps, mut all_known) = (0, true);
        for (activity, key) in states {
            self.open.retain(|open| open != activity);
            match self.costs.power(key) {
                Some(0) => all_known = false,
                Some(power) => ps += self.spent(activity) / power,
                None => return self.fault(&format!("`{activity}` has no constant")),
            }
        }
        let due = self.span.ps() * u128::from(count);
        if ps > due || all_known && ps < due {
            let names: Vec<&str> = states.iter().map(|(activity, _)| *activity).collect();
            self.fault(&format!("{ps} ps of `{}`, {due} ps have passed", names.join("`, `")));
        }
    }

    /// Marks activities that a different check compares, or whose count is not known in this run.
    fn elsewhere(&mut self, activities: &[&'static str]) {
        self.open.retain(|open| !activities.contains(open));
    }

    /// Bills a link: the bytes of its booked time, at least and at most, and being on.
    fn link(&mut self, [transfer, on]: [&str; 2], bytes: Option<[u64; 2]>) {
        match bytes {
            Some(bytes) => self.operations("link transfer", transfer, bytes),
            None => self.elsewhere(&["link transfer"]),
        }
        self.stays("link on", on, 1);
    }

    /// Requires every activity to have been billed.
    fn close(mut self) {
        for activity in std::mem::take(&mut self.open) {
            self.fault(&format!("nothing counts `{activity}`"));
        }
    }
}

/// Builds the check from the differences.
pub(crate) fn check(faults: &[String]) -> Check {
    Check { name: CHECK, ok: faults.is_empty(), detail: faults.join("; ") }
}

// Energy of a machine's parts: all parts with a meter, in one order.

/// Part that spends energy.
pub(crate) struct Spender {
    /// Name of the part; a link of a part has the part's name before its own.
    pub(crate) name: String,
    /// Energy since the measured window began; `None` if the spec has no energy constants.
    pub(crate) energy: Option<EnergyReport>,
}

impl Parts {
    /// Lists all of them: processors, memories, pagers, hosts, accelerators with their links and flash, coprocessors,
    /// drives.
    pub(crate) fn spenders(&self, now: Time) -> Vec<Spender> {
        let mut all = Vec::new();
        let mut add = |name: String, energy| all.push(Spender { name, energy });
        for complex in &self.complexes {
            add(complex.name.clone(), complex.processor.energy(now));
        }
        for at in &self.memories {
            if let Some(energy) = at.memory.energy(now) {
                add(at.name.clone(), energy);
            }
        }
        for at in &self.pagers {
            if let Some(energy) = at.pager.energy(now) {
                add(format!("{}.link", at.name), energy);
            }
        }
        for at in &self.hosts {
            add(at.name.clone(), at.host.cores().energy(now));
        }
        for at in &self.governed {
            add(at.name.clone(), at.accelerator.energy(now));
            add(format!("{}.offload", at.name), at.offload.link.energy(now));
            add(at.storage.clone(), at.flash.energy(now));
        }
        for at in &self.driven {
            add(at.name.clone(), at.coprocessor.energy(now));
        }
        for at in &self.drives {
            add(at.name.clone(), at.device.energy(now));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use stats::{Activity, Meter};

    const ACTIVITIES: [Activity; 4] = [
        Activity::operation("read"),
        Activity::state("idle"),
        Activity::state("busy"),
        Activity::state("on"),
    ];

    /// 5 reads of 3 nJ, 2 us idle at 1 W and 6 us busy at 4 W, and 8 us at half a watt.
    fn report() -> EnergyReport {
        let us = Time::from_us;
        let mut meter = Meter::new(&ACTIVITIES);
        meter.spend(0, us(3), 15_000_000_000);
        meter.spend_over(1, us(0), us(2), 1_000_000);
        meter.spend_over(2, us(2), us(8), 4_000_000);
        meter.spend_over(3, us(0), us(8), 500_000);
        meter.report(us(8))
    }

    fn faults(with: impl FnOnce(&mut Bill<'_>)) -> Vec<String> {
        let spec = json!({ "part": { "energy": { "read": ["2nJ", "3nJ"], "die": { "idle": "1W", "busy": "4W" }, "on": "500mW" } } });
        let (energy, mut faults) = (report(), Vec::new());
        let mut bill = Bill {
            part: "part.1",
            costs: Costs::of(&spec, "part.1", "/energy").expect("a table"),
            energy: &energy,
            span: Span { from: Time::ZERO, now: Time::from_us(8) },
            open: vec!["read", "idle", "busy", "on"],
            faults: &mut faults,
        };
        with(&mut bill);
        bill.close();
        faults
    }

    const STATES: [(&str, &str); 2] = [("idle", "/die/idle"), ("busy", "/die/busy")];

    #[test]
    fn a_bill_that_agrees_has_no_fault() {
        let found = faults(|bill| {
            bill.exactly("read", "/read", 5);
            bill.tile(&STATES, 1);
            bill.stays("on", "/on", 1);
        });
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn each_difference_is_a_fault_and_so_is_what_nothing_counts() {
        // Four reads cost 12 nJ at most, eight 16 nJ at least.
        for reads in [4, 8] {
            let found = faults(|bill| {
                bill.exactly("read", "/read", reads);
                bill.elsewhere(&["idle", "busy", "on"]);
            });
            assert!(found.len() == 1 && found[0].contains("`read`"), "{found:?}");
        }
        let found = faults(|bill| {
            bill.tile(&STATES, 2);
            bill.stays("on", "/off", 1);
        });
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[2].contains("nothing counts `read`"), "{found:?}");
    }
}
