//! Settings worth changing: the keys that matter most to where time goes, with their current values and what to try.

use super::rules::{RULES, Rule};
use super::{percent, share};
use serde_json::Value;

/// Key that is worth a try.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Key {
    /// Name of the key: that of the first part, where parts of its kind have names of their own.
    pub key: String,
    /// Current value.
    pub now: Value,
    /// Value to try, as `--set` takes it. It differs from the current one.
    pub to: String,
    /// Overrides to try: the key of each part of its kind, and what it needs.
    pub set: Vec<String>,
    /// Reason for the suggestion.
    pub why: String,
    /// Share of time that depends on the key; slow requests count as much as all requests together.
    pub share: f64,
}

impl Key {
    /// Current value as a user writes it.
    pub fn says(&self) -> String {
        said(&self.now)
    }

    /// Value to try, with what else must be set.
    pub fn tries(&self) -> String {
        let name = self.key.split_once('.').map_or(self.key.as_str(), |(_, rest)| rest);
        let is_other = |set: &&String| !set.split('=').next().is_some_and(|key| key.ends_with(name));
        let others: Vec<&str> = self.set.iter().filter(is_other).map(String::as_str).collect();
        if others.is_empty() { self.to.clone() } else { format!("{} with {}", self.to, others.join(", ")) }
    }
}

/// Number of keys to suggest.
pub const TOLD: usize = 3;
/// Least share of time at which a key is suggested: *chosen*.
const LEAST: f64 = 0.05;

/// Lists all keys worth a try, the one with the largest share of time first.
pub fn worth(document: &Value) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for rule in RULES {
        let share = share::of(rule.on, document);
        if share < LEAST || (rule.is_pointless)(document) {
            continue;
        }
        let Some(key) = rule.key(document, share) else { continue };
        match keys.iter_mut().find(|known| known.key == key.key) {
            Some(known) => known.share += share,
            None => keys.push(key),
        }
    }
    keys.sort_by(|a, b| b.share.total_cmp(&a.share));
    for key in &mut keys {
        key.why = format!("{}; {} of the time depends on it", key.why, percent(key.share.min(1.0)));
    }
    keys
}

impl Rule {
    /// Suggests a value for the machine of a document; `None` if its parts have no such value, or one that leaves
    /// nothing to try.
    fn key(&self, document: &Value, share: f64) -> Option<Key> {
        let all = present(document, self.key);
        let mut set = Vec::new();
        let mut first = None;
        for (key, now) in &all {
            let Some(to) = self.change.of(now) else { continue };
            set.push(format!("{key}={to}"));
            first = first.or(Some((key.clone(), now.clone(), to)));
        }
        let (key, now, to) = first?;
        if let Some((other, value)) = self.with {
            let needed = present(document, other).into_iter().filter(|(_, now)| said(now) == "0");
            set.extend(needed.map(|(key, _)| format!("{key}={value}")));
        }
        Some(Key { key, now, to, set, why: self.what.to_owned(), share })
    }
}

/// Values of a key in each part of its kind, with that part's key.
fn present(document: &Value, key: &str) -> Vec<(String, Value)> {
    let Some((kind, rest)) = key.split_once('.') else { return Vec::new() };
    let tables = document.get("spec").and_then(Value::as_object);
    let of_kind = tables
        .into_iter()
        .flatten()
        .filter(|(name, table)| table.get("kind").and_then(Value::as_str).unwrap_or(name) == kind);
    let value = |(name, table): (&String, &Value)| {
        let value = rest.split('.').try_fold(table, |at, name| at.get(name))?;
        (!value.is_null()).then(|| (format!("{name}.{rest}"), value.clone()))
    };
    of_kind.filter_map(value).collect()
}

// Values to try in place of the spec's.

