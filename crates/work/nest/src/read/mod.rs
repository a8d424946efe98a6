//! Reader of kernels: from text to a kernel, or to a diagnostic.

mod lower;
mod prove;
mod syntax;

use std::collections::BTreeMap;
use std::ops::Range;

use config::{Diagnostic, Layers, Place, Presets, Resolved};
use serde::Deserialize;

use crate::footprint::DIMENSIONS;
use crate::kernel::{Array, Element, Kernel, Loop, Microblock, Paper, Section, Split};
use crate::programs::programs;
use crate::{
    domain::is_small,
    lockstep::{Axis, fixed_bounds, forms, is_apart, level_of},
};
use lower::{Scope, Written};
use syntax::{FUNCTIONS, WORDS};

/// Maximum number of elements of an array: 2^40.
const MAX_ELEMENTS: u64 = 1 << 40;

/// Maximum number of microblocks of a kernel.
const MAX_MICROBLOCKS: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    sizes: BTreeMap<String, i64>,
    #[serde(default)]
    scalars: BTreeMap<String, f64>,
    arrays: BTreeMap<String, ArrayText>,
    microblocks: Vec<MicroblockText>,
    paper: Option<Paper>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrayText {
    shape: Vec<String>,
    element: Element,
    section: Section,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MicroblockText {
    #[serde(default)]
    about: String,
    split: Option<String>,
    repeat: Option<String>,
    /// True if repeated together with the previous entry, in turn.
    #[serde(default)]
    together: bool,
    code: String,
}

/// Kernels may inherit shipped ones, for example with other sizes.
struct Shipped;

impl Presets for Shipped {
    fn find(&self, name: &str) -> Option<(String, String)> {
        let text = programs().iter().find(|(own, _)| *own == name)?.1;
        Some((format!("programs/{name}.toml"), text.to_owned()))
    }
    fn names(&self) -> Vec<String> {
        programs().iter().map(|(name, _)| (*name).to_owned()).collect()
    }
}

impl Kernel {
    /// Reads a kernel from TOML; `file_name` is shown in diagnostics. `sizes` replace those of the text.
    ///
    /// # Errors
    /// If the text violates `docs/kernels.md`: the first fault, with file, line, column, what is allowed and the
    /// nearest spelling.
    pub fn read(text: &str, file_name: &str, sizes: &[(String, i64)]) -> Result<Kernel, Diagnostic> {
        let mut resolved = Layers::from_text(file_name, text, &Shipped)?;
        let mut parsed: Text = resolved.parse()?;
        for (name, size) in sizes {
            let Some(own) = parsed.sizes.get_mut(name) else {
                let what = format!("`{}` has no size `{name}`", parsed.name);
                return Err(Diagnostic::new(what).allowed(name, parsed.sizes.keys().cloned()));
            };
            *own = *size;
        }
        check_names(&parsed, &resolved)?;
        let arrays = arrays(&parsed, &resolved)?;
        let mut kernel = Kernel { arrays, ..Kernel::empty(&parsed) };
        let mut text = 0;
        while text < parsed.microblocks.len() {
            let rest = parsed.microblocks[text + 1..].iter();
            let below = text + 1 + rest.take_while(|one| one.together).count();
            read_microblocks(&mut kernel, &parsed, text..below, &resolved)?;
            text = below;
        }
        if kernel.microblocks.is_empty() {
            return Err(resolved.diagnose("microblocks", too_many()));
        }
        check_sections(&kernel, &resolved)?;
        Ok(kernel)
    }

    fn empty(parsed: &Text) -> Kernel {
        Kernel {
            name: parsed.name.clone(),
            about: parsed.about.clone(),
            sizes: parsed.sizes.iter().map(|(name, size)| (name.clone(), *size)).collect(),
            arrays: Vec::new(),
            microblocks: Vec::new(),
            paper: parsed.paper,
        }
    }
}

fn too_many() -> String {
    format!("a kernel has 1 to {MAX_MICROBLOCKS} microblocks")
}

/// Reads an entry of `microblocks`, or several entries repeated together: one microblock per entry and repetition, in
/// turn.
fn read_microblocks(
    kernel: &mut Kernel,
    parsed: &Text,
    texts: Range<usize>,
    resolved: &Resolved,
) -> Result<(), Diagnostic> {
    let first = texts.start;
    let repeat = parsed.microblocks[first].repeat.as_ref();
    for text in texts.clone() {
        let one = &parsed.microblocks[text];
        let what = match (one.together, &one.repeat) {
            (true, _) if repeat.is_none() => "the previous entry is not repeated",
            (true, Some(_)) => "an entry repeated together with the previous one takes its values",
            _ => continue,
        };
        let key = format!("microblocks.{text}.together");
        return Err(resolved
            .diagnose(&key, what)
            .help("put `together` on an entry after one with `repeat`, and leave its own `repeat` out"));
    }
    let mut sizes = parsed.sizes.clone();
    let mut values = 0..1;
    let mut repeated = None;
    if let Some(repeat) = repeat {
        let code = Code::new(repeat, resolved.place(&format!("microblocks.{first}.repeat")));
        let scope = Scope { sizes: &parsed.sizes, scalars: &parsed.scalars, arrays: &kernel.arrays };
        let (name, from, below) = syntax::range(&code)?;
        let is_known = sizes.contains_key(&name)
            || parsed.scalars.contains_key(&name)
            || parsed.arrays.contains_key(&name);
        if is_known {
            return Err(code.fault(0, format!("`{name}` is already defined")));
        }
        values = scope.number(&code, &from)?..scope.number(&code, &below)?;
        repeated = Some(name);
    }
    for value in values {
        if let Some(name) = &repeated {
            sizes.insert(name.clone(), value);
        }
        for text in texts.clone() {
            if kernel.microblocks.len() == MAX_MICROBLOCKS {
                return Err(resolved.diagnose("microblocks", too_many()));
            }
            let scope = Scope { sizes: &sizes, scalars: &parsed.scalars, arrays: &kernel.arrays };
            let microblock = read_microblock(&scope, &parsed.microblocks[text], text, resolved)?;
            kernel.microblocks.push(microblock);
        }
    }
    Ok(())
}

/// Reads an entry, with the value of its repetition among the sizes.
fn read_microblock(
    scope: &Scope<'_>,
    one: &MicroblockText,
    text: usize,
    resolved: &Resolved,
) -> Result<Microblock, Diagnostic> {
    let key = |name: &str| resolved.place(&format!("microblocks.{text}.{name}"));
    let code = Code::new(&one.code, key("code"));
    let (mut microblock, written) = lower::microblock(scope, &code)?;
    microblock.about.clone_from(&one.about);
    microblock.text = text;
    prove::subscripts(scope.arrays, &microblock, &code, &written)?;
    if let Some(split) = &one.split {
        microblock.split = Some(self::split(&mut microblock, split, key("split"), &code, &written)?);
    }
    Ok(microblock)
}

/// Returns true if a text is a valid name.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !WORDS.contains(&name)
        && !FUNCTIONS.contains(&name)
}

