//! Which keys are worth changing: of what time is spent on, those that bear on it, with what they say now.

use super::words::{parts, percent};
use super::{AMPLIFIED, KINDS, drives, number};
use serde_json::Value;

/// A key that is worth a try.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Key {
    /// The key.
    pub key: String,
    /// What it says now; null where the spec does not say.
    pub now: Value,
    /// What to try, and why.
    pub why: String,
    /// The share of the requests' time that hangs on it, those that are slow counted as much as all together.
    pub share: f64,
}

/// What time is spent on, and the key that bears on it.
struct Rule {
    milestone: &'static str,
    /// Of a wait at a die or a channel: behind whom; any if empty.
    behind: &'static [&'static str],
    key: &'static str,
    what: &'static str,
    /// Values that leave nothing to try.
    done: &'static [&'static str],
}

const fn rule(milestone: &'static str, key: &'static str, what: &'static str) -> Rule {
    Rule { milestone, behind: &[], key, what, done: &[] }
}

const COLLECTION: &[&str] = &["collection_read", "collection_program", "erase"];
const PROGRAMS: &[&str] = &["collection_program", "host_program"];

const RULES: &[Rule] = &[
    Rule {
        behind: COLLECTION,
        ..rule(
            "die_wait",
            "flash.ftl.over_provisioning",
            "more spare space: less to move for a block that is freed",
        )
    },
    Rule {
        behind: PROGRAMS,
        done: &["true"],
        ..rule(
            "die_wait",
            "flash.die.suspend.program",
            "`true`: reads interrupt programs, each as often as `flash.die.suspend.limit` allows",
        )
    },
    Rule {
        behind: PROGRAMS,
        done: &["read_first", "priority"],
        ..rule("die_wait", "flash.die.scheduler", "`read_first`: reads go before programs that wait")
    },
    Rule {
        behind: &["erase"],
        done: &["true"],
        ..rule(
            "die_wait",
            "flash.die.suspend.erase",
            "`true`: reads interrupt erases, each as often as `flash.die.suspend.limit` allows",
        )
    },
    Rule {
        behind: &["host_read"],
        ..rule("die_wait", "flash.geometry.ways", "more dies: reads spread over them")
    },
    Rule {
        behind: &["host_read"],
        done: &["true"],
        ..rule("die_wait", "flash.die.independent_reads", "`true`: planes of a die read by themselves")
    },
    Rule {
        behind: &["mapping"],
        ..rule(
            "die_wait",
            "flash.ftl.mapping.demand.capacity",
            "a larger map cache: fewer mapping pages are read",
        )
    },
    Rule {
        behind: &["look_ahead"],
        ..rule(
            "die_wait",
            "flash.buffer.look_ahead",
            "`off`, or a smaller window: reads ahead take dies from others",
        )
    },
    Rule { behind: &["channel"], ..rule("die_wait", "flash.channel.rate", "a faster channel") },
    rule("channel_wait", "flash.channel.rate", "a faster channel"),
    rule("channel", "flash.channel.rate", "a faster channel"),
    rule("channel_wait", "flash.geometry.channels", "more channels"),
    rule("array", "flash.cell.read", "a faster cell; for writes `flash.cell.program`"),
    rule("host_transfer", "flash.host.link", "a faster link"),
    rule("controller", "flash.host.controller.cores", "more cores"),
    rule("submission", "flash.host.nvme.in_controller", "more commands inside the controller"),
    rule("submission", "flash.host.ahci.command", "an adapter that sends commands sooner"),
    rule("mapping", "flash.ftl.mapping.demand.capacity", "a larger map cache"),
    rule(
        "buffer",
        "flash.buffer.capacity",
        "a larger buffer takes longer bursts; in the long run flash must take what comes",
    ),
    rule(
        "durable",
        "flash.buffer.protected",
        "`true`: what the buffer holds survives a loss of power, and flushes need not wait",
    ),
    rule("space", "flash.ftl.over_provisioning", "more spare space"),
    rule("space", "flash.ftl.gc.start", "collection that begins earlier"),
    rule("merge", "flash.ftl.map_unit", "a smaller map unit: fewer units are written in part"),
    rule("host", "host.submit", "a shorter way through the host's software"),
];

