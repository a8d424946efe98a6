//! Inference of deep neural networks: BERT, GPT-2, ResNet-50, and models from ONNX files.
//!
//! A model calls operators ([`eager`]), each of which launches its kernels as PyTorch's eager mode does. Parameters
//! have one allocation each; intermediate values of a pass reuse memory ([`memory`]). Kernels compute no values, but
//! their tiles, edges, loop counts and addresses are real ([`kernels`]). The sequence of launches is never in memory:
//! [`launches`] iterates over it, and a program may execute only part of it. docs/dnn.md has the counts and the
//! sources.

mod eager;
mod kernels;
mod memory;
mod model;
mod network;
mod onnx;
#[cfg(test)]
mod tests;

pub use network::Launches;
pub(crate) use onnx::is_onnx;

use crate::program::{Entry, Key, Params, Program, Slots};
use config::Diagnostic;
use model::{
    bert::{self, Bert},
    gpt2::{self, Gpt2},
    resnet::ResNet,
};
use network::{Network, Plan, Selection};
use onnx::{Dimensions, Onnx};
use std::path::Path;

// Entries of the program list.

const TYPE: Key = Key { name: "type", what: "elements: fp32 or fp16", default: "fp32" };

const LAUNCHES: Key =
    Key { name: "launches", what: "executes only launches A to B - 1: A..B; empty for all", default: "" };

const KERNELS: Key =
    Key { name: "kernels", what: "executes only the launches sampled in this file", default: "" };

const BERT: Entry = Entry {
    name: "bert",
    suite: "DNN inference",
    what: "BERT for sequence classification, one pair of premise and hypothesis at a time",
    table: None,
    keys: &[
        Key { name: "pairs", what: "pairs of sentences", default: "1" },
        Key { name: "sequence", what: "tokens of a pair", default: "128" },
        Key { name: "size", what: "tiny, mini, small, medium, base or large", default: "medium" },
        TYPE,
        LAUNCHES,
        KERNELS,
    ],
    build: |params, _| open(bert(params)?, params),
};

const GPT2: Entry = Entry {
    name: "gpt2",
    suite: "DNN inference",
    what: "GPT-2 generating text, one pass per token with a KV cache",
    table: None,
    keys: &[
        Key { name: "sentences", what: "sentences, one after another", default: "1" },
        Key { name: "tokens", what: "generated tokens per sentence; MQMS has 100", default: "4" },
        Key { name: "prompt", what: "prompt tokens per sentence", default: "1" },
        Key { name: "size", what: "small, medium, large or xl", default: "small" },
        TYPE,
        LAUNCHES,
        KERNELS,
    ],
    build: |params, _| open(gpt2(params)?, params),
};

const RESNET50: Entry = Entry {
    name: "resnet50",
    suite: "DNN inference",
    what: "ResNet-50 classifying images",
    table: None,
    keys: &[
        Key { name: "images", what: "images, a multiple of the batch", default: "1" },
        Key { name: "batch", what: "images of a pass", default: "1" },
        Key { name: "side", what: "rows and columns of an image", default: "224" },
        TYPE,
        LAUNCHES,
        KERNELS,
    ],
    build: |params, _| open(resnet50(params)?, params),
};

const ONNX: Entry = Entry {
    name: "onnx",
    suite: "DNN inference",
    what: "a model from an ONNX file, about one kernel per node",
    table: None,
    keys: &[
        Key { name: "file", what: "the ONNX file", default: "" },
        Key { name: "runs", what: "number of runs", default: "1" },
        Key { name: "dimension", what: "length of dimensions that the file leaves open", default: "1" },
        Key { name: "dimensions", what: "lengths of named open dimensions: NAME:LENGTH/...", default: "" },
        LAUNCHES,
        KERNELS,
    ],
    build: |params, _| open(onnx(params)?, params),
};

/// Programs of this module.
pub(crate) const ENTRIES: &[Entry] = &[BERT, GPT2, RESNET50, ONNX];

/// Allowed number of inputs: the largest sequence of launches has 64-bit numbers.
const INPUTS: std::ops::RangeInclusive<u64> = 1..=1_000_000_000;

/// Function that turns a program's parameters into a plan.
type Planner = fn(&Params) -> Result<Plan, Diagnostic>;

