//! Operators over images, and over lines, which are images of one row.

use config::Diagnostic;

use super::compute::{Made, check_product, one, refuse, together};
use super::proto::NodeProto;
use super::value::{check_size, dims_of, integer, integers, text};
use super::{Operator, Scope};
use crate::program::dnn::eager::{Window, work};
use crate::program::dnn::kernels::RANK;
use crate::program::dnn::memory::View;

/// Operators by name.
pub(super) const OPERATORS: &[(&str, Operator)] = &[
    ("AveragePool", |s, n| pool(s, n, "avg_pool")),
    ("BatchNormalization", batch_norm),
    ("Conv", conv),
    ("ConvTranspose", conv_transpose),
    ("GlobalAveragePool", |s, n| global(s, n, "mean")),
    ("GlobalMaxPool", |s, n| global(s, n, "max")),
    ("InstanceNormalization", instance_norm),
    ("LRN", response_norm),
    ("MaxPool", |s, n| pool(s, n, "max_pool")),
    ("Resize", |s, n| resize(s, n, 2)),
    ("Upsample", |s, n| resize(s, n, 1)),
];

/// Limit of strides, dilations, paddings and windows.
const WINDOW_MOST: u64 = 1 << 16;

/// Reads an attribute with a number for each row and column, or for each side of them.
fn sides(node: &NodeProto, name: &str, default: u64, count: usize) -> Result<Vec<u64>, Diagnostic> {
    let Some(given) = integers(node, name) else { return Ok(vec![default; count]) };
    let all = given.iter().filter_map(|n| u64::try_from(*n).ok().filter(|n| *n <= WINDOW_MOST));
    let all: Vec<u64> = all.collect();
    if all.len() == count && given.len() == count {
        Ok(all)
    } else {
        refuse(format!("attribute `{name}` is {given:?}"))
    }
}

/// Images, or lines as images of one row.
struct Images {
    view: View,
    /// Number of dimensions of an image: one or two.
    rank: usize,
}

impl Images {
    fn of(view: View) -> Result<Images, Diagnostic> {
        match *view.dims.as_slice() {
            [n, c, length] => Ok(Images { view: view.reshape(&[n, c, 1, length]), rank: 1 }),
            [_, _, _, _] => Ok(Images { view, rank: 2 }),
            _ => {
                let rank = view.dims.len().saturating_sub(2);
                refuse(format!("images of {rank} dimensions; one or two are supported"))
            }
        }
    }

    /// Returns the result with as many dimensions as the input.
    fn back(&self, made: &View) -> Made {
        let dims = &made.dims;
        if self.rank == 2 { one(made.clone()) } else { one(made.reshape(&[dims[0], dims[1], dims[3]])) }
    }

    fn size(&self) -> [u64; 2] {
        [self.view.dims[2], self.view.dims[3]]
    }

    /// Reads an attribute with a number for each of an image's dimensions.
    fn each(&self, node: &NodeProto, name: &str, default: u64) -> Result<[u64; 2], Diagnostic> {
        let given = sides(node, name, default, self.rank)?;
        Ok(if self.rank == 2 { [given[0], given[1]] } else { [default, given[0]] })
    }

    /// Reads the window of a convolution or a pooling.
    ///
    /// # Errors
    /// If the window does not fit, or makes an image of more than `outputs` channels too large.
    fn window(&self, node: &NodeProto, size: [u64; 2], outputs: u64) -> Result<Window, Diagnostic> {
        let (stride, dilation) = (self.each(node, "strides", 1)?, self.each(node, "dilations", 1)?);
        if stride.contains(&0) || dilation.contains(&0) || size.contains(&0) {
            return refuse("a window, stride or dilation is zero; each must be at least 1");
        }
        let mut window = Window { size, stride, dilation, pad: [0; 4] };
        let pads = sides(node, "pads", 0, 2 * self.rank)?;
        let image = self.size();
        let reach = |n: usize| dilation[n] * (size[n] - 1) + 1;
        match text(node, "auto_pad").as_str() {
            "" | "NOTSET" if self.rank == 2 => window.pad = [pads[0], pads[1], pads[2], pads[3]],
            "" | "NOTSET" => window.pad = [0, pads[0], 0, pads[1]],
            "VALID" => {}
            side @ ("SAME_UPPER" | "SAME_LOWER") => {
                for n in 0..2 {
                    let all =
                        ((image[n].div_ceil(stride[n]) - 1) * stride[n] + reach(n)).saturating_sub(image[n]);
                    let (less, more) = (all / 2, all.div_ceil(2));
                    let (front, back) = if side == "SAME_UPPER" { (less, more) } else { (more, less) };
                    (window.pad[n], window.pad[n + 2]) = (front, back);
                }
            }
            other => return refuse(format!("auto_pad `{other}` is not supported")),
        }
        if integer(node, "ceil_mode", 0) != 0 {
            // A last window counts if it begins within the image or the padding before it, even if it ends outside.
            for n in 0..2 {
                let all = image[n] + window.pad[n] + window.pad[n + 2];
                let steps = all.saturating_sub(reach(n)).div_ceil(stride[n]);
                let begins_inside = steps * stride[n] < image[n] + window.pad[n];
                let steps = if begins_inside { steps } else { steps.saturating_sub(1) };
                window.pad[n + 2] += (steps * stride[n] + reach(n)).saturating_sub(all);
            }
        }
        match window.out(image) {
            Some(out) => check_size(&[self.view.dims[0], outputs, out[0], out[1]]).map(|()| window),
            None => refuse(format!("a window of {size:?} does not fit an image of {image:?}")),
        }
    }
}

