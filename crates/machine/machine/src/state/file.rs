//! File format of states.
//!
//! A magic line; the length of a head, and the head, JSON, which gives the key of each state; the states in the same
//! order, deflated as one stream (zlib); a SHA-256 of all that. Parts are in the order of declaration. A damaged file
//! is distinguished from a state of a different machine.

use super::key::StateSpec;
use super::{State, hex, version};
use config::{Diagnostic, Place};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};

/// Magic first line.
const MAGIC: &[u8] = b"nandscape state\n";
/// Size of the checksum, bytes.
const SUM: usize = 32;

/// Head in front of the states.
#[derive(Serialize, Deserialize)]
struct Head {
    /// Version of the program and [`LAYOUT`](super::LAYOUT).
    version: String,
    #[serde(flatten)]
    states: Listed,
}

/// Entries of a head: for one drive, in the head itself.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Listed {
    Several { states: Vec<Entry> },
    One(Entry),
}

/// Entry of a state in a head.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// Size of the state before deflation, bytes.
    bytes: u64,
    /// Key of the state.
    spec: Value,
}

/// State as read from a file.
pub struct Kept {
    /// Key of the state.
    pub spec: StateSpec,
    /// Contents of the state.
    pub state: State,
}

/// Encodes states as the bytes of a file.
pub fn write(states: &[Kept]) -> Vec<u8> {
    let entry =
        |Kept { spec, state }: &Kept| Entry { bytes: state.bytes().len() as u64, spec: spec.keys().clone() };
    let listed = match states {
        [one] => Listed::One(entry(one)),
        several => Listed::Several { states: several.iter().map(entry).collect() },
    };
    // A tree of JSON values always serialises.
    let head = serde_json::to_vec(&Head { version: version(), states: listed }).unwrap_or_default();
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&(head.len() as u32).to_le_bytes());
    file.extend_from_slice(&head);
    let mut encoder = ZlibEncoder::new(file, Compression::fast());
    let deflated = states.iter().try_for_each(|kept| encoder.write_all(kept.state.bytes()));
    let mut file =
        deflated.and_then(|()| encoder.finish()).expect("memory is read and written without a fault");
    let sum = Sha256::digest(&file);
    file.extend_from_slice(&sum);
    file
}

/// Decodes the states of a file; `name` is for diagnostics.
///
/// # Errors
/// A file that is not a state, is damaged, or is of a different version of the program.
pub fn read(name: &str, file: &[u8]) -> Result<Vec<Kept>, Diagnostic> {
    let place = || Place { source: name.to_owned(), ..Place::default() };
    let is_cut = file.len() < MAGIC.len() && MAGIC.starts_with(file) && !file.is_empty();
    if !file.starts_with(MAGIC) && !is_cut {
        return Err(Diagnostic::new("this file is not a saved state")
            .at(place())
            .help("`run --save-state FILE` writes one"));
    }
    let damaged = |what: &str| {
        Diagnostic::new(format!("the state is damaged: {what}"))
            .at(place())
            .help("remove it and save it again: none of its contents can be trusted")
    };
    let (rest, sum) = file
        .len()
        .checked_sub(SUM)
        .and_then(|end| file.split_at_checked(end))
        .filter(|(rest, _)| rest.len() > MAGIC.len())
        .ok_or_else(|| damaged("it is cut short"))?;
    let found = Sha256::digest(rest);
    if found.as_slice() != sum {
        let (found, said) = (hex(&found[..8]), hex(&sum[..8]));
        return Err(damaged(&format!(
            "its checksum is {found}…, but {said}… is expected; it may be cut short"
        )));
    }
    let (head, deflated) = split_head(&rest[MAGIC.len()..]).ok_or_else(|| damaged("it has no header"))?;
    let Head { version: theirs, states } = serde_json::from_slice(head)
        .map_err(|fault| damaged(&format!("its header is malformed: {fault}")))?;
    if theirs != version() {
        let what = format!("the state was saved by version {theirs}; this is {}", version());
        return Err(Diagnostic::new(what)
            .at(place())
            .help("save it again with this version: the contents of a state may change with each version"));
    }
    let entries = match states {
        Listed::Several { states } => states,
        Listed::One(entry) => vec![entry],
    };
    inflated(deflated, entries).map_err(|what| damaged(&what))
}

