//! Programs whose work depends on their data: their parameters, and their data from a file or a seed.

use super::{OnData, Options};
use crate::graph::{Edges, Graph, Keep, ReadOptions, Values, read};
use config::Diagnostic;
use config::units::Bytes;
use engine::{Known, Rng};
use nest::executed::{Bfs, Nn, Wc};
use std::path::Path;
use std::sync::Arc;

/// A parameter of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Name of the parameter.
    pub name: &'static str,
    /// Description, in a few words.
    pub what: &'static str,
    /// Default value; empty for none.
    pub default: &'static str,
}

/// A program whose work depends on its data.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) keys: &'static [Key],
    build: fn(&Options<'_>) -> Result<OnData, Diagnostic>,
    /// Returns the parameter that makes a piece exceed the room, if that is known before its data are made.
    outgrows: fn(&Options<'_>, Room) -> Result<Option<&'static str>, Diagnostic>,
}

/// Memory available to a piece of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes of the page groups in which memory is allocated.
    pub group: u64,
}

impl Room {
    fn groups(self) -> u64 {
        self.bytes / self.group.max(1)
    }
}

/// Generated data, by program and the text of its parameters.
type Drawn = Known<(&'static str, Vec<Option<String>>), Arc<OnData>>;

impl Named {
    /// Refuses a program if a piece touches more bytes than a section has room for, before its data are made. A
    /// program that passes may still be too large.
    ///
    /// # Errors
    /// If it is too large, a value is invalid, or a file cannot be read.
    pub(super) fn fits(&self, options: &Options<'_>, room: Room) -> Result<(), Diagnostic> {
        let Some(parameter) = (self.outgrows)(options, room)? else { return Ok(()) };
        let room = Bytes::new(room.bytes);
        let what =
            format!("a piece of `{}` touches more than {room}, but a section has room for {room}", self.name);
        Err(Diagnostic::new(what)
            .at(options.place(parameter))
            .help("use less data, fewer sections ahead, or more memory"))
    }

    /// Opens the program with its data. Generated data are made once per process while few others are kept; a file is
    /// read each time, as it may have changed.
    ///
    /// # Errors
    /// If a value is invalid, or a file cannot be read.
    pub(super) fn open(&self, options: &Options<'_>) -> Result<Arc<OnData>, Diagnostic> {
        static DRAWN: Drawn = Known::new(4);
        // Parameters without a default are files.
        let is_read = self.keys.iter().any(|key| key.default.is_empty() && options.text(key.name).is_some());
        if is_read {
            return (self.build)(options).map(Arc::new);
        }
        let parameters = self.keys.iter().map(|key| options.text(key.name).map(str::to_owned)).collect();
        DRAWN.ask((self.name, parameters), |_| (self.build)(options).map(Arc::new))
    }
}

const fn key(name: &'static str, what: &'static str, default: &'static str) -> Key {
    Key { name, what, default }
}

/// Nodes of a generated graph, and edges per node: Rodinia's largest graph, `graph1MW_6`.
const NODES: u32 = 1_000_000;
const DEGREE: u32 = 6;
/// Number of generated records of 49 B: 64 MiB.
const RECORDS: u32 = 1_369_569;
const MOST_RECORDS: u32 = 1 << 26;
/// Bytes of a generated text, and its number of different words.
const TEXT: Bytes = Bytes::from_kib(64 << 10);
const WORDS: u32 = 65_536;
const SEED: u32 = 1;

/// Programs whose work depends on their data.
pub(super) const NAMED: &[Named] = &[
    Named {
        name: "bfs",
        what: "Breadth-first search, level after level (Rodinia)",
        keys: &[
            key("graph", "file with a graph, instead of a generated one", ""),
            key("nodes", "nodes of a generated graph", "1000000"),
            key("degree", "edges per node of a generated graph, on average", "6"),
            key("seed", "seed of the generated graph", "1"),
            key("source", "node where the search starts", "0"),
        ],
        build: bfs,
        outgrows: bfs_outgrows,
    },
    Named {
        name: "nn",
        what: "Nearest neighbours of a place (Rodinia)",
        keys: &[
            key("file", "file with records of 49 B, instead of generated ones", ""),
            key("records", "generated records", "1369569"),
            key("seed", "seed of the generated records", "1"),
            key("nearest", "number of neighbours", "5"),
            key("latitude", "latitude of the place, in degrees", "30"),
            key("longitude", "longitude of the place, in degrees", "90"),
        ],
        build: nn,
        outgrows: nn_outgrows,
    },
    Named {
        name: "wc",
        what: "Word count of a text by map and reduce (Mars)",
        keys: &[
            key("text", "file with a text, instead of a generated one", ""),
            key("bytes", "bytes of a generated text", "64MiB"),
            key("words", "maximum number of different words of a generated text", "65536"),
            key("seed", "seed of the generated text", "1"),
        ],
        build: wc,
        outgrows: wc_outgrows,
    },
];

fn bfs(options: &Options<'_>) -> Result<OnData, Diagnostic> {
    options.without("graph", &["nodes", "degree", "seed"])?;
    let graph = match options.text("graph") {
        Some(file) => {
            let options = ReadOptions { keep: Keep::All, values: Values::Ignored, ..ReadOptions::default() };
            read(Path::new(file), &options)?
        }
        None => drawn(options)?,
    };
    let nodes = graph.vertices() as u32;
    if nodes == 0 {
        let what = "the graph has no nodes";
        return Err(Diagnostic::new(what)
            .at(options.place("graph"))
            .help("give a file with at least one edge"));
    }
    let source = options.number("source", 0, 0..=nodes - 1)?;
    Ok(OnData::Bfs(Bfs::new(graph.rows().to_vec(), graph.targets().to_vec(), source)))
}

/// Generates a graph like Rodinia's generator: each node draws partners, two to four for a mean degree of 6, and
/// edges lead both ways.
fn drawn(options: &Options<'_>) -> Result<Graph, Diagnostic> {
    let (nodes, degree) = size_of_graph(options)?;
    let seed = options.number("seed", SEED, 0..=u32::MAX)?;
    let mut rng = Rng::stream(seed.into(), "graph of bfs");
    let mut edges = Edges::default();
    for node in 0..nodes {
        for _ in 0..u64::from(degree / 2 - 1) + rng.below(3) {
            edges.ends.push((node, rng.below(nodes.into()) as u32));
        }
    }
    Ok(Graph::new(nodes as usize, &edges, Keep::Both))
}

/// Returns the nodes of a generated graph, and the edges per node.
fn size_of_graph(options: &Options<'_>) -> Result<(u32, u32), Diagnostic> {
    let nodes = options.number("nodes", NODES, 2..=1 << 27)?;
    let degree = options.number("degree", DEGREE, 2..=1_024)?;
    if degree % 2 != 0 {
        let given = options.text("degree").unwrap_or_default();
        return Err(options.refused("degree", given, "an even number: edges lead both ways".to_owned()));
    }
    let ends = u64::from(nodes) * u64::from(degree / 2 + 1);
    if ends > 1 << 30 {
        let given = options.text("nodes").unwrap_or_default();
        let allowed = format!("at most {} with {degree} edges each", (1 << 30) / (degree / 2 + 1));
        return Err(options.refused("nodes", given, allowed));
    }
    Ok((nodes, degree))
}

/// Checks generated graphs only: the size of a graph in a file is not known before it has been read.
fn bfs_outgrows(options: &Options<'_>, room: Room) -> Result<Option<&'static str>, Diagnostic> {
    options.without("graph", &["nodes", "degree", "seed"])?;
    if options.text("graph").is_some() {
        return Ok(None);
    }
    let (nodes, degree) = size_of_graph(options)?;
    let groups = Bfs::least_groups(nodes.into(), degree, room.group);
    Ok((groups > room.groups()).then_some("nodes"))
}

fn nn(options: &Options<'_>) -> Result<OnData, Diagnostic> {
    options.without("file", &["records", "seed"])?;
    let count = options.number("nearest", 5, 1..=1_024)? as usize;
    let latitude = options.real("latitude", 30.0, -90.0..=90.0)?;
    let place = (latitude, options.real("longitude", 90.0, -360.0..=360.0)?);
    let Some(file) = options.text("file") else {
        let records = options.number("records", RECORDS, 1..=MOST_RECORDS)?;
        let seed = options.number("seed", SEED, 0..=u32::MAX)?;
        return Ok(OnData::Nn(Nn::generate(records as usize, seed.into(), place, count)));
    };
    let text = bytes_of(file, options)?;
    if !text.len().is_multiple_of(Nn::RECORD) {
        let what =
            format!("`{file}` has {} B, not a multiple of the record size of {} B", text.len(), Nn::RECORD);
        let help =
            "a record is a line of 48 characters and its end, as Rodinia's `hurricane_gen` writes them";
        return Err(Diagnostic::new(what).at(options.place(file)).help(help));
    }
    Ok(OnData::Nn(Nn::new(text, place, count)))
}

fn nn_outgrows(options: &Options<'_>, room: Room) -> Result<Option<&'static str>, Diagnostic> {
    options.without("file", &["records", "seed"])?;
    let (records, parameter) = match options.text("file") {
        // An unreadable file is refused when it is read.
        Some(file) => (std::fs::metadata(file).map_or(0, |known| known.len() / Nn::RECORD as u64), "file"),
        None => (options.number("records", RECORDS, 1..=MOST_RECORDS)?.into(), "records"),
    };
    Ok((Nn::least_groups(records, room.group) > room.groups()).then_some(parameter))
}

/// Text of `wc`.
enum Text {
    Read(Vec<u8>),
    Drawn { bytes: usize, words: u64, seed: u64 },
}

fn text_of(options: &Options<'_>) -> Result<Text, Diagnostic> {
    options.without("text", &["bytes", "words", "seed"])?;
    let most = Bytes::new(u32::MAX.into());
    let Some(file) = options.text("text") else {
        let bytes = options.bytes("bytes", TEXT, Bytes::new(1)..=most)?;
        let words = options.number("words", WORDS, 1..=1 << 24)?;
        let seed = options.number("seed", SEED, 0..=u32::MAX)?;
        return Ok(Text::Drawn { bytes: bytes.get() as usize, words: words.into(), seed: seed.into() });
    };
    let text = bytes_of(file, options)?;
    if text.len() as u64 > most.get() {
        let what = format!("`{file}` has {} B; the maximum is {most}", text.len());
        return Err(Diagnostic::new(what).at(options.place(file)).help("use a part of it: `head -c 4GB`"));
    }
    Ok(Text::Read(text))
}

fn wc(options: &Options<'_>) -> Result<OnData, Diagnostic> {
    Ok(OnData::Wc(match text_of(options)? {
        Text::Read(text) => Wc::new(text),
        Text::Drawn { bytes, words, seed } => Wc::generate(bytes, words, seed),
    }))
}

fn wc_outgrows(options: &Options<'_>, room: Room) -> Result<Option<&'static str>, Diagnostic> {
    Ok(match text_of(options)? {
        Text::Read(text) => Wc::text_outgrows(&text, room.bytes).then_some("text"),
        Text::Drawn { bytes, words, seed } => Wc::outgrows(bytes, words, seed, room.bytes).then_some("bytes"),
    })
}

/// Returns the content of a file, which must not be empty.
fn bytes_of(file: &str, options: &Options<'_>) -> Result<Vec<u8>, Diagnostic> {
    let refused = |what: String| {
        let help = "give a readable file that is not empty; without a file, data are generated";
        Diagnostic::new(what).at(options.place(file)).help(help)
    };
    let bytes = std::fs::read(file).map_err(|fault| refused(format!("cannot read `{file}`: {fault}")))?;
    if bytes.is_empty() {
        return Err(refused(format!("`{file}` is empty")));
    }
    Ok(bytes)
}
