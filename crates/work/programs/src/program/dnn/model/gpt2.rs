//! GPT-2 (Radford et al. 2019), as HuggingFace's `GPT2LMHeadModel.generate` runs it with eager attention: greedy, one
//! sentence at a time, one pass per token, with a KV cache.

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

/// Radford et al. 2019, Table 2; heads from the released configurations.
pub(crate) const SIZES: &[(&str, Config)] = &[
    ("small", Config { layers: 12, hidden: 768, heads: 12 }),
    ("medium", Config { layers: 24, hidden: 1024, heads: 16 }),
    ("large", Config { layers: 36, hidden: 1280, heads: 20 }),
    ("xl", Config { layers: 48, hidden: 1600, heads: 25 }),
];

const WORDS: u64 = 50_257;
/// Maximum length of a text.
pub(crate) const POSITIONS: u64 = 1024;

type Affine = [View; 2];

struct Layer {
    first_norm: Affine,
    attend: Affine,
    project: Affine,
    norm: Affine,
    up: Affine,
    down: Affine,
    /// Causal mask: which positions a position may attend to.
    causal: View,
    /// Queries, keys and values of the prompt: the first pass's keys and values are views of them.
    prompt: View,
    /// Keys and values of all later passes, alternating: concatenation makes a new tensor while the old one lives.
    caches: [[View; 2]; 2],
}

/// The model.
pub(crate) struct Gpt2 {
    config: Config,
    prompt: u64,
    tokens: u32,
    store: Store,
    ids: View,
    positions: View,
    mask: View,
    alive: View,
    words: View,
    places: View,
    layers: Vec<Layer>,
    norm: Affine,
    width: u8,
}

impl Gpt2 {
    /// Creates a model that continues a prompt by this many tokens, with elements of `width` bytes.
    pub(crate) fn new(config: Config, prompt: u64, tokens: u32, width: u8) -> Gpt2 {
        let mut store = Store::default();
        let (hidden, most) = (config.hidden, prompt + u64::from(tokens));
        let mut number = |name, n| store.buffer(name, &[n], 8);
        let (ids, positions) = (number("input_ids", most), number("position_ids", most));
        let (mask, alive) = (number("attention_mask", most), number("unfinished_sequences", 1));
        let words = store.parameter("wte", &[WORDS, hidden], width);
        let places = store.parameter("wpe", &[POSITIONS, hidden], width);
        let layers =
            (0..config.layers).map(|_| Layer::new(&mut store, hidden, [prompt, most], width)).collect();
        let norm = [
            store.parameter("ln_f.weight", &[hidden], width),
            store.parameter("ln_f.bias", &[hidden], width),
        ];
        Gpt2 {
            config,
            prompt,
            tokens,
            store,
            ids,
            positions,
            mask,
            alive,
            words,
            places,
            layers,
            norm,
            width,
        }
    }

    /// Returns a layer's keys and values after a pass: heads, positions, elements.
    fn kept(&self, layer: &Layer, pass: u32, length: u64) -> [View; 2] {
        let size = self.config.hidden / self.config.heads;
        if pass == 0 {
            return [1, 2].map(|part| self.heads(&layer.prompt, part));
        }
        let cache = &layer.caches[pass as usize % 2];
        let dims = [self.config.heads, length, size];
        [0, 1].map(|n| cache[n].strided(&dims, &[length * size, size, 1]))
    }

    /// Returns queries, keys or values from the attention's first product.
    fn heads(&self, joint: &View, part: u64) -> View {
        let hidden = self.config.hidden;
        let part = joint.slice(1, part * hidden, hidden);
        part.split_last(&[self.config.heads, hidden / self.config.heads]).permute(&[1, 0, 2])
    }

    fn attention(&self, layer: &Layer, pass: u32, x: &View, mask: &View, eager: &mut Eager) -> View {
        let width = self.width;
        let length = self.prompt + u64::from(pass);
        let joint = if pass == 0 {
            eager.affine_into(x, &layer.attend[0], Some(&layer.attend[1]), &layer.prompt);
            layer.prompt.clone()
        } else {
            eager.affine(x, &layer.attend[0], Some(&layer.attend[1]))
        };
        let [keys, values] = self.kept(layer, pass, length);
        if pass > 0 {
            let before = self.kept(layer, pass - 1, length - 1);
            for (part, (old, new)) in before.iter().zip([&keys, &values]).enumerate() {
                eager.cat_into(&[old, &self.heads(&joint, part as u64 + 1)], 1, new);
            }
        }
        let scores = eager.matmul(&self.heads(&joint, 0), &keys.permute(&[0, 2, 1]));
        // `attn_weights / torch.full([], ...)`, then `torch.where` with a `torch.full` for what may not be seen.
        let root = eager.fill(&[1], width);
        let scores = eager.map("div", &[&scores, &root], width, work::DIVIDE);
        let rows = x.dims[0];
        let causal = layer.causal.slice(0, length - rows, rows).slice(1, 0, length);
        let lowest = eager.fill(&[1], width);
        let scores = eager.map("where", &[&causal, &scores, &lowest], width, work::ONE);
        let scores = eager.map("add", &[&scores, mask], width, work::ONE);
        let shares = eager.softmax(&scores);
        let context = eager.matmul(&shares, &values).permute(&[1, 0, 2]);
        let context = eager.contiguous(&context).reshape(&x.dims);
        eager.affine(&context, &layer.project[0], Some(&layer.project[1]))
    }

