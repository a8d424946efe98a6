//! Operators that launch their kernels when they are called: PyTorch's eager mode, recorded.

use super::kernels::{
    Bias, Columns, Gather, Gemm, Gemv, Ids, Image, Map, Matrix, Pool, RANK, Right, Rows, Sweep, Target, Task,
};
use super::memory::View;

/// Arithmetic and special functions per element, of functions that models use.
pub(crate) mod work {
    /// A copy, or a constant.
    pub(crate) const COPY: [u8; 2] = [0, 0];
    /// One operation.
    pub(crate) const ONE: [u8; 2] = [1, 0];
    /// A division: its reciprocal, two steps of Newton's method, checks.
    pub(crate) const DIVIDE: [u8; 2] = [8, 1];
    /// Hyperbolic tangent: one exponential, one reciprocal.
    pub(crate) const TANH: [u8; 2] = [6, 2];
    /// Gaussian error function and the rest of GELU: a polynomial of degree nine, one exponential.
    pub(crate) const GELU: [u8; 2] = [20, 1];
    /// Exponential, logarithm or root with scaling.
    pub(crate) const SPECIAL: [u8; 2] = [4, 1];
    /// Subtract, multiply by a reciprocal root, scale, shift.
    pub(crate) const NORMALISE: [u8; 2] = [5, 1];
}

/// Strides, dilations, padding of a convolution or a pooling window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) size: [u64; 2],
    pub(crate) stride: [u64; 2],
    pub(crate) dilation: [u64; 2],
    /// Padding before the first and after the last row and column: top, left, bottom, right.
    pub(crate) pad: [u64; 4],
}

impl Window {
    /// Returns a square window.
    pub(crate) fn square(size: u64, stride: u64, pad: u64) -> Window {
        Window { size: [size; 2], stride: [stride; 2], dilation: [1; 2], pad: [pad; 4] }
    }
    /// Returns rows and columns of the output; none if the window does not fit.
    pub(crate) fn out(&self, input: [u64; 2]) -> Option<[u64; 2]> {
        let side = |n: usize| {
            let reach = self.dilation[n] * (self.size[n] - 1) + 1;
            let room = (input[n] + self.pad[n] + self.pad[n + 2]).checked_sub(reach)?;
            Some(room / self.stride[n] + 1)
        };
        Some([side(0)?, side(1)?])
    }
}

/// Recorder of the kernels of one pass.
#[derive(Debug, Default)]
pub(crate) struct Eager {
    /// Bytes of every tensor; those that outlive the pass come first.
    pub(super) sizes: Vec<u64>,
    /// Number of tensors that outlive the pass.
    pub(super) lasting: u32,
    pub(super) tasks: Vec<Task>,
}

impl Eager {
    /// Starts a pass over a store's tensors.
    pub(crate) fn new(store: &super::memory::Store) -> Eager {
        let size = |t: &super::memory::Tensor| t.dims.iter().product::<u64>() * u64::from(t.width);
        let sizes: Vec<u64> = store.tensors().iter().map(size).collect();
        Eager { lasting: sizes.len() as u32, sizes, tasks: Vec::new() }
    }

    /// Creates a new tensor, without a kernel.
    pub(crate) fn empty(&mut self, dims: &[u64], width: u8) -> View {
        self.sizes.push(dims.iter().product::<u64>() * u64::from(width));
        View::of(self.sizes.len() as u32 - 1, dims, width)
    }

    /// Launches an element-wise kernel into `output`, to whose dimensions the inputs are broadcast.
    pub(crate) fn map_into(&mut self, name: &'static str, inputs: &[&View], output: &View, work: [u8; 2]) {
        let dims = &output.dims;
        assert!(dims.len() <= RANK, "{name} over {dims:?}");
        let inputs = inputs.iter().map(|input| input.over(dims)).collect();
        self.tasks.push(Task::Map(Map::new(name, dims, inputs, output.over(dims), work)));
    }

    /// Launches an element-wise kernel, whose result has the broadcast dimensions of all inputs and elements of
    /// `width` bytes.
    pub(crate) fn map(&mut self, name: &'static str, inputs: &[&View], width: u8, work: [u8; 2]) -> View {
        let dims = inputs.iter().fold(Vec::new(), |dims, input| broadcast(&dims, &input.dims));
        let output = self.empty(&dims, width);
        self.map_into(name, inputs, &output, work);
        output
    }

    /// Launches a kernel that only writes.
    pub(crate) fn fill(&mut self, dims: &[u64], width: u8) -> View {
        let output = self.empty(dims, width);
        self.map_into("fill", &[], &output, work::COPY);
        output
    }

