//! Modules point one way as well, where floors are listed here: inside crates, and inside modules.

use super::Finding;
use super::tree::{Mask, Tree, line_of};
use std::collections::BTreeSet;

/// Module, or crate root, whose modules have floors.
struct House {
    /// Folder of its files.
    folder: &'static str,
    /// Path inside its crate; empty for the root.
    path: &'static [&'static str],
    /// Modules with their floors. A module imports only modules of lower floors.
    floors: &'static [(&'static str, u8)],
    /// Name of the layer above all these, which needs no floor; `None` if every module has one.
    above: Option<&'static str>,
}

const HOUSES: &[House] = &[
    // Events and messages; parts; from a spec to parts, the router; the loop.
    House {
        folder: "crates/machine/machine/src/",
        path: &[],
        floors: &[("wires", 1), ("parts", 2), ("build", 5), ("route", 5), ("machine", 6)],
        above: Some("the machine"),
    },
    // What holds a processor, or a drive of its own; memories.
    House {
        folder: "crates/machine/machine/src/parts/",
        path: &["parts"],
        floors: &[("complex", 0), ("driven", 0), ("governed", 0), ("pager", 0), ("memory", 1)],
        above: Some("the parts"),
    },
    // Checks and ports; what looks on; what is built of media and translation: the drive and flash as memory; its spec;
    // what has its cells and channels, too.
    House {
        folder: "crates/parts/ssd/src/",
        path: &[],
        floors: &[
            ("check", 0),
            ("port", 1),
            ("shadow", 1),
            ("device", 2),
            ("direct", 2),
            ("spec", 3),
            ("page_groups", 4),
            ("soak", 4),
        ],
        above: None,
    },
    // Where things are; what survives a power cut; dies on channels; planes on a network, with registers.
    House {
        folder: "crates/parts/nand/src/",
        path: &[],
        floors: &[
            ("numbers", 0),
            ("sparse", 0),
            ("geometry", 1),
            ("base", 2),
            ("registers", 2),
            ("array", 3),
            ("dies", 4),
            ("planes", 5),
        ],
        above: None,
    },
    // Maps and buffers, each on its own; what comes back after a power cut.
    House {
        folder: "crates/parts/ftl/src/",
        path: &[],
        floors: &[
            ("buffer", 0),
            ("page_groups", 0),
            ("log", 0),
            ("purpose", 0),
            ("page_map", 1),
            ("recovery", 2),
        ],
        above: None,
    },
    // Reclaim units: one of them and their orders, what policies see of those that are closed, the groups that hold
    // them.
    House {
        folder: "crates/parts/ftl/src/page_map/",
        path: &["page_map"],
        floors: &[("units", 0), ("closed", 1), ("space", 2)],
        above: Some("the account of reclaim units"),
    },
    // Policies and counts; the spec, which names policies; a multiprocessor; who gets which block.
    House {
        folder: "crates/parts/compute/src/simt/",
        path: &["simt"],
        floors: &[
            ("blocks", 0),
            ("kernels", 0),
            ("sched", 0),
            ("stats", 0),
            ("spec", 1),
            ("sm", 2),
            ("dispatch", 3),
        ],
        above: None,
    },
    // The same for cores: threads and their window, a core, what it does with an operation and with an answer.
    House {
        folder: "crates/parts/compute/src/ooo/",
        path: &["ooo"],
        floors: &[
            ("sched", 0),
            ("window", 0),
            ("spec", 1),
            ("l1", 2),
            ("load", 2),
            ("core", 3),
            ("execute", 4),
            ("run", 4),
        ],
        above: None,
    },
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".rs")) {
        for house in HOUSES {
            let file = path.strip_prefix(house.folder).filter(|file| !is_test(file));
            if let Some(file) = file {
                findings.extend(house.check(path, file, text));
            }
        }
    }
    findings
}

fn is_test(file: &str) -> bool {
    file.trim_end_matches(".rs").split('/').any(|name| name == "tests" || name == "testing")
}

impl House {
    fn floor(&self, name: &str) -> Option<u8> {
        self.floors.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
    }

    /// Findings in a file below the folder.
    fn check(&self, path: &str, file: &str, text: &str) -> Vec<Finding> {
        let within: Vec<&str> =
            file.trim_end_matches(".rs").split('/').filter(|name| !matches!(*name, "mod" | "lib")).collect();
        let Some(name) = within.first() else { return Vec::new() };
        let Some(own) = self.floor(name) else {
            let missing = format!("module `{name}` has no floor; see HOUSES in rooms.rs");
            return if self.above.is_none() { vec![Finding::fail(path, 0, missing)] } else { Vec::new() };
        };
        let here: Vec<&str> = self.path.iter().chain(&within).copied().collect();
        let code = Mask::new(text).code;
        let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or("");
        let broken = imports(code, &here).filter_map(|(offset, target)| {
            let other = *target.strip_prefix(self.path)?.first()?;
            Some((line_of(code, offset), self.refusal(name, own, other)?))
        });
        let broken: BTreeSet<(usize, String)> = broken.collect();
        broken.into_iter().map(|(line, reason)| Finding::fail(path, line, reason)).collect()
    }