/// Change to try. Each variant skips values that leave nothing to try.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Double, up to a maximum.
    Double(f64),
    /// Half, down to a minimum.
    Halve(f64),
    /// Given value. A policy of this name, whatever its parameters, counts as already set; so do the others.
    Set(&'static str, &'static [&'static str]),
}

impl Change {
    /// Doubles without a limit.
    pub(super) const MORE: Change = Change::Double(f64::INFINITY);
    /// Halves without a limit.
    pub(super) const LESS: Change = Change::Halve(0.0);

    /// Returns the value to try in place of the current one, as `--set` takes it; `None` if nothing is left to try.
    pub(super) fn of(self, now: &Value) -> Option<String> {
        let text = match self {
            Change::Double(most) => scaled(now, 2.0, |number| number <= most)?,
            Change::Halve(least) => scaled(now, 0.5, |number| number >= least)?,
            Change::Set(value, as_good) => {
                let name = name(now)?;
                let is_done = name == value || as_good.contains(&name.as_str());
                (!is_done).then(|| value.to_owned())?
            }
        };
        (text != said(now)).then_some(text)
    }
}

/// Name of a value: of a policy with parameters, the policy's name.
fn name(now: &Value) -> Option<String> {
    match now {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(now.to_string()),
        Value::Object(table) if table.len() == 1 => table.keys().next().cloned(),
        _ => None,
    }
}

/// A value as a user writes it.
pub(crate) fn said(now: &Value) -> String {
    now.as_str().map_or_else(|| now.to_string(), str::to_owned)
}

/// Multiplies every number of a value by a factor; `None` without a number, with a zero, or if a product is not
/// allowed.
pub(crate) fn scaled(now: &Value, factor: f64, allowed: impl Fn(f64) -> bool + Copy) -> Option<String> {
    match now {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64()?;
            let to = number * factor;
            (number > 0.0 && allowed(to)).then(|| to.to_string())
        }
        Value::Number(number) => {
            // Whole numbers stay whole: one cannot be halved.
            let number = number.as_u64().filter(|number| *number > 0)?;
            let to = number as f64 * factor;
            (to >= 1.0 && allowed(to)).then(|| to.floor().to_string())
        }
        Value::String(text) => {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, unit) = text.split_at(end);
            let number: f64 = number.parse().ok()?;
            let to = number * factor;
            (number > 0.0 && allowed(to)).then(|| format!("{to}{unit}"))
        }
        Value::Array(all) if !all.is_empty() => {
            let all = all.iter().map(|one| {
                let to = scaled(one, factor, allowed)?;
                Some(if one.is_string() { format!("\"{to}\"") } else { to })
            });
            Some(format!("[{}]", all.collect::<Option<Vec<_>>>()?.join(", ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::rules::{On, RULES},
        Change,
    };
    use crate::catalogue::params;
    use crate::result::metrics::MILESTONES;
    use programs::host::offload::Phase;
    use serde_json::json;

    /// Rules name existing keys of the spec, and times that documents report.
    #[test]
    fn every_key_and_every_milestone_of_a_rule_is_one() {
        let keys: Vec<String> = params().into_iter().map(|param| param.key).collect();
        for rule in RULES {
            for key in [Some(rule.key), rule.with.map(|(key, _)| key)].into_iter().flatten() {
                assert!(keys.iter().any(|known| known == key), "no key is called `{key}`");
            }
            let is_known = match rule.on {
                On::Request(name) | On::Kind(_, name) | On::Behind(name, _) => {
                    MILESTONES.iter().any(|(known, _)| *known == name)
                }
                On::Access(name) => proto::memory::Stage::NAMES.contains(&name),
                On::Core(name) => compute::ooo::Spent::NAMES.contains(&name),
                On::Phase(name) => Phase::ALL.iter().any(|phase| phase.name() == name),
                On::Issue | On::Kernel(_) | On::Refaults | On::Pauses => true,
            };
            assert!(is_known, "{:?} of `{}` is reported by no run", rule.on, rule.key);
            if let On::Behind(_, behind) = rule.on {
                assert!(behind.iter().all(|name| proto::Holder::NAMES.contains(name)), "{behind:?}");
            }
        }
    }

    /// Latency of requests through a kernel depends on the kernel's own costs.
    #[test]
    fn the_way_past_a_kernel_is_not_proposed_for_the_way_through_it() {
        let host = |kernel: serde_json::Value| serde_json::json!({ "host": kernel });
        let rule = RULES.iter().find(|rule| rule.key == "host.submit").expect("a rule");
        assert!(!(rule.is_pointless)(&host(serde_json::json!([]))));
        assert!((rule.is_pointless)(&host(serde_json::json!([{ "drives": [] }]))));
    }

    /// The present value decides what to try: nothing for zero, nothing for what is set, whatever its parameters.
    #[test]
    fn what_is_tried_is_never_what_is_there() {
        let halved = |now| Change::LESS.of(&now);
        assert_eq!(halved(json!("58us")).as_deref(), Some("29us"));
        assert_eq!(halved(json!(["58us", "78us"])).as_deref(), Some("[\"29us\", \"39us\"]"));
        assert_eq!(halved(json!("6.8us")).as_deref(), Some("3.4us"));
        assert_eq!(halved(json!(8)).as_deref(), Some("4"));
        for nothing in
            [json!("0ps"), json!(0), json!(1), json!(0.0), json!("none"), json!([]), json!(["0us"])]
        {
            assert_eq!(halved(nothing.clone()), None, "{nothing}");
        }
        assert_eq!(Change::MORE.of(&json!("400MT/s")).as_deref(), Some("800MT/s"));
        assert_eq!(Change::MORE.of(&json!(0.25)).as_deref(), Some("0.5"));
        assert_eq!(Change::Double(16.0).of(&json!(16)), None);
        assert_eq!(Change::Double(16.0).of(&json!(8)).as_deref(), Some("16"));
        let first = Change::Set("read_first", &["priority"]);
        assert_eq!(first.of(&json!("oldest")).as_deref(), Some("read_first"));
        for done in [json!("read_first"), json!({"read_first": {"max_wait": "5ms"}}), json!({"priority": {}})]
        {
            assert_eq!(first.of(&done), None, "{done}");
        }
        assert_eq!(Change::Set("true", &[]).of(&json!(true)), None);
        assert_eq!(Change::Set("true", &[]).of(&json!(false)).as_deref(), Some("true"));
    }
}
