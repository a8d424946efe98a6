//! BERT for sequence classification (Devlin et al. 2019), as HuggingFace's `BertForSequenceClassification` runs it with
//! eager attention, one pair at a time.

use crate::program::dnn::eager::{Eager, work};
use crate::program::dnn::kernels::Ids;
use crate::program::dnn::memory::{Store, View};
use crate::program::dnn::model::Model;

/// Published dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Config {
    pub(crate) layers: u32,
    pub(crate) hidden: u64,
    pub(crate) heads: u64,
}

/// Turc et al. 2019, "Well-read students learn better", Table 1; base and large: Devlin et al. 2019, section 3. MQMS's
/// reference is `prajjwal1/bert-medium`.
pub(crate) const SIZES: &[(&str, Config)] = &[
    ("tiny", Config { layers: 2, hidden: 128, heads: 2 }),
    ("mini", Config { layers: 4, hidden: 256, heads: 4 }),
    ("small", Config { layers: 4, hidden: 512, heads: 8 }),
    ("medium", Config { layers: 8, hidden: 512, heads: 8 }),
    ("base", Config { layers: 12, hidden: 768, heads: 12 }),
    ("large", Config { layers: 24, hidden: 1024, heads: 16 }),
];

/// Constants `vocab_size`, `max_position_embeddings`, `type_vocab_size` of all of them; entailment, neutral,
/// contradiction.
const WORDS: u64 = 30_522;
pub(crate) const POSITIONS: u64 = 512;
const TYPES: u64 = 2;
const LABELS: u64 = 3;
/// `intermediate_size` in units of the hidden size.
const INNER: u64 = 4;

/// Weight and bias.
type Affine = [View; 2];

struct Layer {
    query: Affine,
    key: Affine,
    value: Affine,
    out: Affine,
    norm: Affine,
    up: Affine,
    down: Affine,
    last_norm: Affine,
}

/// The model.
pub(crate) struct Bert {
    config: Config,
    store: Store,
    ids: View,
    positions: View,
    types: View,
    mask: View,
    tables: [View; 3],
    norm: Affine,
    layers: Vec<Layer>,
    pooler: Affine,
    classifier: Affine,
    width: u8,
}

impl Bert {
    /// Creates a model for sequences of this many tokens, with elements of `width` bytes.
    pub(crate) fn new(config: Config, sequence: u64, width: u8) -> Bert {
        let mut store = Store::default();
        let hidden = config.hidden;
        let mut number = |name| store.buffer(name, &[sequence], 8);
        let (ids, positions, types, mask) =
            (number("input_ids"), number("position_ids"), number("token_type_ids"), number("attention_mask"));
        let mut table = |name, rows| store.parameter(name, &[rows, hidden], width);
        let tables = [
            table("word_embeddings", WORDS),
            table("token_type_embeddings", TYPES),
            table("position_embeddings", POSITIONS),
        ];
        let norm = affine(&mut store, "embeddings.LayerNorm", &[hidden], width);
        let layers = (0..config.layers).map(|_| Layer::new(&mut store, hidden, width)).collect();
        let pooler = affine(&mut store, "pooler.dense", &[hidden, hidden], width);
        let classifier = affine(&mut store, "classifier", &[LABELS, hidden], width);
        Bert { config, store, ids, positions, types, mask, tables, norm, layers, pooler, classifier, width }
    }

    fn attention(&self, layer: &Layer, x: &View, mask: &View, eager: &mut Eager) -> View {
        let (heads, width) = (self.config.heads, self.width);
        let mut head = |[weight, bias]: &Affine| {
            let projected = eager.linear(x, weight, Some(bias));
            projected.split_last(&[heads, self.config.hidden / heads]).permute(&[1, 0, 2])
        };
        let (query, key, value) = (head(&layer.query), head(&layer.key), head(&layer.value));
        let scores = eager.matmul(&query, &key.permute(&[0, 2, 1]));
        let scores = eager.map("div", &[&scores], width, work::ONE);
        let scores = eager.map("add", &[&scores, mask], width, work::ONE);
        let shares = eager.softmax(&scores);
        let context = eager.matmul(&shares, &value).permute(&[1, 0, 2]);
        let context = eager.contiguous(&context).reshape(&x.dims);
        let out = eager.linear(&context, &layer.out[0], Some(&layer.out[1]));
        let sum = eager.map("add", &[&out, x], width, work::ONE);
        eager.layer_norm(&sum, &layer.norm[0], &layer.norm[1])
    }
}

/// Adds a weight and a bias of its first dimension.
fn affine(store: &mut Store, name: &'static str, dims: &[u64], width: u8) -> Affine {
    [store.parameter(name, dims, width), store.parameter(name, &dims[..1], width)]
}

impl Layer {
    fn new(store: &mut Store, hidden: u64, width: u8) -> Layer {
        let mut new = |name, dims: &[u64]| affine(store, name, dims, width);
        Layer {
            query: new("attention.query", &[hidden, hidden]),
            key: new("attention.key", &[hidden, hidden]),
            value: new("attention.value", &[hidden, hidden]),
            out: new("attention.output.dense", &[hidden, hidden]),
            norm: new("attention.output.LayerNorm", &[hidden]),
            up: new("intermediate.dense", &[INNER * hidden, hidden]),
            down: new("output.dense", &[hidden, INNER * hidden]),
            last_norm: new("output.LayerNorm", &[hidden]),
        }
    }
}

impl Model for Bert {
    fn store(&self) -> &Store {
        &self.store
    }

    fn passes(&self) -> u32 {
        1
    }

    fn record(&self, _: u32, eager: &mut Eager) {
        let width = self.width;
        // Mask of the padding: (1 - mask) times the lowest number.
        let mask = eager.map("copy", &[&self.mask], width, work::ONE);
        let mask = eager.map("rsub", &[&mask], width, work::ONE);
        let mask = eager.map("mul", &[&mask], width, work::ONE);
        let [words, types, positions] = &self.tables;
        let words = eager.embedding(words, &self.ids, Ids::Words);
        let types = eager.embedding(types, &self.types, Ids::Halves);
        let sum = eager.map("add", &[&words, &types], width, work::ONE);
        let positions = eager.embedding(positions, &self.positions, Ids::From(0));
        let sum = eager.map("add", &[&sum, &positions], width, work::ONE);
        let mut x = eager.layer_norm(&sum, &self.norm[0], &self.norm[1]);
        for layer in &self.layers {
            let attended = self.attention(layer, &x, &mask, eager);
            let up = eager.linear(&attended, &layer.up[0], Some(&layer.up[1]));
            let up = eager.map("gelu", &[&up], width, work::GELU);
            let down = eager.linear(&up, &layer.down[0], Some(&layer.down[1]));
            let sum = eager.map("add", &[&down, &attended], width, work::ONE);
            x = eager.layer_norm(&sum, &layer.last_norm[0], &layer.last_norm[1]);
        }
        let first = x.slice(0, 0, 1);
        let pooled = eager.linear(&first, &self.pooler[0], Some(&self.pooler[1]));
        let pooled = eager.map("tanh", &[&pooled], width, work::TANH);
        eager.linear(&pooled, &self.classifier[0], Some(&self.classifier[1]));
    }
}
