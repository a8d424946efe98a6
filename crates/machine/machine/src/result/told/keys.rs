//! Which keys are worth changing: of what time is spent on, those that bear on it, with what they say now and what to try.

use super::change::said;
use super::rules::{RULES, Rule};
use super::share;
use super::words::percent;
use serde_json::Value;

/// A key that is worth a try.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Key {
    /// The key: that of the first part, where parts of its kind have names of their own.
    pub key: String,
    /// What it says now.
    pub now: Value,
    /// The value to try, as `--set` takes it. It is another than the present one.
    pub to: String,
    /// The overrides to try: the key of each part of its kind, and what it needs.
    pub set: Vec<String>,
    /// Why.
    pub why: String,
    /// The share of time that hangs on it; of requests, those that are slow counted as much as all together.
    pub share: f64,
}

impl Key {
    /// What it says now, as a user writes it.
    pub fn says(&self) -> String {
        said(&self.now)
    }

    /// The value to try, with what else must be set.
    pub fn tries(&self) -> String {
        let name = self.key.split_once('.').map_or(self.key.as_str(), |(_, rest)| rest);
        let is_other = |set: &&String| !set.split('=').next().is_some_and(|key| key.ends_with(name));
        let others: Vec<&str> = self.set.iter().filter(is_other).map(String::as_str).collect();
        if others.is_empty() { self.to.clone() } else { format!("{} with {}", self.to, others.join(", ")) }
    }
}

/// Keys that are told.
pub const TOLD: usize = 3;
/// Least share of time that a key is worth a word for: *chosen*.
const LEAST: f64 = 0.05;

/// All keys that are worth a try, the one that most time hangs on first.
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
        key.why = format!("{}; {} of the time hangs on it", key.why, percent(key.share.min(1.0)));
    }
    keys
}

impl Rule {
    /// What is to be tried on the machine of a document; none where its parts say no such value, or one that leaves nothing to try.
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

/// What a key says in each part of its kind, with the key of that part.
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

#[cfg(test)]
mod tests {
    use super::super::rules::{On, RULES};
    use crate::catalogue::params;
    use crate::result::metrics::MILESTONES;
    use programs::host::offload::Phase;

    /// What a rule names is there: its keys are keys of the spec, what time is spent on is what documents report.
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

    /// The time of requests through a kernel hangs on its own costs.
    #[test]
    fn the_way_past_a_kernel_is_not_proposed_for_the_way_through_it() {
        let host = |kernel: serde_json::Value| serde_json::json!({ "host": kernel });
        let rule = RULES.iter().find(|rule| rule.key == "host.submit").expect("a rule");
        assert!(!(rule.is_pointless)(&host(serde_json::json!([]))));
        assert!((rule.is_pointless)(&host(serde_json::json!([{ "drives": [] }]))));
    }
}