/// Inflates the states of a head from the bytes behind it.
///
/// # Errors
/// Description of the damage.
fn inflated(deflated: &[u8], entries: Vec<Entry>) -> Result<Vec<Kept>, String> {
    let mut decoder = ZlibDecoder::new(deflated);
    let kept = entries.into_iter().map(|Entry { bytes, spec }| {
        let mut state = Vec::new();
        let found =
            decoder.by_ref().take(bytes).read_to_end(&mut state).map_err(|fault| fault.to_string())?;
        if found as u64 != bytes {
            return Err(format!("it has fewer than {bytes} bytes"));
        }
        Ok(Kept { spec: StateSpec::from_keys(spec), state: State::from_bytes(state) })
    });
    let kept = kept.collect::<Result<Vec<_>, _>>()?;
    // One more byte shows whether data are left over.
    match decoder.read(&mut [0]) {
        Ok(0) => Ok(kept),
        Ok(_) => Err("it has more data than its header lists".to_owned()),
        Err(fault) => Err(fault.to_string()),
    }
}

fn split_head(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = rest.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

impl Kept {
    /// Returns the state if it is the wanted one.
    ///
    /// # Errors
    /// A state of a different machine: a diagnostic at the first key that differs, with both values.
    pub fn of(&self, name: &str, wanted: &StateSpec) -> Result<State, Diagnostic> {
        let differences = wanted.differences(&self.spec);
        let Some(first) = differences.first() else { return Ok(self.state.clone()) };
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
        let (ours, theirs) = (text(&first.ours), text(&first.theirs));
        let more = match differences.len() - 1 {
            0 => String::new(),
            1 => "; one more key differs".to_owned(),
            n => format!("; {n} more keys differ"),
        };
        let key = &wanted.key_of_spec(&first.key);
        let what = format!(
            "{name} is the state of a different machine: `{key}` is {theirs} there and {ours} here{more}"
        );
        let help = match &first.theirs {
            _ if key == "seed" => format!("`--seed {theirs}`, or save a state with this seed"),
            Some(_) if key == "program" => {
                "save a state of this machine with this program: `run --save-state FILE`".to_owned()
            }
            Some(theirs) => {
                format!("set `{key}` to {theirs}, or save a state of this machine: `run --save-state FILE`")
            }
            None => "save a state of this machine: `run --save-state FILE`".to_owned(),
        };
        let source = match key.as_str() {
            "seed" => "--seed",
            "program" => "--workload",
            _ => "",
        };
        let place = Place { source: source.to_owned(), key: key.clone(), ..Place::default() };
        let listed = differences[1..].iter().take(8).map(|difference| {
            format!(
                "`{}`: {} there, {} here",
                wanted.key_of_spec(&difference.key),
                text(&difference.theirs),
                text(&difference.ours)
            )
        });
        Err(Diagnostic { listed: listed.collect(), ..Diagnostic::new(what).at(place).help(help) })
    }
}

/// Checks that the states of a file are those that a machine wants, in number and one by one.
///
/// # Errors
/// States of a different machine: the number of parts differs, or a part does, which is named.
pub fn agree(name: &str, kept: &[Kept], wanted: &[Option<StateSpec>]) -> Result<(), Diagnostic> {
    let wanted: Option<Vec<&StateSpec>> = wanted.iter().map(Option::as_ref).collect();
    let Some(wanted) = wanted else {
        let what =
            format!("{name} cannot be compared with this machine: the inputs of a state are not known");
        return Err(Diagnostic::new(what)
            .help("use regular files for traces and programs: they can be read before the run"));
    };
    let theirs: Vec<&StateSpec> = kept.iter().map(|kept| &kept.spec).collect();
    for (parts, is_of_a_drive) in [("drives", true), ("servers with filled memory", false)] {
        let of = |specs: &[&StateSpec]| -> Vec<String> {
            let of_kind = specs.iter().filter(|spec| spec.is_of_a_drive() == is_of_a_drive);
            of_kind.map(|spec| format!("`{}`", spec.part())).collect()
        };
        let (theirs, ours) = (of(&theirs).len(), of(&wanted));
        if theirs != ours.len() {
            let names = if ours.is_empty() { String::new() } else { format!(" ({})", ours.join(", ")) };
            let what = format!(
                "{name} is the state of a different machine: {parts} are {theirs} there and {} here{names}",
                ours.len()
            );
            return Err(Diagnostic::new(what).help("save a state of this machine: `run --save-state FILE`"));
        }
    }
    let is_alone = wanted.len() == 1;
    for (kept, wanted) in kept.iter().zip(wanted) {
        kept.of(name, wanted).map_err(|fault| match is_alone {
            true => fault,
            false => Diagnostic { what: format!("`{}`: {}", wanted.part(), fault.what), ..fault },
        })?;
    }
    Ok(())
}
