//! Machines next to a machine: each number of its spec made smaller and larger by a factor, one key at a time.

use super::Plan;
use crate::result::told::{said, scaled};
use config::Diagnostic;
use serde::Serialize;
use serde_json::Value;

/// A key with a number, and the two values next to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearby {
    /// Key of the spec.
    pub key: String,
    /// Value in the machine.
    pub now: String,
    /// Smaller value, as `--set` takes it; none where a whole number cannot get smaller.
    pub less: Option<String>,
    /// Larger value.
    pub more: Option<String>,
}

/// Tables that bear on no time: prices of energy.
const APART: &str = "energy";

/// Every key of a plan's machine with a number above zero, with its value over and times `factor`. `below` selects keys by their
/// beginnings, in whole names; all if it is empty. Prices of energy are left out unless they are selected.
///
/// # Errors
/// An unusable system; a selection without such a key; a factor of one or less.
pub fn nearby(plan: &Plan, below: &[String], factor: f64) -> Result<Vec<Nearby>, Diagnostic> {
    if !(factor > 1.0 && factor.is_finite()) {
        return Err(Diagnostic::new(format!("the factor is {factor}: it must be above 1"))
            .help("2 halves and doubles each number; 1.1 changes it by a tenth"));
    }
    let spec = plan.load()?.spec.to_json();
    let (mut all, mut found) = (Vec::new(), Vec::new());
    collect("", &spec, &mut all);
    for (key, now) in &all {
        let is_selected = if below.is_empty() {
            !key.split('.').any(|name| name == APART)
        } else {
            below.iter().any(|start| begins(key, start))
        };
        let [less, more] =
            [1.0 / factor, factor].map(|by| scaled(now, by, |_| true).filter(|to| *to != said(now)));
        if is_selected && (less.is_some() || more.is_some()) {
            found.push(Nearby { key: key.clone(), now: said(now), less, more });
        }
    }
    if let Some(start) = below.iter().find(|start| !found.iter().any(|one| begins(&one.key, start))) {
        let mut fault = Diagnostic::new(format!("no key with a number above zero begins with `{start}`"))
            .allowed(start, all.iter().map(|(key, _)| key.clone()));
        fault.allowed.clear();
        return Err(fault.help("`nandscape check SYSTEM` prints every key of a system"));
    }
    Ok(found)
}

/// Returns whether `start` is the key or its beginning, in whole names.
fn begins(key: &str, start: &str) -> bool {
    key.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn collect(key: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(table) => {
            for (name, inner) in table {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                collect(&key, inner, found);
            }
        }
        leaf => found.push((key.to_owned(), leaf.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(below: &[&str], factor: f64) -> Result<Vec<Nearby>, Diagnostic> {
        let below: Vec<String> = below.iter().map(|&start| start.to_owned()).collect();
        nearby(&Plan::new("d16", "randread"), &below, factor)
    }

    #[test]
    fn each_number_has_its_neighbours() {
        let all = of(&[], 2.0).unwrap();
        let named = |key: &str| all.iter().find(|one| one.key == key);
        let read = named("flash.cell.read").unwrap();
        assert_eq!((read.less.as_deref(), read.more.as_deref()), (Some("[\"25us\"]"), Some("[\"100us\"]")));
        // One way cannot be half; zero times stay zero; words are not numbers.
        let dies = named("flash.geometry.dies").unwrap();
        assert_eq!((dies.less.as_deref(), dies.more.as_deref()), (None, Some("2")));
        assert!(named("host.submit").is_none() && named("flash.ftl.stripe").is_none());
    }

    #[test]
    fn a_selection_is_of_whole_names_and_must_select() {
        let keys: Vec<String> =
            of(&["flash.geometry"], 2.0).unwrap().into_iter().map(|one| one.key).collect();
        assert!(keys.len() > 3 && keys.iter().all(|key| key.starts_with("flash.geometry.")), "{keys:?}");
        let fault = of(&["flash.geo"], 2.0).unwrap_err().to_string();
        assert!(fault.contains("begins with `flash.geo`"), "{fault}");
        assert!(of(&[], 1.0).is_err());
    }
}
