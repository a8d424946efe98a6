//! Spec of raw bit errors and read retry.

use super::{CellSpec, SpecError};
use config::units::{Duration, Share};
use engine::Rng;
use nand::dies::ErrorRates;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Raw bit error rates of pages: wrong bits per sensed bit. Contributions of erases, time and reads add up. A block
/// records when it was first programmed since the start, and how often it was read since its last erase; its later
/// pages count as equally old.
///
/// Rates differ from chip to chip. Cai et al. (Proc. IEEE 105(9), 2017) give all of these for planar chips; Luo et al.
/// (POMACS 2(3), 2018) give them for 3D chips, where retention is steepest in the first hours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorsSpec {
    /// Rate of a page just programmed in a block that was never erased.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub fresh: f64,
    /// Rate added by 1,000 erases of the block.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub wear: f64,
    /// Rate added by each day since the program.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub retention: f64,
    /// Rate added by 1,000 reads of the block since it was programmed: read disturb (Cai et al., DSN 2015). Each
    /// sensing counts, including those of garbage collection and of retry steps; reads before the run do not.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub reads: f64,
    /// Age in days of data written before the run; if omitted, it is written when the run begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 36500.0))]
    pub age: Option<f64>,
    /// Factors by page type, lowest bit first; one value applies to all types. If omitted, types are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(min = 0.0, max = 1000.0)))]
    pub types: Option<Vec<f64>>,
    /// Variation between pages: standard deviation of the natural logarithm of their rates, whose medians are the
    /// values above. Each page draws a deviation from the run's seed and keeps it until its block is erased; it is at
    /// most 3.46 times the standard deviation.
    pub spread: Share,
    /// Read retry of pages with too many errors.
    pub retry: RetrySpec,
}

/// Read retry: a page that the code does not correct is read again with shifted read voltages, whatever the purpose of
/// the read. A retry step holds the die; it takes a command, a sensing and a transfer over the channel to the decoder.
/// Data in a register, or read by several requests at once, has been corrected and is not read again.
///
/// Described by Park et al. (ASPLOS 2021); Ye et al. (ASPLOS 2024) count more than three retry steps a read after 3,000
/// erases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetrySpec {
    /// Raw bit error rate that the code corrects, for hard-decision decoding.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 0.5))]
    pub correctable: f64,
    /// Factor on the bit error rate after each retry step.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))]
    pub gain: f64,
    /// Maximum retry steps. A page still not corrected then counts as uncorrectable. With parity (`ftl.parity`) it is
    /// rebuilt from other dies; without, it is answered as if it had been corrected.
    #[schemars(range(min = 1, max = 255))]
    pub limit: u8,
    /// Time of a retry step beyond command, sensing and transfer, for the decoder's failure and new read voltages; it
    /// holds the die.
    pub latency: Duration,
}

impl ErrorsSpec {
    /// Returns the error rates of each page type.
    pub(crate) fn build(&self, cell: &CellSpec, seed: u64, device: &str) -> Result<ErrorRates, SpecError> {
        Ok(ErrorRates {
            seed: Rng::stream(seed, &format!("{device}/cell.errors")).next_u64(),
            fresh: self.fresh,
            wear: self.wear / 1_000.0,
            retention: self.retention,
            age: self.age.unwrap_or(0.0),
            reads: self.reads / 1_000.0,
            types: cell.by_type("cell.errors.types", self.types.as_deref().unwrap_or(&[1.0]))?,
            spread: self.spread.get(),
            correctable: self.retry.correctable,
            gain: self.retry.gain,
            limit: self.retry.limit,
            latency: self.retry.latency.time(),
        })
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        let refused = |key: &str, value: f64, allowed: &str| {
            let what = format!("`{key}` is {value}; allowed are {allowed}");
            Err(SpecError::new(key, what))
        };
        let rates = [
            ("cell.errors.fresh", self.fresh),
            ("cell.errors.wear", self.wear),
            ("cell.errors.retention", self.retention),
            ("cell.errors.reads", self.reads),
        ];
        if let Some((key, rate)) = rates.into_iter().find(|(_, rate)| !(0.0..=0.5).contains(rate)) {
            return refused(key, rate, "0 to 0.5");
        }
        if let Some(age) = self.age.filter(|age| !(0.0..=36_500.0).contains(age)) {
            return refused("cell.errors.age", age, "0 to 36500 days");
        }
        let types = self.types.iter().flatten();
        if let Some(factor) = types.copied().find(|factor| !(0.0..=1_000.0).contains(factor)) {
            return refused("cell.errors.types", factor, "factors from 0 to 1000");
        }
        let RetrySpec { correctable, gain, limit, latency: _ } = self.retry;
        if !(correctable > 0.0 && correctable <= 0.5) {
            return refused("cell.errors.retry.correctable", correctable, "above 0 up to 0.5");
        }
        if !(gain > 0.0 && gain <= 1.0) {
            return refused("cell.errors.retry.gain", gain, "above 0 up to 1");
        }
        SpecError::positive("cell.errors.retry.limit", limit.into())
    }
}