    /// Computes `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, one kernel per operation (`NewGELUActivation`).
    fn gelu(&self, x: &View, eager: &mut Eager) -> View {
        let width = self.width;
        let half = eager.map("mul", &[x], width, work::ONE);
        let cube = eager.map("pow", &[x], width, [2, 0]);
        let scaled = eager.map("mul", &[&cube], width, work::ONE);
        let sum = eager.map("add", &[x, &scaled], width, work::ONE);
        let scaled = eager.map("mul", &[&sum], width, work::ONE);
        let tanh = eager.map("tanh", &[&scaled], width, work::TANH);
        let one_more = eager.map("add", &[&tanh], width, work::ONE);
        eager.map("mul", &[&half, &one_more], width, work::ONE)
    }

    /// Executes the steps of `generate` before a pass: positions from the attention mask, and the mask as summands.
    fn prepare(&self, length: u64, eager: &mut Eager) -> View {
        let mask = self.mask.slice(0, 0, length);
        let sums = eager.map("cumsum", &[&mask], 8, [10, 0]);
        let minus = eager.map("sub", &[&sums], 8, work::ONE);
        let none = eager.map("eq", &[&mask], 1, work::ONE);
        let positions = self.positions.slice(0, 0, length);
        eager.map_into("masked_fill", &[&minus, &none], &positions, work::ONE);
        let mask = eager.map("copy", &[&mask], self.width, work::ONE);
        let mask = eager.map("rsub", &[&mask], self.width, work::ONE);
        eager.map("mul", &[&mask], self.width, work::ONE)
    }

    /// Executes the steps of `generate` after a pass: the likeliest word, the check for the end of the text, longer
    /// ids and mask.
    fn choose(&self, logits: &View, length: u64, eager: &mut Eager) {
        let last = logits.slice(0, logits.dims[0] - 1, 1);
        let last = eager.map("copy", &[&last], 4, work::COPY);
        let next = eager.reduce("argmax", &last, 1, 8);
        let next = eager.map("mul", &[&next, &self.alive], 8, work::ONE);
        let done = eager.map("rsub", &[&self.alive], 8, work::ONE);
        let pad = eager.map("mul", &[&done], 8, work::ONE);
        let next = eager.map("add", &[&next, &pad], 8, work::ONE);
        let longer = eager.empty(&[length + 1], 8);
        eager.cat_into(&[&self.ids.slice(0, 0, length), &next], 0, &longer);
        let tiled = eager.map("copy", &[&next], 8, work::COPY);
        let goes_on = eager.map("ne", &[&tiled], 1, work::ONE);
        let all = eager.reduce("prod", &goes_on.reshape(&[1, 1]), 1, 8);
        eager.map_into("mul", &[&self.alive, &all], &self.alive, work::ONE);
        let most = eager.reduce("max", &self.alive.reshape(&[1, 1]), 1, 8);
        eager.map("eq", &[&most], 1, work::ONE);
        let one = eager.fill(&[1], 8);
        let longer = eager.empty(&[length + 1], 8);
        eager.cat_into(&[&self.mask.slice(0, 0, length), &one], 0, &longer);
    }
}

impl Layer {
    fn new(store: &mut Store, hidden: u64, [prompt, most]: [u64; 2], width: u8) -> Layer {
        let mut affine = |name, dims: &[u64]| {
            [store.parameter(name, dims, width), store.parameter(name, &dims[dims.len() - 1..], width)]
        };
        let (first_norm, attend) = (affine("ln_1", &[hidden]), affine("attn.c_attn", &[hidden, 3 * hidden]));
        let (project, norm) = (affine("attn.c_proj", &[hidden, hidden]), affine("ln_2", &[hidden]));
        let (up, down) =
            (affine("mlp.c_fc", &[hidden, 4 * hidden]), affine("mlp.c_proj", &[4 * hidden, hidden]));
        let causal = store.buffer("attn.bias", &[POSITIONS, POSITIONS], 1);
        let prompt = store.buffer("prompt_keys_values", &[prompt, 3 * hidden], width);
        let mut cache =
            || [store.buffer("keys", &[most, hidden], width), store.buffer("values", &[most, hidden], width)];
        let caches = [cache(), cache()];
        Layer { first_norm, attend, project, norm, up, down, causal, prompt, caches }
    }
}

impl Model for Gpt2 {
    fn store(&self) -> &Store {
        &self.store
    }

    fn passes(&self) -> u32 {
        self.tokens
    }

    fn record(&self, pass: u32, eager: &mut Eager) {
        let width = self.width;
        let length = self.prompt + u64::from(pass);
        let rows = if pass == 0 { self.prompt } else { 1 };
        let first = length - rows;
        let mask = self.prepare(length, eager);
        let words = eager.embedding(&self.words, &self.ids.slice(0, first, rows), Ids::Words);
        let places =
            eager.embedding(&self.places, &self.positions.slice(0, first, rows), Ids::From(first as u32));
        let mut x = eager.map("add", &[&words, &places], width, work::ONE);
        for layer in &self.layers {
            let normal = eager.layer_norm(&x, &layer.first_norm[0], &layer.first_norm[1]);
            let attended = self.attention(layer, pass, &normal, &mask, eager);
            x = eager.map("add", &[&attended, &x], width, work::ONE);
            let normal = eager.layer_norm(&x, &layer.norm[0], &layer.norm[1]);
            let up = eager.affine(&normal, &layer.up[0], Some(&layer.up[1]));
            let up = self.gelu(&up, eager);
            let down = eager.affine(&up, &layer.down[0], Some(&layer.down[1]));
            x = eager.map("add", &[&x, &down], width, work::ONE);
        }
        let normal = eager.layer_norm(&x, &self.norm[0], &self.norm[1]);
        // The output's weight is the words' table.
        let logits = eager.linear(&normal, &self.words, None);
        self.choose(&logits, length, eager);
    }
}