    /// Returns the elements in order, copied if necessary.
    pub(crate) fn contiguous(&mut self, input: &View) -> View {
        if input.is_contiguous() {
            input.clone()
        } else {
            self.map("copy", &[input], input.width, work::COPY)
        }
    }

    /// Concatenates pieces along a dimension: one kernel.
    pub(crate) fn cat_into(&mut self, inputs: &[&View], axis: usize, output: &View) {
        let mut from = 0;
        let mut all: Option<Map> = None;
        for input in inputs {
            let place = output.slice(axis, from, input.dims[axis]);
            from += input.dims[axis];
            let (read, written) = (vec![input.over(&input.dims)], place.over(&input.dims));
            match &mut all {
                Some(map) => map.part(&input.dims, read, written),
                None => all = Some(Map::new("cat", &input.dims, read, written, work::COPY)),
            }
        }
        self.tasks.extend(all.map(Task::Map));
    }

    /// Picks rows of a table; the result has the dimensions of the numbers and the table's last.
    pub(crate) fn embedding(&mut self, table: &View, numbers: &View, ids: Ids) -> View {
        let dims = [numbers.dims.as_slice(), &[table.last()]].concat();
        let output = self.empty(&dims, table.width);
        self.tasks.push(Task::Gather(Gather {
            ids,
            rows: table.dims[0],
            picked: numbers.count(),
            columns: table.last(),
            numbers: numbers.at(),
            table: table.at(),
            output: output.at(),
            width: table.width,
        }));
        output
    }

    /// Computes `x w^T + b`; the weight has a row for each output.
    pub(crate) fn linear(&mut self, x: &View, weight: &View, bias: Option<&View>) -> View {
        let right = weight.permute(&[1, 0]);
        self.affine(x, &right, bias)
    }

    /// Computes `x w + b`; the weight has a column for each output. `x` is contiguous.
    pub(crate) fn affine(&mut self, x: &View, weight: &View, bias: Option<&View>) -> View {
        let n = weight.dims[1];
        let dims = [&x.dims[..x.dims.len() - 1], &[n]].concat();
        let output = self.empty(&dims, x.width);
        self.affine_into(x, weight, bias, &output);
        output
    }

    /// Computes as `affine`, into an existing tensor.
    pub(crate) fn affine_into(&mut self, x: &View, weight: &View, bias: Option<&View>, output: &View) {
        let (k, n) = (x.last(), weight.dims[1]);
        let m = x.count() / k;
        let row = if x.dims.len() > 1 { x.strides[x.dims.len() - 2] } else { k };
        let left = Matrix { at: x.at(), row, column: 1, batch: 0 };
        self.product([1, m, n, k], left, weight.matrix(), bias, output);
    }

    /// Computes matrix products; a dimension before the last two is the batch.
    pub(crate) fn matmul(&mut self, a: &View, b: &View) -> View {
        let (dims, rank) = (&a.dims, a.dims.len());
        let n = b.last();
        let batch = if rank > 2 { dims[rank - 3] } else { 1 };
        let (m, k) = (dims[rank - 2], dims[rank - 1]);
        let output = self.empty(&[&dims[..rank - 1], &[n]].concat(), a.width);
        self.product([batch, m, n, k], a.matrix(), b.matrix(), None, &output);
        output
    }

    fn product(
        &mut self,
        [batch, m, n, k]: [u64; 4],
        left: Matrix,
        right: Matrix,
        bias: Option<&View>,
        output: &View,
    ) {
        let (width, target_batch) = (output.width, m * n);
        if m == 1 {
            let (bias, target) = (bias.map(View::at), output.at());
            let vector = left;
            self.tasks.push(Task::Gemv(Gemv {
                batch,
                n,
                k,
                vector,
                matrix: right,
                bias,
                target,
                target_batch,
                width,
            }));
            return;
        }
        let target = Target { at: output.at(), row: n, batch: target_batch, run: n, jump: n };
        let bias = bias.map(|bias| Bias::Column(bias.at()));
        let right = Right::Matrix(right);
        self.tasks.push(Task::Gemm(Gemm { batch, m, n, k, left, right, bias, target, width }));
    }