/// Keys that are told.
const TOLD: usize = 3;
/// Least share of time that a key is worth a word for: *chosen*.
const LEAST: f64 = 0.05;

/// Every key that a rule names.
#[cfg(test)]
pub(super) fn named() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.key)
}

/// The keys most worth changing.
pub(super) fn worth(document: &Value) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for rule in RULES {
        let share = rule.share(document);
        if share < LEAST {
            continue;
        }
        let Some(now) = present(document, rule.key) else { continue };
        let says = now.as_str().map_or_else(|| now.to_string(), str::to_owned);
        // Spare space helps where something is moved.
        let pointless = rule.behind == COLLECTION && !is_amplified(document);
        if rule.done.contains(&says.as_str()) || pointless {
            continue;
        }
        match keys.iter_mut().find(|key| key.key == rule.key) {
            Some(key) => key.share += share,
            None => keys.push(Key { key: rule.key.to_owned(), now, why: rule.what.to_owned(), share }),
        }
    }
    keys.sort_by(|a, b| b.share.total_cmp(&a.share));
    keys.truncate(TOLD);
    for key in &mut keys {
        key.why = format!("{}; {} of the time hangs on it", key.why, percent(key.share.min(1.0)));
    }
    keys
}

fn is_amplified(document: &Value) -> bool {
    drives(document).any(|drive| number(drive, "/write_amplification").is_some_and(|waf| waf >= AMPLIFIED))
}

impl Rule {
    /// The share of time that hangs on it: the mean of that of all requests of each kind and that of the slowest hundredth, weighted by how
    /// much each kind waits in all.
    fn share(&self, document: &Value) -> f64 {
        let (mut part, mut whole) = (0.0, 0.0);
        for kind in KINDS {
            let latency = number(document, &format!("/io/{kind}/latency_ns/mean"));
            let requests = number(document, &format!("/io/{kind}/requests"));
            let Some(weight) = latency.zip(requests).map(|(latency, requests)| latency * requests) else {
                continue;
            };
            whole += weight;
            let slow = document.pointer(&format!("/io/{kind}/tail/0"));
            let behind = slow.map_or(1.0, |slow| self.behind(slow));
            let all =
                document.pointer(&format!("/breakdown_ns/{kind}")).map(|of| share_of(of, self.milestone));
            let tail = slow.and_then(|slow| slow.get("breakdown_ns")).map(|of| share_of(of, self.milestone));
            let shares: Vec<f64> = all.into_iter().chain(tail).collect();
            part += weight * behind * shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        }
        if whole > 0.0 { part / whole } else { 0.0 }
    }

    /// The share of slow requests' wait that is behind those that the rule is about. It is not known of all requests, and taken for theirs.
    fn behind(&self, slow: &Value) -> f64 {
        if self.behind.is_empty() {
            return 1.0;
        }
        let at = if self.milestone == "channel_wait" { "channel" } else { "die" };
        let Some(all) = slow.get("blocked_ns").and_then(|blocked| blocked.get(at)) else { return 0.0 };
        self.behind.iter().map(|holder| share_of(all, holder)).sum()
    }
}

/// The share of one part in all of them.
fn share_of(of: &Value, name: &str) -> f64 {
    let all = parts(of);
    let total: f64 = all.iter().map(|(_, part)| part).sum();
    let part = all.iter().find(|(part, _)| *part == name).map_or(0.0, |(_, part)| *part);
    if total > 0.0 { part / total } else { 0.0 }
}

/// What a key says in the document's spec: of the first part of its kind, where parts have names.
fn present(document: &Value, key: &str) -> Option<Value> {
    let mut names = key.split('.');
    let kind = document.get("spec")?.get(names.next()?)?;
    let rest: Vec<&str> = names.collect();
    let find = |part: &Value| rest.iter().try_fold(part, |at, name| at.get(name)).cloned();
    let found = find(kind).or_else(|| kind.as_object()?.values().find_map(find));
    found.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::named;
    use crate::catalogue::params;

    #[test]
    fn every_key_that_is_told_is_a_key_of_the_spec() {
        let keys: Vec<String> = params().into_iter().map(|param| param.key).collect();
        for key in named() {
            assert!(keys.iter().any(|known| known == key), "`{key}` is no key");
        }
    }
}