#[cfg(test)]
mod tests {
    // Refused values.
    use super::*;
    use crate::soak::Combination;
    use crate::spec::Built;

    /// Returns the key and message of the fault that a change to a spec causes.
    fn fault(change: impl FnOnce(&mut ErrorsSpec)) -> (String, String) {
        let mut spec = Combination { errors: true, ..Combination::plain() }.spec();
        change(spec.cell.errors.as_mut().expect("it has errors"));
        let built = Built { seed: 1, name: "errors".into(), fold: true };
        let fault = spec.build(&built).err().expect("it is refused");
        (fault.key, fault.what)
    }

    #[test]
    fn each_value_out_of_range_is_named_with_what_is_allowed() {
        type Change = fn(&mut ErrorsSpec);
        let cases: [(&str, Change, &str); 16] = [
            ("fresh", |e| e.fresh = 0.6, "allowed are 0 to 0.5"),
            ("fresh", |e| e.fresh = f64::NAN, "allowed are 0 to 0.5"),
            ("wear", |e| e.wear = -0.1, "allowed are 0 to 0.5"),
            ("retention", |e| e.retention = f64::INFINITY, "allowed are 0 to 0.5"),
            ("reads", |e| e.reads = 1.0, "allowed are 0 to 0.5"),
            ("age", |e| e.age = Some(-1.0), "allowed are 0 to 36500 days"),
            ("age", |e| e.age = Some(f64::NAN), "allowed are 0 to 36500 days"),
            ("types", |e| e.types = Some(vec![1.0, -1.0]), "factors from 0 to 1000"),
            ("types", |e| e.types = Some(vec![f64::NAN]), "factors from 0 to 1000"),
            ("types", |e| e.types = Some(vec![1.0; 3]), "needs 1 or 2"),
            ("types", |e| e.types = Some(Vec::new()), "needs 1 or 2"),
            ("retry.correctable", |e| e.retry.correctable = 0.0, "above 0 up to 0.5"),
            ("retry.correctable", |e| e.retry.correctable = f64::NAN, "above 0 up to 0.5"),
            ("retry.gain", |e| e.retry.gain = 0.0, "above 0 up to 1"),
            ("retry.gain", |e| e.retry.gain = 1.1, "above 0 up to 1"),
            ("retry.limit", |e| e.retry.limit = 0, "must be at least 1"),
        ];
        for (name, change, said) in cases {
            let (key, what) = fault(change);
            assert_eq!(key, format!("cell.errors.{name}"), "{what}");
            assert!(what.contains(said), "{key}: {what}");
        }
    }

    /// Errors that the code always corrects must leave a device as it is without errors.
    #[test]
    fn errors_that_are_corrected_change_nothing() {
        use crate::soak::{Host, combinations};
        for combination in &combinations(8)[..12] {
            let run = |errors: bool| {
                let combination = Combination { errors, ..combination.clone() };
                let mut spec = combination.spec();
                if let Some(errors) = &mut spec.cell.errors {
                    errors.retry.correctable = 0.5;
                }
                let built = Built { seed: 8, name: "soak".into(), fold: combination.fold };
                let device =
                    combination.filled(spec.build(&built).expect("a sound spec"), 8).expect("it fits");
                let mut host = Host::new(device, 8, combination.depth);
                host.drive(1_500);
                (host.digest(), host.now(), host.device.backend.counters.clone())
            };
            assert_eq!(run(false), run(true), "{combination}");
        }
    }
}
