//! ResNet-50 (He et al. 2016, Table 1), as torchvision's `resnet50` runs it: the stride of a block is that of its 3x3
//! convolution.

use crate::program::dnn::eager::{Eager, Window, work};
use crate::program::dnn::memory::{Store, View};
use crate::program::dnn::model::Model;

/// Blocks of the four stages, and channels within them; a block's output has four times as many.
const STAGES: [(u32, u64); 4] = [(3, 64), (4, 128), (6, 256), (3, 512)];
const EXPANSION: u64 = 4;
const CLASSES: u64 = 1000;
const COLOURS: u64 = 3;

/// A convolution and the normalisation after it.
struct Unit {
    filter: View,
    /// Mean, variance, weight, bias.
    norm: [View; 4],
    window: Window,
}

struct Block {
    units: [Unit; 3],
    /// Shortcut that makes the block's input as large as its output.
    shortcut: Option<Unit>,
}

/// The model.
pub(crate) struct ResNet {
    store: Store,
    image: View,
    stem: Unit,
    blocks: Vec<Block>,
    classifier: [View; 2],
    width: u8,
}

impl Unit {
    fn new(store: &mut Store, [inputs, outputs]: [u64; 2], window: Window, width: u8) -> Unit {
        let filter =
            store.parameter("conv.weight", &[outputs, inputs, window.size[0], window.size[1]], width);
        let norm = [
            store.buffer("bn.running_mean", &[outputs], width),
            store.buffer("bn.running_var", &[outputs], width),
            store.parameter("bn.weight", &[outputs], width),
            store.parameter("bn.bias", &[outputs], width),
        ];
        Unit { filter, norm, window }
    }

    fn record(&self, x: &View, eager: &mut Eager) -> View {
        let x = eager.conv(x, &self.filter, None, self.window, 1);
        let [mean, variance, weight, bias] = &self.norm;
        eager.batch_norm(&x, [mean, variance, weight, bias])
    }
}

impl ResNet {
    /// Creates a model for batches of square images, with elements of `width` bytes.
    pub(crate) fn new(batch: u64, size: u64, width: u8) -> ResNet {
        let mut store = Store::default();
        let image = store.buffer("images", &[batch, COLOURS, size, size], width);
        let stem = Unit::new(&mut store, [COLOURS, 64], Window::square(7, 2, 3), width);
        let (mut blocks, mut inputs) = (Vec::new(), 64);
        for (stage, (count, inner)) in STAGES.into_iter().enumerate() {
            for n in 0..count {
                let stride = if stage > 0 && n == 0 { 2 } else { 1 };
                let outputs = EXPANSION * inner;
                let mut unit = |from, to, window| Unit::new(&mut store, [from, to], window, width);
                let units = [
                    unit(inputs, inner, Window::square(1, 1, 0)),
                    unit(inner, inner, Window::square(3, stride, 1)),
                    unit(inner, outputs, Window::square(1, 1, 0)),
                ];
                let shortcut = (n == 0).then(|| unit(inputs, outputs, Window::square(1, stride, 0)));
                blocks.push(Block { units, shortcut });
                inputs = outputs;
            }
        }
        let classifier = [
            store.parameter("fc.weight", &[CLASSES, inputs], width),
            store.parameter("fc.bias", &[CLASSES], width),
        ];
        ResNet { store, image, stem, blocks, classifier, width }
    }

    fn relu(&self, x: &View, eager: &mut Eager) {
        eager.map_into("relu", &[x], x, work::ONE);
    }
}

impl Model for ResNet {
    fn store(&self) -> &Store {
        &self.store
    }

    fn passes(&self) -> u32 {
        1
    }

    fn record(&self, _: u32, eager: &mut Eager) {
        let x = self.stem.record(&self.image, eager);
        self.relu(&x, eager);
        let mut x = eager.pool("max_pool", &x, Window::square(3, 2, 1));
        for block in &self.blocks {
            let mut out = x.clone();
            for (n, unit) in block.units.iter().enumerate() {
                out = unit.record(&out, eager);
                if n < 2 {
                    self.relu(&out, eager);
                }
            }
            let shortcut = match &block.shortcut {
                Some(unit) => unit.record(&x, eager),
                None => x,
            };
            eager.map_into("add", &[&out, &shortcut], &out, work::ONE);
            self.relu(&out, eager);
            x = out;
        }
        let pooled = eager.reduce("mean", &x, 2, self.width);
        eager.linear(&pooled, &self.classifier[0], Some(&self.classifier[1]));
    }
}
