//! The form of a state in a file.
//!
//! A line that says what it is; the length of a head and the head, JSON, which says what the state depends on; the state,
//! deflated (zlib); a SHA-256 of all that. A file that is not whole is told apart from one that is of another machine.

use super::spec::hex;
use super::{State, StateSpec};
use config::{Diagnostic, Place};
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::Read;

/// The first line.
const MAGIC: &[u8] = b"nandscape state\n";
/// Bytes of the checksum.
const SUM: usize = 32;
/// The number of the form of states, and of what preconditioning does: it grows with every change that moves a byte of one.
pub const LAYOUT: u32 = 1;

/// What stands in front of the state.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The program's version and [`LAYOUT`].
    version: String,
    /// Bytes of the state before it was deflated.
    bytes: u64,
    /// What it depends on.
    spec: Value,
}

/// A state as a file has it.
pub struct Kept {
    /// What it depends on.
    pub spec: StateSpec,
    /// It.
    pub state: State,
}

/// The versions that a state depends on.
pub(super) fn version() -> String {
    format!("{} (states {LAYOUT})", env!("CARGO_PKG_VERSION"))
}

/// The bytes of a file.
pub fn write(spec: &StateSpec, state: &State) -> Vec<u8> {
    let head = Head { version: version(), bytes: state.bytes().len() as u64, spec: spec.keys().clone() };
    // A tree of JSON values has a JSON form.
    let head = serde_json::to_vec(&head).unwrap_or_default();
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&(head.len() as u32).to_le_bytes());
    file.extend_from_slice(&head);
    ZlibEncoder::new(state.bytes(), Compression::fast())
        .read_to_end(&mut file)
        .expect("memory is read and written without a fault");
    let sum = Sha256::digest(&file);
    file.extend_from_slice(&sum);
    file
}

/// Reads the bytes of a file of this name.
///
/// # Errors
/// It is no state, or not whole, or of another version of the program.
pub fn read(name: &str, file: &[u8]) -> Result<Kept, Diagnostic> {
    let place = || Place { source: name.to_owned(), ..Place::default() };
    let is_cut = file.len() < MAGIC.len() && MAGIC.starts_with(file) && !file.is_empty();
    if !file.starts_with(MAGIC) && !is_cut {
        return Err(Diagnostic::new("this file is no state of a drive")
            .at(place())
            .help("`run --save-state FILE` writes one"));
    }
    let damaged = |what: &str| {
        Diagnostic::new(format!("the state is damaged: {what}"))
            .at(place())
            .help("remove it and save it again: nothing of it can be trusted")
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
            "its checksum is {found}…, and it should be {said}…, or it is cut short"
        )));
    }
    let (head, deflated) = split_head(&rest[MAGIC.len()..]).ok_or_else(|| damaged("it has no head"))?;
    let Head { version: theirs, bytes, spec } =
        serde_json::from_slice(head).map_err(|fault| damaged(&format!("its head is malformed: {fault}")))?;
    if theirs != version() {
        let what = format!("the state was saved by version {theirs}; this is {}", version());
        return Err(Diagnostic::new(what)
            .at(place())
            .help("save it again with this version: what a state has in it may change with each"));
    }
    let mut state = Vec::new();
    // One byte more tells that there is more.
    let inflated = ZlibDecoder::new(deflated).take(bytes.saturating_add(1)).read_to_end(&mut state);
    match inflated {
        Ok(n) if n as u64 == bytes => {
            Ok(Kept { spec: StateSpec::from_keys(spec), state: State::from_bytes(state) })
        }
        Ok(_) => Err(damaged(&format!("it does not have {bytes} bytes"))),
        Err(fault) => Err(damaged(&fault.to_string())),
    }
}

fn split_head(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = rest.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

impl Kept {
    /// The state, if it is the one that is wanted.
    ///
    /// # Errors
    /// It is of another machine: a diagnostic at the first key that differs, with the values of both.
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
        let key = &first.key;
        let what = format!(
            "{name} is the state of another machine: `{key}` is {theirs} there and {ours} here{more}"
        );
        let help = match &first.theirs {
            _ if key == "seed" => format!("`--seed {theirs}`, or save a state with this seed"),
            Some(theirs) => {
                format!("set `{key}` to {theirs}, or save a state of this machine: `run --save-state FILE`")
            }
            None => "save a state of this machine: `run --save-state FILE`".to_owned(),
        };
        let source = if key == "seed" { "--seed" } else { "" };
        let place = Place { source: source.to_owned(), key: key.clone(), ..Place::default() };
        let listed = differences[1..].iter().take(8).map(|difference| {
            format!(
                "`{}`: {} there, {} here",
                difference.key,
                text(&difference.theirs),
                text(&difference.ours)
            )
        });
        Err(Diagnostic { listed: listed.collect(), ..Diagnostic::new(what).at(place).help(help) })
    }
}