fn check_names(parsed: &Text, resolved: &Resolved) -> Result<(), Diagnostic> {
    let sizes = parsed.sizes.keys().map(|name| ("sizes", name));
    let scalars = parsed.scalars.keys().map(|name| ("scalars", name));
    let arrays = parsed.arrays.keys().map(|name| ("arrays", name));
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for (table, name) in sizes.chain(scalars).chain(arrays) {
        let key = format!("{table}.{name}");
        if !is_name(name) {
            let what = format!("`{name}` is not a valid name in the code");
            let help =
                "a name has letters, digits and `_`, does not begin with a digit, and is not a keyword";
            return Err(resolved.diagnose(&key, what).help(help));
        }
        if let Some(other) = known.insert(name, table) {
            return Err(resolved.diagnose(&key, format!("`{name}` is already in `{other}`")));
        }
    }
    match parsed.sizes.iter().find(|(_, size)| !is_small(size)) {
        Some((name, size)) => {
            let what = format!("`{name}` is {size}; a size is at most 2^40");
            Err(resolved.diagnose(&format!("sizes.{name}"), what))
        }
        None => Ok(()),
    }
}

fn arrays(parsed: &Text, resolved: &Resolved) -> Result<Vec<Array>, Diagnostic> {
    let mut arrays = Vec::new();
    for (name, one) in &parsed.arrays {
        let key = format!("arrays.{name}.shape");
        if one.shape.is_empty() || one.shape.len() > DIMENSIONS {
            let what = format!("an array has 1 to {DIMENSIONS} dimensions, not {}", one.shape.len());
            return Err(resolved.diagnose(&key, what));
        }
        let mut shape = Vec::new();
        for (at, text) in one.shape.iter().enumerate() {
            let code = Code::new(text, resolved.place(&format!("{key}.{at}")));
            let scope = Scope { sizes: &parsed.sizes, scalars: &parsed.scalars, arrays: &[] };
            let number = scope.number(&code, &syntax::sum(&code)?)?;
            let dimension = u64::try_from(number).ok().filter(|elements| *elements > 0);
            let what = || format!("a dimension of `{name}` is {number}; it must be at least 1");
            shape.push(dimension.ok_or_else(|| code.fault(0, what()))?);
        }
        let elements = shape.iter().try_fold(1u64, |product, n| product.checked_mul(*n));
        if elements.is_none_or(|elements| elements > MAX_ELEMENTS) {
            return Err(resolved.diagnose(&key, format!("`{name}` has more than 2^40 elements")));
        }
        arrays.push(Array { name: name.clone(), shape, element: one.element, section: one.section });
    }
    Ok(arrays)
}