    /// Reason why a module must not import another, or an item of the root; `None` if it may.
    fn refusal(&self, name: &str, own: u8, other: &str) -> Option<String> {
        let top = self.floors.iter().map(|(_, floor)| *floor).max();
        match (self.floor(other), self.above) {
            _ if other == name => None,
            (Some(floor), _) if floor < own => None,
            (Some(floor), _) => Some(format!("`{name}` (floor {own}) imports `{other}` (floor {floor})")),
            // The highest floor is the root's own: parts of its types in files of their own.
            (None, None) if Some(own) == top => None,
            (None, None) => {
                Some(format!("`{name}` imports `{other}` from the root: name the module that defines it"))
            }
            (None, Some(above)) => Some(format!("`{name}` imports `{other}`, which is above {above}")),
        }
    }
}

/// Paths in code that start with `crate` or `super`, relative to the crate root, each with its offset.
fn imports<'a>(code: &'a str, here: &'a [&'a str]) -> impl Iterator<Item = (usize, Vec<&'a str>)> {
    let crates = code.match_indices("crate::").map(|(at, word)| (at, &code[at + word.len()..], 0));
    let supers = code.match_indices("super::").filter_map(|(at, _)| {
        if code[..at].ends_with("super::") {
            return None;
        }
        let rest = code[at..].trim_start_matches("super::");
        let steps = (code.len() - at - rest.len()) / "super::".len();
        Some((at, rest, here.len().checked_sub(steps)?))
    });
    crates.chain(supers).flat_map(move |(at, rest, kept)| {
        names(rest).into_iter().map(move |names| (at, here[..kept].iter().copied().chain(names).collect()))
    })
}

/// Paths at the beginning of a code: one, or those in braces.
fn names(code: &str) -> Vec<Vec<&str>> {
    let code = code.trim_start();
    if let Some(group) = code.strip_prefix('{') {
        return entries(group).into_iter().flat_map(names).collect();
    }
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let (first, rest) = code.split_at(end);
    match rest.strip_prefix("::") {
        _ if first.is_empty() => vec![Vec::new()],
        Some(rest) => names(rest).into_iter().map(|tail| [vec![first], tail].concat()).collect(),
        None => vec![vec![first]],
    }
}

/// Comma-separated texts, up to the end of the group.
fn entries(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut all) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                all.push(&group[from..at]);
                from = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, line: &str) -> Vec<String> {
        check(&Tree::planted(&[(path, line)])).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn lower_floors_and_a_module_s_own_files_are_allowed() {
        for (path, line) in [
            ("crates/machine/machine/src/route/line.rs", "use crate::parts::complex::Complex;"),
            (
                "crates/machine/machine/src/parts/complex/mod.rs",
                "use crate::parts::complex::lines;\n// crate::route",
            ),
            ("crates/machine/machine/src/result/mod.rs", "use crate::machine::Machine;"),
            (
                "crates/parts/nand/src/dies/planes.rs",
                "use super::{Backend, op::Op};\nuse crate::numbers::Positions;",
            ),
            ("crates/parts/ssd/src/port/tests.rs", "use crate::device::Device;"),
            ("crates/parts/ssd/src/lib.rs", "pub use device::Device;"),
            (
                "crates/parts/compute/src/simt/sm/issue.rs",
                "use super::{Env, Sm};\nuse crate::simt::sched::Warps;",
            ),
            ("crates/parts/compute/src/simt/dispatch.rs", "use super::{Gpu, blocks::Place};"),
            (
                "crates/parts/compute/src/simt/blocks/mod.rs",
                "#[cfg(test)]\nmod tests {\n    use super::Room;\n}",
            ),
        ] {
            assert_eq!(found(path, line), [""; 0], "{path}");
        }
    }

    #[test]
    fn a_part_that_knows_the_router_is_told() {
        assert_eq!(
            found("crates/machine/machine/src/parts/memory.rs", "use crate::route::Sender;"),
            ["`parts` (floor 2) imports `route` (floor 5)"]
        );
        assert_eq!(
            found("crates/machine/machine/src/parts/complex/ends.rs", "fn f(run: &crate::run::Plan) {}"),
            ["`parts` imports `run`, which is above the machine"]
        );
    }

    #[test]
    fn a_circle_is_told_whichever_way_it_is_written() {
        let back = "`base` (floor 2) imports `dies` (floor 4)";
        for line in [
            "use crate::dies::Event;",
            "use crate::{\n    geometry::Geometry,\n    dies::{Event, op::Op},\n};",
            "use super::super::dies::Event;",
            "use super::super::{geometry::Address, dies};",
        ] {
            assert_eq!(found("crates/parts/nand/src/base/written.rs", line), [back], "{line}");
        }
        assert_eq!(
            found("crates/parts/ssd/src/port/host.rs", "use crate::shadow::Shadow;"),
            ["`port` (floor 1) imports `shadow` (floor 1)"]
        );
        for line in ["use super::sm::{Needs, Sm};", "use crate::simt::{sched::Warps, sm::{Needs, Sm}};"] {
            let told = ["`blocks` (floor 0) imports `sm` (floor 2)"];
            assert!(
                found("crates/parts/compute/src/simt/blocks/mod.rs", line).ends_with(&told.map(String::from)),
                "{line}"
            );
        }
    }

    #[test]
    fn the_root_hides_no_module_and_every_module_has_a_floor() {
        assert_eq!(
            found("crates/parts/ssd/src/port/engine/stats.rs", "use crate::Check;"),
            ["`port` imports `Check` from the root: name the module that defines it"]
        );
        assert_eq!(
            found("crates/parts/compute/src/simt/cellar.rs", ""),
            ["module `cellar` has no floor; see HOUSES in rooms.rs"]
        );
    }
}
