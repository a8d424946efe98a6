//! Named kernels, and the translation of a text to applications.

use super::data::{self, Key};
use super::{Application, Inputs, Options, Program, mixes};
use config::Diagnostic;
use nest::Kernel;
use std::path::Path;

/// Maximum number of instances per text.
const MOST_INSTANCES: u32 = 1_024;
/// Parameter for the threads of a GPU's block, and its maximum.
const BLOCK: &str = "block";
const MOST_THREADS: u32 = 1_024;
/// Parameters of every text.
const OF_ALL: [&str; 3] = ["instances", "inputs", "results"];
/// Name of a kernel from a user's file.
const OWN: &str = "nest";

/// Entry of a kernel that can be offloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Description, in one sentence.
    pub what: String,
    /// Parameters, if it is a program whose work depends on its data; others have sizes.
    pub keys: &'static [Key],
}

/// Returns all names that can be offloaded: programs, those that depend on their data, a user's own, mixes.
pub fn names() -> impl Iterator<Item = &'static str> {
    let nests = nest::programs().iter().map(|(name, _)| *name);
    nests.chain(data::NAMED.iter().map(|named| named.name)).chain([OWN]).chain(mixes::NAMES)
}

/// Returns all entries, with descriptions.
pub fn entries() -> impl Iterator<Item = Entry> {
    names().map(|name| {
        let own = || "a kernel of your own: nest:file=MY.toml,instances=2 (docs/kernels.md)".to_owned();
        let each = mixes::INSTANCES;
        let mix =
            || format!("FlashAbacus's mix {}: six programs, {each} instances each", name.to_uppercase());
        let program = nest::programs().iter().find(|(known, _)| *known == name);
        let on_data = data::NAMED.iter().find(|named| named.name == name);
        let what = match (program.and_then(|(_, text)| Kernel::read(text, name, &[]).ok()), on_data) {
            (Some(kernel), _) => kernel.about().to_owned(),
            (None, Some(named)) => named.what.to_owned(),
            (None, None) if name == OWN => own(),
            (None, None) => mix(),
        };
        Entry { name, what, keys: on_data.map_or(&[], |named| named.keys) }
    })
}

/// Returns the applications that a text names: a program, `atax:m=1024,n=1024,instances=2`; one that depends on its
/// data, `wc:text=FILE`; a user's own, `nest:file=MY.toml,instances=2`; a mix, `mx1:assignment=7`.
///
/// # Errors
/// If a name, a parameter or a value is invalid, or the user's file has a fault.
pub fn open(text: &str) -> Result<Vec<Application>, Diagnostic> {
    let options = Options::read(text)?;
    let name = text.split_once(':').map_or(text, |(name, _)| name).trim();
    if let Some(number) = mixes::NAMES.iter().position(|mix| *mix == name) {
        return mix(number, &options);
    }
    if name == OWN {
        return own(&options).map(|one| vec![one]);
    }
    if let Some(named) = data::NAMED.iter().find(|named| named.name == name) {
        options.only(&known_of(named))?;
        let (instances, inputs) = instances(1, &options)?;
        let in_turn = in_turn(&options)?;
        let program = Program::Executed(named.open(&options)?);
        return Ok(vec![Application { program, instances, inputs, in_turn, block: None }]);
    }
    let Some((_, program)) = nest::programs().iter().find(|(known, _)| *known == name) else {
        let unknown = Diagnostic::new(format!("unknown kernel `{name}`")).allowed(name, names());
        return Err(unknown.at(options.place(name)));
    };
    application(program, &format!("programs/{name}.toml"), &[], &options).map(|one| vec![one])
}

/// Refuses a program that depends on its data if a piece is known to touch more than `room`, before the data are
/// made; other texts pass.
///
/// # Errors
/// If it is too large, or a parameter or a value is invalid.
pub fn fits(text: &str, room: data::Room) -> Result<(), Diagnostic> {
    let name = text.split_once(':').map_or(text, |(name, _)| name).trim();
    let Some(named) = data::NAMED.iter().find(|named| named.name == name) else { return Ok(()) };
    let options = Options::read(text)?;
    options.only(&known_of(named))?;
    named.fits(&options, room)
}

/// Returns the parameters of a program that depends on its data.
fn known_of(named: &data::Named) -> Vec<&'static str> {
    named.keys.iter().map(|key| key.name).chain(OF_ALL).collect()
}