/// Checks that each array is used as its section says.
fn check_sections(kernel: &Kernel, resolved: &Resolved) -> Result<(), Diagnostic> {
    for (at, array) in kernel.arrays.iter().enumerate() {
        let sites = || kernel.microblocks.iter().flat_map(|one| &one.sites).filter(|site| site.array == at);
        let name = &array.name;
        let is_read = sites().any(|site| site.reads);
        let is_written = sites().any(|site| site.writes);
        let (fault, fitting) = match array.section {
            Section::Input if is_written => ("an input, yet it is written", "inout"),
            Section::Input if !is_read => ("an input, yet nothing reads it", "output"),
            Section::Inout if !is_written => ("an inout, yet nothing writes it", "input"),
            Section::Output if !is_written => ("an output, yet nothing writes it", "input"),
            _ => continue,
        };
        let key = format!("arrays.{name}.section");
        let told = resolved.diagnose(&key, format!("`{name}` is {fault}"));
        return Err(told.help(format!("`section = \"{fitting}\"` fits")));
    }
    Ok(())
}

// Code of a microblock with its place in a file.

/// A text inside a TOML file.
struct Code<'t> {
    text: &'t str,
    /// Place of its first line.
    first: Place,
    /// True if the first line is that of the quotes.
    is_beside_quotes: bool,
}

