//! XML of SimpleSSD's branch 2.1: nested sections, translated to the names of branch 2.0.

use crate::setting::{Values, unless};
use crate::xml::{Xml, cleaned, elements, text_of};
use config::{Diagnostic, Place};
use roxmltree::Node;

/// Reading rule for the text of a setting.
#[derive(Clone, Copy)]
enum As {
    /// Unchanged, except for size suffixes and yes or no.
    Same,
    /// Time, in picoseconds without a suffix.
    Time,
    /// Transfers per second.
    Rate,
    /// Index into a different list, with the values of branch 2.0 in that order.
    Numbers(&'static [&'static str]),
}

/// Names of branch 2.1, names of branch 2.0, and the reading rule, one per line.
const NAMES: &[(&str, &str, As)] = &[
    ("fil.Channel", "pal.Channel", As::Same),
    ("fil.Way", "pal.Package", As::Same),
    ("fil.nand.Die", "pal.Die", As::Same),
    ("fil.nand.Plane", "pal.Plane", As::Same),
    ("fil.nand.Block", "pal.Block", As::Same),
    ("fil.nand.Page", "pal.Page", As::Same),
    ("fil.nand.PageSize", "pal.PageSize", As::Same),
    ("fil.nand.DMASpeed", "pal.DMASpeed", As::Rate),
    ("fil.nand.DataWidth", "pal.DMAWidth", As::Same),
    ("fil.nand.NANDType", "pal.NANDType", As::Same),
    ("fil.nand.PageAllocation", "pal.PageAllocation", As::Same),
    ("fil.nand.timing.tBERS", "pal.Erase", As::Time),
    ("fil.nand.timing.tPROG.0", "pal.LSBWrite", As::Time),
    ("fil.nand.timing.tPROG.1", "pal.CSBWrite", As::Time),
    ("fil.nand.timing.tPROG.2", "pal.MSBWrite", As::Time),
    ("fil.nand.timing.tR.0", "pal.LSBRead", As::Time),
    ("fil.nand.timing.tR.1", "pal.CSBRead", As::Time),
    ("fil.nand.timing.tR.2", "pal.MSBRead", As::Time),
    ("ftl.MappingMode", "ftl.MappingMode", As::Same),
    ("ftl.common.OverProvisioningRatio", "ftl.OverProvisioningRatio", As::Same),
    ("ftl.common.SuperpageAllocation", "pal.SuperblockSize", As::Same),
    ("ftl.background.gc.trigger.ForegroundThreshold", "ftl.GCThreshold", As::Same),
    (
        "ftl.background.gc.blockselection.VictimSelectionPolicy",
        "ftl.EvictPolicy",
        As::Numbers(&["0", "2", "1", "3"]),
    ),
    ("ftl.background.gc.blockselection.SamplingFactor", "ftl.DChoiceParam", As::Same),
    ("ftl.warmup.FillingMode", "ftl.FillingMode", As::Same),
    ("ftl.warmup.FillRatio", "ftl.FillRatio", As::Same),
    ("ftl.warmup.InvalidPageRatio", "ftl.InvalidPageRatio", As::Same),
    ("icl.CacheMode", "icl.EnableWriteCache", As::Numbers(&["0", "1", "1"])),
    ("icl.CacheSize", "icl.CacheSize", As::Same),
    ("icl.prefetch.EnableReadPrefetch", "icl.EnableReadPrefetch", As::Same),
    ("icl.prefetch.PrefetchCount", "icl.ReadPrefetchCount", As::Same),
    ("icl.eviction.EvictPolicy", "icl.EvictPolicy", As::Numbers(&["1", "2"])),
    ("icl.setassoc.WaySize", "icl.CacheWaySize", As::Same),
];
/// Sections whose settings are reported as omitted, not refused.
const LEFT: [&str; 7] = ["sim", "cpu", "memory", "hil", "icl", "fil", "ftl"];
/// Maximum nesting of sections.
const DEPTH: usize = 16;