/// Returns the loop nests of GPU programs, whose kernels are executed by something else:
/// `gaus:n=512,pivots=8,instances=2`, `gaus-gram`, `gaus-atax`.
///
/// # Errors
/// If a program does not exist or has no loop nest; also as [`open`].
pub fn of_programs(text: &str) -> Result<Vec<Application>, Diagnostic> {
    let (names, parameters) = text.split_once(':').map_or((text, false), |(names, _)| (names, true));
    let mut all = Vec::new();
    for name in names.split('-').map(str::trim) {
        let whole = if parameters { text } else { name };
        let nests = nest::programs_of_gpus();
        if let Some((_, program)) = nests.iter().find(|(known, _)| *known == name) {
            all.push(application(
                program,
                &format!("programs/gpu/{name}.toml"),
                &[],
                &Options::read(whole)?,
            )?);
        } else if self::names().any(|known| known == name) {
            all.extend(open(whole)?);
        } else {
            let known: Vec<&str> = nests.iter().map(|(known, _)| *known).collect();
            let what = format!("`{name}` is a GPU program without a loop nest");
            let help = format!(
                "GPU programs with a loop nest: {}; every accelerator program has one: atax, gemm, nw",
                known.join(", ")
            );
            return Err(Diagnostic::new(what).at(Options::read(text)?.place(name)).help(help));
        }
    }
    Ok(all)
}

/// Returns the kernels of a named text for display: one for a program, six for a mix; none without a name.
///
/// # Errors
/// As [`open`].
pub fn explained(text: &str) -> Result<Option<Vec<Application>>, Diagnostic> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    match names().any(|known| known == name) && (name != OWN || text != OWN) {
        true => open(text).map(Some),
        false => Ok(None),
    }
}

/// Returns the application of a kernel with the instances of this text.
fn application(
    program: &str,
    file: &str,
    others: &[&str],
    options: &Options<'_>,
) -> Result<Application, Diagnostic> {
    let kernel = Kernel::read(program, file, &[])?;
    let sizes = kernel.sizes().iter().map(|(size, _)| size.as_str());
    let known: Vec<&str> = others.iter().copied().chain(OF_ALL).chain([BLOCK]).chain(sizes).collect();
    options.only(&known)?;
    let (instances, inputs) = instances(1, options)?;
    // A size of that name belongs to the kernel.
    let block = if kernel.sizes().iter().any(|(size, _)| size == BLOCK) { None } else { block(options)? };
    let sizes = options.sizes(kernel.sizes())?;
    let kernel = if sizes.is_empty() { kernel } else { Kernel::read(program, file, &sizes)? };
    let in_turn = in_turn(options)?;
    Ok(Application { program: Program::Nest(kernel), instances, inputs, in_turn, block })
}

/// Returns the threads of a block, in whole warps.
fn block(options: &Options<'_>) -> Result<Option<u32>, Diagnostic> {
    const WARP: u32 = nest::LANES as u32;
    let Some(given) = options.text(BLOCK) else { return Ok(None) };
    let threads =
        given.parse().ok().filter(|n: &u32| (WARP..=MOST_THREADS).contains(n) && n.is_multiple_of(WARP));
    let allowed = || format!("a multiple of {WARP} up to {MOST_THREADS}");
    threads.map(Some).ok_or_else(|| options.refused(BLOCK, given, allowed()))
}

/// Returns the number of instances of a text, and whose input each reads.
fn instances(default: u32, options: &Options<'_>) -> Result<(u32, Inputs), Diagnostic> {
    let inputs = match options.text("inputs") {
        None => Inputs::default(),
        Some(given) => {
            let found = Inputs::NAMES.iter().find(|(name, _)| *name == given);
            let allowed = || Inputs::NAMES.map(|(name, _)| name).join(", ");
            found.ok_or_else(|| options.refused("inputs", given, allowed()))?.1
        }
    };
    Ok((options.number("instances", default, 1..=MOST_INSTANCES)?, inputs))
}

/// Returns true if instances change the same data.
fn in_turn(options: &Options<'_>) -> Result<bool, Diagnostic> {
    match options.text("results") {
        None | Some("own") => Ok(false),
        Some("shared") => Ok(true),
        Some(other) => Err(options.refused("results", other, "own, shared".to_owned())),
    }
}

fn own(options: &Options<'_>) -> Result<Application, Diagnostic> {
    let Some(file) = options.text("file") else {
        let what = "a kernel of your own needs a file";
        return Err(Diagnostic::new(what).at(options.place(OWN)).help("write `nest:file=MY.toml`"));
    };
    let text = config::read_text(Path::new(file))?;
    application(&text, file, &["file"], options)
}

/// Returns the six programs of a mix, in the order of the paper's table.
fn mix(number: usize, options: &Options<'_>) -> Result<Vec<Application>, Diagnostic> {
    options.only(&["assignment", OF_ALL[0], OF_ALL[1], OF_ALL[2], BLOCK])?;
    let block = block(options)?;
    let assignment = options.number("assignment", 0, 0..=mixes::ASSIGNMENTS - 1)?;
    let (instances, inputs) = instances(mixes::INSTANCES, options)?;
    let in_turn = in_turn(options)?;
    let of = |program: usize| {
        let (name, text) = nest::programs()[program];
        let program = Program::Nest(Kernel::read(text, name, &[])?);
        Ok(Application { program, instances, inputs, in_turn, block })
    };
    mixes::assignment(assignment)[number].into_iter().map(of).collect()
}