/// Planner of each of the entries.
const PLANNERS: &[Planner] = &[bert, gpt2, resnet50, onnx];

/// Returns the bytes of an element.
fn width(params: &Params) -> Result<u8, Diagnostic> {
    params.word("type", &[("fp32", 4), ("fp16", 2)])
}

fn bert(params: &Params) -> Result<Plan, Diagnostic> {
    let config = params.word("size", bert::SIZES)?;
    let sequence = params.integer("sequence", 1..=bert::POSITIONS)?;
    let model = Bert::new(config, sequence, width(params)?);
    Ok(Plan::new(BERT.name, Box::new(model), params.integer("pairs", INPUTS)?))
}

fn gpt2(params: &Params) -> Result<Plan, Diagnostic> {
    let config = params.word("size", gpt2::SIZES)?;
    let prompt = params.integer("prompt", 1..=gpt2::POSITIONS - 1)?;
    let tokens = params.integer("tokens", 1..=gpt2::POSITIONS - prompt)?;
    let model = Gpt2::new(config, prompt, tokens as u32, width(params)?);
    Ok(Plan::new(GPT2.name, Box::new(model), params.integer("sentences", INPUTS)?))
}

fn resnet50(params: &Params) -> Result<Plan, Diagnostic> {
    let (images, batch) = (params.integer("images", INPUTS)?, params.integer("batch", 1..=1024)?);
    if !images.is_multiple_of(batch) {
        return Err(params.refused("images", vec![format!("a multiple of the batch, {batch}")]));
    }
    // The fifth halving must leave a pixel.
    let model = ResNet::new(batch, params.integer("side", 32..=1024)?, width(params)?);
    Ok(Plan::new(RESNET50.name, Box::new(model), images / batch))
}

/// Allowed lengths of an open dimension.
const LENGTHS: std::ops::RangeInclusive<u64> = 1..=1 << 20;

/// Reads the lengths of open dimensions by name.
fn named(params: &Params) -> Result<Vec<(String, u64)>, Diagnostic> {
    let text = params.text("dimensions").unwrap_or_default();
    let each = text.split('/').filter(|_| !text.is_empty()).map(|one| {
        let (name, length) = one.rsplit_once(':')?;
        let length = length.parse().ok().filter(|n| LENGTHS.contains(n))?;
        Some((name.to_owned(), length))
    });
    let all: Option<Vec<(String, u64)>> = each.collect();
    let all = all
        .filter(|all| all.iter().enumerate().all(|(n, one)| all[..n].iter().all(|(name, _)| *name != one.0)));
    let allowed =
        || format!("names, each once, with lengths from 1 to {}: batch:1/sequence:128", LENGTHS.end());
    all.ok_or_else(|| params.refused("dimensions", vec![allowed()]))
}

fn onnx(params: &Params) -> Result<Plan, Diagnostic> {
    let Some(file) = params.text("file") else {
        return Err(Diagnostic::new("program `onnx` needs a file").help("write `onnx:file=model.onnx`"));
    };
    let open = Dimensions { named: named(params)?, other: params.integer("dimension", LENGTHS)? };
    let model = Onnx::open(Path::new(file), &open)?;
    Ok(Plan::new(ONNX.name, Box::new(model), params.integer("runs", INPUTS)?))
}

fn open(plan: Plan, params: &Params) -> Result<Box<dyn Program>, Diagnostic> {
    let selection = Selection::read(params, plan.count())?;
    Ok(Box::new(Slots::new(Network::new(plan, selection))))
}

/// Returns every launch of a neural network's whole sequence, whatever part of it would be executed:
/// `bert:pairs=10000`.
///
/// # Errors
/// If it is a different program, or a parameter is invalid.
pub fn launches(text: &str) -> Result<Launches, Diagnostic> {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let mut known = ENTRIES.iter().zip(PLANNERS);
    let Some((entry, planner)) = known.find(|(entry, _)| entry.name == name) else {
        let other = Diagnostic::new(format!("the launches of program `{name}` are not known beforehand"));
        return Err(other.allowed(name, ENTRIES.iter().map(|entry| entry.name)));
    };
    Ok(Launches::new(&planner(&Params::read(text, options, entry.keys)?)?))
}
