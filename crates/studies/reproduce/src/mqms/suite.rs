//! What is run.

use super::super::reading::study;
use super::super::study::Point;
use super::super::{Effort, Reading};
use serde::Deserialize;

/// Networks of section 3, by the paper's names: one pair of sentences, tokens of a sentence, one image.
const NETWORKS: [(&str, &str); 3] =
    [("bert", "bert:pairs=1"), ("gpt2", "gpt2:sentences=1,tokens=2"), ("resnet50", "resnet50:images=1")];
/// The programs of section 4, by the paper's names.
pub(super) const PROGRAMS: [(&str, &str); 3] =
    [("backprop", "back:n=61440"), ("hotspot", "hotspot"), ("lavamd", "lavamd")];

/// What MQMS has and the baseline has not, each with how it is turned back.
pub(super) const SWITCHES: [(&str, &str); 3] = [
    ("allocation", "flash.ftl.allocation=striped"),
    ("map", "flash.ftl.map_unit=16KiB"),
    ("entrance", "memory.initiator.entrance=host"),
];

/// Neighbouring sectors in different planes, where the map is of sectors: the reading until 29 November 2026.
const STREWN: &str = "flash.precondition=interleaved";

/// What a reading says that no key does.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    /// What the drive's map is of in section 4.
    #[serde(default)]
    policy_map: MapOf,
}

/// What the drive's map is of.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MapOf {
    /// Pages: section 4 compares "page allocation schemes".
    Pages,
    /// Sectors, as MQMS has it elsewhere.
    #[default]
    Sectors,
}

/// What a study runs.
#[derive(Clone)]
pub(super) struct Suite {
    pub(super) networks: Vec<(&'static str, &'static str)>,
    /// Whether data that are read are strewn over planes on MQMS; else they lie in order. A map of pages knows no difference.
    is_strewn: bool,
    /// Whether rows under the other placement stand beside the paper's.
    pub(super) is_first: bool,
    /// What the drive's map is of in section 4.
    pub(super) policy_map: MapOf,
}

impl Suite {
    pub(super) fn of(effort: Effort, reading: &Reading) -> Suite {
        let networks = if effort == Effort::Quick { &NETWORKS[..1] } else { &NETWORKS[..] };
        let Study { policy_map } = study(&reading.choices);
        Suite { networks: networks.to_vec(), is_strewn: false, is_first: reading.is_first, policy_map }
    }

    /// The same with strewn data, if they stand beside.
    pub(super) fn strewn(&self) -> Option<Suite> {
        self.is_first.then(|| Suite { is_strewn: true, ..self.clone() })
    }

    /// What both placements are called in rows, each with its suite.
    pub(super) fn placed(&self, own: &'static str, strewn: &'static str) -> Vec<(&'static str, Suite)> {
        let beside = self.strewn().map(|suite| (strewn, suite));
        std::iter::once((own, self.clone())).chain(beside).collect()
    }

    /// A workload on a system.
    pub(super) fn point(&self, system: &str, workload: &str) -> Point {
        let set = if self.is_strewn && system == "mqms" { vec![STREWN.into()] } else { Vec::new() };
        Point { system: system.into(), set, workloads: vec![workload.into()], seed: 1, ..Point::default() }
    }

    /// A workload on MQMS of which only the switches named are on.
    pub(super) fn with(&self, on: &[&str], workload: &str) -> Point {
        let off = SWITCHES.iter().filter(|(name, _)| !on.contains(name));
        off.fold(self.point("mqms", workload), |point, (_, set)| point.set(set))
    }
}