/// Returns a bias for `outputs` channels, if there is one.
fn bias(scope: &mut Scope, node: &NodeProto, outputs: u64) -> Result<Option<View>, Diagnostic> {
    match scope.maybe(node, 2)? {
        Some(bias) if bias.count() == outputs => scope.tensor(&bias).map(Some),
        Some(bias) => refuse(format!("a bias of shape {:?} does not match {outputs} channels", bias.dims)),
        None => Ok(None),
    }
}

fn conv(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = Images::of(scope.view(node, 0)?)?;
    let filter = Images::of(scope.view(node, 1)?)?;
    check_product(&x.view)?;
    let groups = integer(node, "group", 1).max(1) as u64;
    let (image, filters) = (&x.view.dims, &filter.view.dims);
    let fits = Some(image[1]) == filters[1].checked_mul(groups) && filters[0].is_multiple_of(groups);
    if !fits || x.rank != filter.rank {
        return refuse(format!(
            "images of shape {image:?} do not match filters of shape {filters:?} in {groups} groups"
        ));
    }
    let window = x.window(node, filter.size(), filters[0])?;
    let bias = bias(scope, node, filters[0])?;
    x.back(&scope.eager.conv(&x.view, &filter.view, bias.as_ref(), window, groups))
}

/// Executes a transposed convolution whose windows do not overlap: a product per image, whose result is reordered.
fn conv_transpose(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = Images::of(scope.view(node, 0)?)?;
    let filter = Images::of(scope.view(node, 1)?)?;
    check_product(&x.view)?;
    let ([n, inputs], [height, width]) = ([x.view.dims[0], x.view.dims[1]], x.size());
    let (outputs, size) = (filter.view.dims[1], filter.size());
    if filter.view.dims[0] != inputs || x.rank != filter.rank {
        return refuse(format!(
            "images of shape {:?} do not match filters of shape {:?}",
            x.view.dims, filter.view.dims
        ));
    }
    let apart = x.each(node, "strides", 1)? == size && x.each(node, "dilations", 1)? == [1, 1];
    let whole = |name: &str| integers(node, name).is_none_or(|given| given.iter().all(|n| *n == 0));
    let plain = ["pads", "output_padding"].into_iter().all(whole) && integers(node, "output_shape").is_none();
    if !apart || !plain || integer(node, "group", 1) != 1 {
        return refuse("only strides as long as the window, without padding, in one group, are supported");
    }
    let patch = outputs * size[0] * size[1];
    check_size(&[n, patch, height, width])?;
    let bias = bias(scope, node, outputs)?;
    let turned = scope.eager.contiguous(&filter.view.reshape(&[inputs, patch]).permute(&[1, 0]));
    // Multiplies each image by the same transposed filter.
    let turned = turned.strided(&[n, patch, inputs], &[0, inputs, 1]);
    let product = scope.eager.matmul(&turned, &x.view.reshape(&[n, inputs, height * width]));
    let apart = product.reshape(&[n * outputs, size[0], size[1], height, width]).permute(&[0, 3, 1, 4, 2]);
    let dims = [n, outputs, height * size[0], width * size[1]];
    let output = scope.eager.empty(&dims, x.view.width);
    scope.eager.map_into("col2im", &[&apart], &output.reshape(&apart.dims), work::COPY);
    match bias {
        Some(bias) => {
            let bias = bias.reshape(&[outputs, 1, 1]);
            x.back(&scope.eager.map("add", &[&output, &bias], output.width, work::ONE))
        }
        None => x.back(&output),
    }
}

fn pool(scope: &mut Scope, node: &NodeProto, name: &'static str) -> Made {
    let x = Images::of(scope.view(node, 0)?)?;
    if integers(node, "kernel_shape").is_none() {
        return refuse("attribute `kernel_shape` is missing");
    }
    let size = x.each(node, "kernel_shape", 1)?;
    let window = x.window(node, size, x.view.dims[1])?;
    if window.dilation != [1, 1] {
        return refuse("dilations are not supported");
    }
    x.back(&scope.eager.pool(name, &x.view, window))
}