/// Reads the settings of flash, translation and buffer; the names of all others go into a remark.
///
/// # Errors
/// Faults of branch 2.0.
pub(super) fn read(
    name: &str,
    text: &str,
    values: &mut Values,
    remarks: &mut Vec<String>,
) -> Result<(), Diagnostic> {
    let text = cleaned(text);
    let xml = Xml::read(name, &text)?;
    let root = xml.root();
    if !root.has_tag_name("simplessd") {
        let found = root.tag_name().name();
        let help = match found {
            "Execution_Parameter_Set" | "MQSim_IO_Scenarios" => {
                "this is an MQSim file: `nandscape import mqsim FILE`"
            }
            _ => "its root must be <simplessd>",
        };
        return Err(Diagnostic::new(format!("{name} is not a SimpleSSD file: its root is <{found}>"))
            .at(xml.place(root))
            .help(help));
    }
    let mut reading = Reading { xml: &xml, values, left: Vec::new(), faults: Vec::new() };
    reading.section(root, "", 0);
    let Reading { left, faults, .. } = reading;
    unless((), faults)?;
    // An enabled buffer also keeps reads; with two kinds of pages, the upper one is MSB.
    if values.is_given("icl.EnableWriteCache") && values.flag("icl.EnableWriteCache") {
        values.take("SimpleSSD", "icl.EnableReadCache", "true", &Place::default())?;
    }
    if values.whole("pal.NANDType") == 1 {
        for (upper, there) in [("pal.MSBRead", "pal.CSBRead"), ("pal.MSBWrite", "pal.CSBWrite")] {
            if values.is_given(there) && !values.is_given(upper) {
                let text = values.text(there).to_owned();
                values.take("SimpleSSD", upper, &text, &Place::default())?;
            }
        }
    }
    if !left.is_empty() {
        remarks.push(format!("from the XML of branch 2.1, the array, the mapping, GC and the buffer are read, and reported under their names of branch 2.0; not read, with defaults of branch 2.0: {}", left.join(", ")));
    }
    Ok(())
}

struct Reading<'a, 't> {
    xml: &'a Xml<'t>,
    values: &'a mut Values,
    left: Vec<String>,
    faults: Vec<Diagnostic>,
}

impl Reading<'_, '_> {
    fn section(&mut self, node: Node<'_, '_>, path: &str, depth: usize) {
        for inner in elements(node) {
            let name = inner.attribute("name").unwrap_or_default();
            let whole = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let place = self.xml.place(inner);
            match inner.tag_name().name() {
                "section" if depth == 0 && !LEFT.contains(&name) => {
                    self.faults.push(
                        Diagnostic::new(format!("`{name}` is not a section of SimpleSSD"))
                            .at(place)
                            .allowed(name, LEFT),
                    );
                }
                "section" if depth < DEPTH => self.section(inner, &whole, depth + 1),
                "config" => self.setting(inner, whole, &place),
                other => {
                    let what = format!("<{other}> is not an element that SimpleSSD reads here");
                    self.faults.push(Diagnostic::new(what).at(place).allowed(other, ["section", "config"]));
                }
            }
        }
    }

    fn setting(&mut self, node: Node<'_, '_>, mut name: String, place: &Place) {
        if let Some(level) = node.attribute("level") {
            name = format!("{name}.{level}");
        }
        let text = text_of(node);
        let Some((_, ours, how)) = NAMES.iter().find(|(theirs, ..)| *theirs == name) else {
            self.left.push(name);
            return;
        };
        if text.is_empty() {
            return;
        }
        let taken = said(text, *how)
            .ok_or_else(|| Diagnostic::new(format!("`{name}` cannot be `{text}`")).at(place.clone()))
            .and_then(|said| self.values.take("SimpleSSD", ours, &said, place));
        if let Err(fault) = taken {
            self.faults.push(fault);
        }
    }
}

/// Translates the text of a setting to branch 2.0.
fn said(text: &str, how: As) -> Option<String> {
    match how {
        As::Same => Some(
            scaled(
                text,
                &[
                    ("K", 1 << 10),
                    ("M", 1 << 20),
                    ("G", 1 << 30),
                    ("k", 1000),
                    ("m", 1_000_000),
                    ("g", 1_000_000_000),
                ],
            )
            .unwrap_or(text.to_owned()),
        ),
        As::Time => scaled(
            text,
            &[
                ("ps", 1),
                ("ns", 1000),
                ("us", 1_000_000),
                ("ms", 1_000_000_000),
                ("s", 1_000_000_000_000),
                ("", 1),
            ],
        ),
        As::Rate => {
            let whole = scaled(text, &[("k", 1000), ("m", 1_000_000), ("g", 1_000_000_000), ("", 1)])?;
            Some((whole.parse::<u64>().ok()? / 1_000_000).max(1).to_string())
        }
        As::Numbers(ours) => ours.get(text.parse::<usize>().ok()?).map(|text| (*text).to_owned()),
    }
}

/// Scales a number with one of these suffixes to a whole number.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<String> {
    units.iter().find_map(|(suffix, unit)| {
        let digits = text.strip_suffix(suffix)?;
        let number: u64 = digits.trim().parse().ok()?;
        number.checked_mul(*unit).map(|number| number.to_string())
    })
}