impl<'t> Code<'t> {
    /// Creates the code; `value` is the place of the opening quotes.
    fn new(text: &'t str, value: Place) -> Code<'t> {
        let column = usize::try_from(value.column).unwrap_or(1).max(1);
        let quoted: String = value.text.chars().skip(column - 1).collect();
        let quotes = if quoted.starts_with("\"\"\"") || quoted.starts_with("'''") { 3 } else { 1 };
        let is_beside_quotes = quotes == 1 || !quoted.chars().skip(3).all(char::is_whitespace);
        let first = match is_beside_quotes {
            true => Place { column: value.column + quotes, ..value },
            // TOML ignores a line break directly after three quotes.
            false => Place { line: value.line + 1, column: 1, text: String::new(), ..value },
        };
        Code { text, first, is_beside_quotes }
    }

    /// Returns the line of a byte in the file.
    fn line(&self, at: usize) -> u64 {
        self.first.line + self.before(at).matches('\n').count() as u64
    }

    fn before(&self, at: usize) -> &str {
        self.text.get(..at).unwrap_or(self.text)
    }

    /// Returns the place of a byte.
    fn place(&self, at: usize) -> Place {
        let before = self.before(at);
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[begin..].chars().count() as u64;
        let place = Place { line: self.line(at), column: column + 1, ..self.first.clone() };
        if begin == 0 && self.is_beside_quotes {
            return Place { column: self.first.column + column, ..place };
        }
        Place { text: self.text[begin..].lines().next().unwrap_or_default().to_owned(), ..place }
    }

    /// Returns a diagnostic about a byte.
    fn fault(&self, at: usize, what: impl Into<String>) -> Diagnostic {
        Diagnostic::new(what).at(self.place(at))
    }
}

// Independence of the iterations of a loop.

/// Makes a loop the split loop, whose iterations are distributed as screens. `place` is that of its name in the file.
///
/// The loops of that name must enclose all statements, with the same fixed bounds. Two iterations must not touch the
/// same element if one of them writes it. The proof is sufficient, not necessary: for every two references to an
/// array, one of them a store, each dimension that has the variable with the same factor in both limits the distance
/// between two iterations that touch the same element. Only distance zero may satisfy all limits.
fn split(
    microblock: &mut Microblock,
    name: &str,
    place: Place,
    code: &Code<'_>,
    written: &Written,
) -> Result<Split, Diagnostic> {
    let fault = |what: String| Diagnostic::new(what).at(place.clone());
    let loops: Vec<usize> =
        (0..microblock.loops.len()).filter(|id| microblock.loops[*id].name == name).collect();
    let Some(first) = loops.first().map(|id| &microblock.loops[*id]) else {
        let mut names: Vec<String> = microblock.loops.iter().map(|one| one.name.clone()).collect();
        names.sort();
        names.dedup();
        return Err(fault(format!("this microblock has no loop over `{name}`")).allowed(name, names));
    };
    let trips = match (first.trips.as_number(), first.most) {
        (Some(trips), None) => u64::try_from(trips).unwrap_or(0),
        _ => {
            return Err(fault(format!(
                "the bounds of `{name}` depend on other loops, so it cannot be split"
            )));
        }
    };
    let alike = |id: &usize| is_alike(first, &microblock.loops[*id]);
    let Some(axis) = Axis::of(microblock, name).filter(|_| loops.iter().all(alike)) else {
        return Err(fault(format!(
            "the loops over `{name}` have different bounds, so they cannot be split together"
        )));
    };
    for (statement, written) in microblock.statements.iter().zip(written) {
        if level_of(microblock, name, statement.parent).is_none() {
            let what =
                format!("`{}` is written outside the split loop over `{name}`", statement.references[0].text);
            return Err(code
                .fault(written[0], what)
                .help("move statements that are not split to a different microblock"));
        }
    }
    refuse_dependences(microblock, &axis, code, written)?;
    for id in loops {
        microblock.loops[id].is_split = true;
    }
    Ok(Split { name: name.to_owned(), trips })
}

/// Returns true if two loops have the same values in the same iterations, whatever the loops around them do.
fn is_alike(a: &Loop, b: &Loop) -> bool {
    a.trips == b.trips && b.most.is_none() && fixed_bounds(a).is_some() && fixed_bounds(a) == fixed_bounds(b)
}

fn refuse_dependences(
    microblock: &Microblock,
    axis: &Axis,
    code: &Code<'_>,
    written: &Written,
) -> Result<(), Diagnostic> {
    let name = &axis.name;
    let mut all = Vec::new();
    for (statement, places) in microblock.statements.iter().zip(written) {
        for (id, reference) in statement.references.iter().enumerate() {
            let forms = forms(microblock, axis, statement, reference);
            all.push((reference, id == 0, places[id], forms));
        }
    }
    for (stored, _, at, forms) in all.iter().filter(|(_, is_store, ..)| *is_store) {
        let same = all.iter().filter(|(other, ..)| other.array == stored.array);
        for (other, _, beside, others) in same {
            if !is_apart(forms, others) {
                let what = format!(
                    "iterations of `{name}` may depend on each other: one writes `{}` (line {}), another uses `{}` (line {})",
                    stored.text,
                    code.line(*at),
                    other.text,
                    code.line(*beside),
                );
                let help = format!(
                    "every reference to an array that is written needs `{name}` in the same dimension in the same form; \
                     or leave `split` out: the microblock is then serial"
                );
                return Err(code.fault(*at, what).help(help));
            }
        }
    }
    Ok(())
}