    /// Computes a convolution; images in the order batch, channel, row, column, filters in the order output, input,
    /// row, column.
    ///
    /// # Panics
    /// If the window does not fit: models check this.
    pub(crate) fn conv(
        &mut self,
        x: &View,
        filter: &View,
        bias: Option<&View>,
        window: Window,
        groups: u64,
    ) -> View {
        let (images, size) = (x.dims[0], [x.dims[2], x.dims[3]]);
        let out = window.out(size).expect("the window fits");
        let (outputs, channels) = (filter.dims[0], filter.dims[1]);
        let output = self.empty(&[images, outputs, out[0], out[1]], x.width);
        let (m, pixels, k) = (outputs / groups, out[0] * out[1], channels * window.size[0] * window.size[1]);
        let left = Matrix { at: filter.at(), row: k, column: 1, batch: m * k };
        let image = Image {
            at: x.at(),
            channels,
            all_channels: x.dims[1],
            height: size[0],
            width: size[1],
            filter: window.size,
            stride: window.stride,
            dilation: window.dilation,
            pad: [window.pad[0], window.pad[1]],
            out,
        };
        let target =
            Target { at: output.at(), row: pixels, batch: m * pixels, run: pixels, jump: outputs * pixels };
        let bias = bias.map(|bias| Bias::Row(bias.at()));
        let (n, right) = (images * pixels, Right::Image(image));
        let width = x.width;
        self.tasks.push(Task::Gemm(Gemm { batch: groups, m, n, k, left, right, bias, target, width }));
        output
    }

    /// Computes batch normalisation with fixed statistics: mean, variance, weight, bias of each channel.
    pub(crate) fn batch_norm(&mut self, x: &View, channel: [&View; 4]) -> View {
        let tail = vec![1; x.dims.len() - 2];
        let of = channel.map(|view| view.reshape(&[&[view.count()], tail.as_slice()].concat()));
        let inputs = [x, &of[0], &of[1], &of[2], &of[3]];
        self.map("batch_norm_inference", &inputs, x.width, work::NORMALISE)
    }

    /// Computes pooling of images.
    ///
    /// # Panics
    /// If the window does not fit: models check this.
    pub(crate) fn pool(&mut self, name: &'static str, x: &View, window: Window) -> View {
        let size = [x.dims[2], x.dims[3]];
        let out = window.out(size).expect("the window fits");
        let output = self.empty(&[x.dims[0], x.dims[1], out[0], out[1]], x.width);
        self.tasks.push(Task::Pool(Pool {
            name,
            planes: x.dims[0] * x.dims[1],
            size,
            window: window.size,
            stride: window.stride,
            pad: [window.pad[0], window.pad[1]],
            out,
            input: x.at(),
            output: output.at(),
            width: x.width,
        }));
        output
    }

    /// Computes softmax over the last dimension.
    pub(crate) fn softmax(&mut self, x: &View) -> View {
        let output = self.empty(&x.dims, x.width);
        self.rows(Sweep::Softmax, x, None, &output);
        output
    }

    /// Computes layer normalisation over the last dimension.
    pub(crate) fn layer_norm(&mut self, x: &View, weight: &View, bias: &View) -> View {
        let output = self.empty(&x.dims, x.width);
        self.rows(Sweep::LayerNorm, x, Some([weight.at(), bias.at()]), &output);
        output
    }

    /// Normalises the rows of a matrix: subtracts the mean, divides by the deviation.
    pub(crate) fn normalise(&mut self, x: &View) -> View {
        let output = self.empty(&x.dims, x.width);
        self.rows(Sweep::LayerNorm, x, None, &output);
        output
    }

    /// Reduces the last `dims` dimensions to one value of `width` bytes.
    pub(crate) fn reduce(&mut self, name: &'static str, x: &View, dims: usize, width: u8) -> View {
        let (kept, reduced) = x.dims.split_at(x.dims.len() - dims);
        let flat = x.reshape(&[kept.iter().product(), reduced.iter().product()]);
        let output = self.empty(kept, width);
        self.rows(Sweep::Reduce(name, width), &flat, None, &output);
        output
    }

    /// Reduces one dimension that is not the last.
    pub(crate) fn reduce_columns(&mut self, x: &View, axis: usize) -> View {
        let dims = [&x.dims[..axis], &x.dims[axis + 1..]].concat();
        let output = self.empty(&dims, x.width);
        self.tasks.push(Task::Columns(Columns {
            outer: x.dims[..axis].iter().product(),
            length: x.dims[axis],
            inner: x.dims[axis + 1..].iter().product(),
            input: x.at(),
            output: output.at(),
            width: x.width,
        }));
        output
    }

    fn rows(&mut self, sweep: Sweep, x: &View, affine: Option<[super::kernels::At; 2]>, output: &View) {
        let columns = x.last();
        let (rows, input, width) = (x.count() / columns.max(1), x.at(), x.width);
        self.tasks.push(Task::Rows(Rows { sweep, rows, columns, input, affine, output: output.at(), width }));
    }
}

/// Returns the broadcast dimensions of two operands, aligned at the last.
pub(crate) fn broadcast(a: &[u64], b: &[u64]) -> Vec<u64> {
    let rank = a.len().max(b.len());
    let of = |dims: &[u64], n: usize| (n + dims.len()).checked_sub(rank).map_or(1, |n| dims[n]);
    (0..rank).map(|n| if of(a, n) == 1 { of(b, n) } else { of(a, n) }).collect()
}