/// Reduces each image to one value.
fn global(scope: &mut Scope, node: &NodeProto, name: &'static str) -> Made {
    let x = scope.view(node, 0)?;
    if x.dims.len() < 3 {
        return refuse(format!("a tensor of shape {:?} is not an image", x.dims));
    }
    let mut dims = x.dims.clone();
    dims[2..].fill(1);
    one(scope.eager.reduce(name, &x, dims.len() - 2, x.width).reshape(&dims))
}

fn batch_norm(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    let mut channel = |n| scope.view(node, n);
    let all = [channel(3)?, channel(4)?, channel(1)?, channel(2)?];
    if x.dims.len() < 2 || x.dims.len() > RANK || all.iter().any(|c| c.count() != x.dims[1]) {
        return refuse(format!("a tensor of shape {:?} does not match its channels", x.dims));
    }
    one(scope.eager.batch_norm(&x, [&all[0], &all[1], &all[2], &all[3]]))
}

/// Normalises rows, then scales and shifts them by channel.
fn instance_norm(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    let (weight, bias) = (scope.view(node, 1)?, scope.view(node, 2)?);
    let rank = x.dims.len();
    if !(3..=RANK).contains(&rank) || weight.count() != x.dims[1] || bias.count() != x.dims[1] {
        return refuse(format!("a tensor of shape {:?} does not match its channels", x.dims));
    }
    let rows = x.dims[0] * x.dims[1];
    let normal = scope.eager.normalise(&x.reshape(&[rows, x.count() / rows])).reshape(&x.dims);
    let mut channel = vec![1; rank - 1];
    channel[0] = x.dims[1];
    let (weight, bias) = (weight.reshape(&channel), bias.reshape(&channel));
    one(scope.eager.map("scale_shift", &[&normal, &weight, &bias], x.width, [2, 0]))
}

/// Executes local response normalisation: each element reads as many channels as `size` says.
fn response_norm(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = Images::of(scope.view(node, 0)?)?;
    let size = integer(node, "size", 0);
    if !(1..=WINDOW_MOST as i64).contains(&size) {
        return refuse(format!("`size` is {size}, out of range"));
    }
    let (dims, size) = (&x.view.dims, size as u64);
    // Channels are the rows of a window one pixel wide.
    let planes = x.view.reshape(&[dims[0], 1, dims[1], dims[2] * dims[3]]);
    let pad = [(size - 1) / 2, 0, size / 2, 0];
    let window = Window { size: [size, 1], stride: [1; 2], dilation: [1; 2], pad };
    x.back(&scope.eager.pool("lrn", &planes, window).reshape(dims))
}

/// Repeats each pixel. `at` is the input with the factors; the next one has sizes.
fn resize(scope: &mut Scope, node: &NodeProto, at: usize) -> Made {
    let x = scope.input(node, 0)?;
    let mode = text(node, "mode");
    if !matches!(mode.as_str(), "" | "nearest") {
        return refuse(format!("mode `{mode}` is not supported; use `nearest`"));
    }
    // Version 10 of the operator has no region of interest before the factors.
    let at = if node.input.len() == 2 { 1 } else { at };
    let sizes = if node.input.len() > at + 1 { scope.maybe(node, at + 1)? } else { None };
    let dims = match (sizes.and_then(|sizes| sizes.known), scope.maybe(node, at)?.and_then(|s| s.reals)) {
        (Some(sizes), _) => dims_of(&sizes)?,
        (None, Some(reals)) if reals.len() == x.dims.len() => {
            x.dims.iter().zip(reals).map(|(d, s)| (*d as f64 * f64::from(s)).floor() as u64).collect()
        }
        _ => return refuse("sizes and factors must be known before the model runs"),
    };
    let view = scope.tensor(&x)?;
    let fits = dims.len() == x.dims.len()
        && dims.iter().zip(&x.dims).all(|(d, from)| *d > 0 && d.is_multiple_of(*from));
    if !fits {
        return refuse(format!("shape {:?} to {dims:?}: only whole factors are supported", x.dims));
    }
    check_size(&dims)?;
    // A dimension that grows becomes two: its pixels, and their repetitions.
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (old, new) in x.dims.iter().zip(&dims) {
        from.push(*old);
        to.push(*old);
        if new != old {
            from.push(1);
            to.push(new / old);
        }
    }
    if to.len() > RANK {
        return refuse(format!("more than {RANK} dimensions, where one that grows counts twice"));
    }
    together(&[&from, &to])?;
    let output = scope.eager.empty(&dims, x.width);
    scope.eager.map_into("upsample_nearest", &[&view.reshape(&from)], &output.reshape(&to), work::COPY);
    one(output)
}
