//! Recorded instruction traces of GPUs as programs: Accel-Sim's (SASS as NVBit sees it) and MacSim's (NVBit).
//!
//! A trace is read once, completely, and every fault in it is found then. Its instructions are held in a few bytes
//! each, so running it reads no file. Device addresses are moved into a space from zero up, page by page.
//!
//! Properties that a trace does not record, or records in a special way:
//! * Registers: SASS's R0 to R254 are registers, R255 and predicates are not. Only the first register of a pair or
//!   quadruple is named.
//! * An instruction whose lanes are all predicated off takes its turn as arithmetic.
//! * Constant memory is arithmetic; texture, surface and bulk-copy instructions are refused.
//! * `BAR.ARV` does not wait. All barriers of a block count as one.
//! * Accel-Sim's generic `LD`/`ST` are distinguished by address, with the windows in the head of the kernel file.

// A trace returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod accelsim;
mod code;
mod macsim;
mod opcode;
mod space;

use crate::program::{Kernel, Program, Space, WarpAt};
use code::{Code, Paths, Place, Reader, Static, Warp, WarpWriter};
use config::Diagnostic;
use opcode::Window;
use proto::simt::{Inst, InstKind, LANES, Tape};
use space::{Layout, Touched, WINDOW};
use std::{fs::File, io::Read, path::Path};
use text::{Bad, Input, fault};

// A recorded trace as a program: its instructions do not depend on the machine's timing.

/// A kernel of a trace.
#[derive(Clone, Debug)]
struct Recorded {
    kernel: Kernel,
    /// Warps, block by block.
    warps: Vec<Warp>,
}

/// Maximum instructions per step.
const STEP: usize = 32;

/// An active warp.
#[derive(Clone, Copy, Debug)]
struct Running {
    reader: Reader,
    /// Number in the grid.
    number: u64,
}

/// A recorded trace.
#[derive(Clone)]
struct Trace {
    name: &'static str,
    kernels: Vec<Recorded>,
    insts: Vec<Static>,
    paths: Paths,
    layout: Layout,
    launched: usize,
    slots: Vec<Option<Running>>,
}

impl Trace {
    fn new(
        name: &'static str,
        kernels: Vec<Recorded>,
        insts: Vec<Static>,
        paths: Paths,
        layout: Layout,
    ) -> Trace {
        Trace { name, kernels, insts, paths, layout, launched: 0, slots: Vec::new() }
    }

    /// Bytes that the instructions of all warps are held in.
    #[cfg(test)]
    fn held(&self) -> u64 {
        let warps: usize = self.kernels.iter().map(|kernel| kernel.warps.len()).sum();
        self.paths.bytes() + (warps * size_of::<Warp>()) as u64
    }
}

impl Program for Trace {
    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> &Space {
        &self.layout.space
    }

    fn copy(&self) -> Box<dyn Program> {
        Box::new(self.clone())
    }

    fn launch(&mut self) -> Option<Kernel> {
        let recorded = self.kernels.get(self.launched)?;
        self.launched += 1;
        Some(recorded.kernel)
    }

    fn start(&mut self, slot: u32, at: WarpAt) {
        let recorded = &self.kernels[self.launched - 1];
        let warps = recorded.kernel.threads.div_ceil(LANES as u32);
        let number = u64::from(at.block) * u64::from(warps) + u64::from(at.warp);
        let reader = Reader::new(recorded.warps[number as usize]);
        let slot = slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        self.slots[slot] = Some(Running { reader, number });
    }

    fn step(&mut self, slot: u32, origin: u32, tape: &mut Tape) -> bool {
        let Some(running) = &mut self.slots[slot as usize] else { return false };
        for _ in 0..STEP {
            let Some((number, mask)) = running.reader.next(&self.paths) else { return false };
            let inst = &self.insts[number as usize];
            let kind = execute(inst, mask, origin, running, &self.paths, &self.layout, tape);
            if kind == InstKind::Barrier {
                break;
            }
        }
        running.reader.more(&self.paths)
    }
}

/// Writes an instruction to the tape.
#[inline]
fn execute(
    inst: &Static,
    mask: u32,
    origin: u32,
    running: &mut Running,
    paths: &Paths,
    layout: &Layout,
    tape: &mut Tape,
) -> InstKind {
    let start = tape.addresses.len();
    let mut write = |kind, width| {
        let Static { to, from, pc, .. } = *inst;
        let addresses = start as u32;
        tape.insts.push(Inst { kind, width, to, from, count: 1, pc: origin + pc, mask, addresses });
        kind
    };
    // With no active lane, an instruction only takes its turn.
    if mask == 0 {
        return write(InstKind::Alu, 0);
    }
    if !inst.class.is_access() {
        return write(inst.class.kind(false), 0);
    }
    let place = running.reader.access(paths, &mut tape.addresses);
    let addresses = &mut tape.addresses[start..];
    match place {
        Place::Global => layout.global(addresses),
        Place::Shared => {}
        Place::Local => layout.local(running.number, inst.width, mask, addresses),
    }
    write(inst.class.kind(place == Place::Shared), inst.width)
}

// Reading of a trace, common to both formats.

/// Start of a kernel's shared and local memory in generic addresses; zero if the trace does not give it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Windows {
    shared: u64,
    local: u64,
}

impl Windows {
    fn place(self, address: u64) -> Place {
        let within = |base: u64| base != 0 && address >= base && address - base < WINDOW;
        // Buffers are above the lowest 16 MiB; offsets in shared memory are not.
        if address < WINDOW || within(self.shared) {
            Place::Shared
        } else if within(self.local) {
            Place::Local
        } else {
            Place::Global
        }
    }
}

/// Maximum blocks of a grid and threads of a block: CUDA C++ programming guide, compute capabilities.
const MOST_BLOCKS: u64 = u32::MAX as u64;

const MOST_THREADS: u64 = 1024;

/// A trace being read.
#[derive(Default)]
struct Builder {
    code: Code,
    paths: Paths,
    touched: Touched,
    kernels: Vec<Recorded>,
}

impl Builder {
    /// Returns the address space of an access, and turns shared and local addresses into offsets.
    fn place(
        &mut self,
        window: Window,
        windows: Windows,
        width: u8,
        addresses: &mut [u64],
    ) -> Result<Place, Bad> {
        let Some(&first) = addresses.first() else { return Ok(Place::Global) };
        let place = match window {
            Window::Global => Place::Global,
            Window::Shared => Place::Shared,
            Window::Local => Place::Local,
            Window::Generic => windows.place(first),
        };
        if window == Window::Generic && addresses.iter().any(|&address| windows.place(address) != place) {
            return Err(Bad::new("lanes of one instruction access different address spaces"));
        }
        for address in addresses.iter_mut() {
            match place {
                Place::Global => self.touched.global(*address, width)?,
                Place::Shared => *address = offset(*address, windows.shared),
                Place::Local => {
                    *address = offset(*address, windows.local);
                    self.touched.local(*address, width);
                }
            }
        }
        Ok(place)
    }

    /// Adds a kernel whose warps have been read.
    fn kernel(&mut self, kernel: Recorded) {
        self.kernels.push(kernel);
    }

    /// Appends an instruction to a warp.
    fn push(&mut self, warp: &mut WarpWriter, inst: Static, mask: u32, access: Option<(Place, &[u64])>) {
        let number = self.code.number(inst);
        warp.push(number, mask, access);
    }

    /// Returns the complete trace.
    fn finish(mut self, name: &'static str) -> Result<Trace, Bad> {
        if self.kernels.is_empty() {
            return Err(Bad::new("the trace has no kernel"));
        }
        self.paths.close();
        Ok(Trace::new(name, self.kernels, self.code.into_insts(), self.paths, self.touched.lay_out()?))
    }
}

/// Returns an offset in a window of 16 MiB. The tracers give offsets or generic addresses, whatever the instruction
/// takes; if the trace does not give the start of the window, it is a multiple of its size, as on all devices.
fn offset(address: u64, base: u64) -> u64 {
    if address >= base && base != 0 && address - base < WINDOW { address - base } else { address % WINDOW }
}

/// Warps of a kernel's grid, in any order.
#[derive(Default)]
struct Grid {
    warps: Vec<(u32, u32, Warp)>,
}

impl Grid {
    fn add(&mut self, block: u32, warp: u32, taken: Warp) {
        self.warps.push((block, warp, taken));
    }

    /// Returns all warps of `blocks` blocks, block by block.
    fn finish(mut self, blocks: u32, warps: u32) -> Result<Vec<Warp>, Bad> {
        self.warps.sort_by_key(|(block, warp, _)| (*block, *warp));
        let mut expected = 0_u64;
        for (block, warp, _) in &self.warps {
            let here = u64::from(*block) * u64::from(warps) + u64::from(*warp);
            if here > expected {
                return Err(missing(expected, warps));
            }
            if here < expected {
                return Err(Bad::new(format!("warp {warp} of block {block} appears twice")));
            }
            expected += 1;
        }
        if expected != u64::from(blocks) * u64::from(warps) {
            return Err(missing(expected, warps));
        }
        Ok(self.warps.into_iter().map(|(_, _, taken)| taken).collect())
    }
}

fn missing(number: u64, warps: u32) -> Bad {
    let (block, warp) = (number / u64::from(warps), number % u64::from(warps));
    Bad::new(format!("warp {warp} of block {block} is not in the trace"))
}

/// Returns the blocks of a grid, or threads of a block, from their three dimensions.
fn volume(dimensions: [u64; 3], what: &str, most: u64) -> Result<u32, Bad> {
    let product = dimensions.iter().try_fold(1_u64, |product, &n| product.checked_mul(n));
    match product {
        Some(n @ 1..) if n <= most => Ok(n as u32),
        _ => {
            let [x, y, z] = dimensions;
            Err(Bad::new(format!("a {what} of {x} x {y} x {z}")).help(format!("it has 1 to {most}")))
        }
    }
}

/// Returns the blocks of a grid.
fn blocks(dimensions: [u64; 3]) -> Result<u32, Bad> {
    volume(dimensions, "grid", MOST_BLOCKS)
}

/// Returns the threads of a block.
fn threads(dimensions: [u64; 3]) -> Result<u32, Bad> {
    volume(dimensions, "block", MOST_THREADS)
}

// Detection of a trace's format, by content.

/// Kind of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// List of Accel-Sim kernels.
    AccelSimList,
    /// Accel-Sim kernel file.
    AccelSimKernel,
    /// Folder or configuration file of MacSim.
    MacSim,
    /// Tar archive of a MacSim folder.
    MacSimArchive,
}

/// Number of bytes that identify a file.
const START_BYTES: u64 = 64 << 10;

/// Names of Accel-Sim's lists of kernels.
const LIST_NAMES: [&str; 2] = ["kernelslist.g", "kernelslist"];

fn format_of(path: &Path) -> Option<Format> {
    if path.is_dir() {
        if LIST_NAMES.iter().any(|name| path.join(name).is_file()) {
            return Some(Format::AccelSimList);
        }
        return macsim::ROOTS.iter().any(|name| path.join(name).is_file()).then_some(Format::MacSim);
    }
    // A pipe can be read only once.
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    let input = File::open(path).and_then(Input::new).ok()?;
    // The readable part of a damaged file identifies it; opening it reports the damage.
    let _ = input.bytes.take(START_BYTES).read_to_end(&mut start);
    if macsim::is_archive(&start) {
        return Some(Format::MacSimArchive);
    }
    let text = String::from_utf8_lossy(&start);
    if accelsim::is_list(&text) {
        Some(Format::AccelSimList)
    } else if accelsim::is_kernel(&text) {
        Some(Format::AccelSimKernel)
    } else {
        macsim::is_config(&text).then_some(Format::MacSim)
    }
}

/// Returns true if a text is the beginning of a GPU trace file.
pub(crate) fn is_gpu_text(start: &str) -> bool {
    accelsim::is_list(start) || accelsim::is_kernel(start) || macsim::is_config(start)
}

/// Returns true if a file or folder is a recorded instruction trace of a GPU, by content.
pub fn is_gpu_trace(path: &Path) -> bool {
    format_of(path).is_some()
}

/// Opens a recorded trace as a program: Accel-Sim's `kernelslist.g`, a folder that has one, or one kernel file
/// (`.traceg` of tracer versions 3 to 5, or the tracer's own `.trace`); MacSim's folder, `kernel_config.txt` or a
/// kernel's `trace.txt`, or a tar archive of a folder; each also compressed. Every fault is found here.
///
/// # Errors
/// If a path is none of these, or part of it cannot be read: the diagnostic names the file and the line or record.
pub fn open(path: &Path) -> Result<Box<dyn Program>, Diagnostic> {
    read_trace(path).map(|trace| Box::new(trace) as Box<dyn Program>)
}

fn read_trace(path: &Path) -> Result<Trace, Diagnostic> {
    let source = fault::name(path);
    let Some(format) = format_of(path) else {
        if let Err(error) = path.metadata() {
            return Err(Bad::new(format!("cannot read the trace: {error}")).in_file(&source));
        }
        let help = "a trace is Accel-Sim's `kernelslist.g` or kernel file, or MacSim's folder, configuration or archive";
        return Err(Bad::new("not an instruction trace of a GPU").help(help).in_file(&source));
    };
    let mut builder = Builder::default();
    let name = match format {
        Format::AccelSimList if path.is_dir() => {
            let list = LIST_NAMES.iter().map(|name| path.join(name)).find(|list| list.is_file());
            accelsim::read_list(&list.unwrap_or_else(|| path.to_owned()), &mut builder)?;
            "accel-sim"
        }
        Format::AccelSimList => {
            accelsim::read_list(path, &mut builder)?;
            "accel-sim"
        }
        Format::AccelSimKernel => {
            accelsim::read_kernel(path, &mut builder)?;
            "accel-sim"
        }
        Format::MacSim => {
            macsim::read_files(path, &mut builder)?;
            "macsim"
        }
        Format::MacSimArchive => {
            macsim::read_archive(path, &mut builder)?;
            "macsim"
        }
    };
    builder.finish(name).map_err(|bad| bad.in_file(&source))
}

#[cfg(test)]
mod tests {
    // What a trace takes in memory.
    use std::fmt::Write as _;

    use super::read_trace;

    /// A kernel of `warps` warps that load at random and store in a row, with arithmetic between.
    fn trace(warps: u32) -> String {
        let mut text = format!(
            "-kernel name = k\n-grid dim = ({warps},1,1)\n-block dim = (32,1,1)\n-shmem = 0\n-nregs = 8\n\
         -accelsim tracer version = 5\n#\n"
        );
        let mut random = 1_u64;
        for warp in 0..warps {
            let _ = write!(text, "#BEGIN_TB\nthread block = {warp},0,0\nwarp = 0\ninsts = 40\n");
            for n in 0..38 {
                let _ = writeln!(text, "{:04x} ffffffff 1 R{} IMAD 2 R6 R3 0 0", n * 16, n % 30);
            }
            text.push_str("0400 ffffffff 1 R4 LDG.E 1 R4 4 0");
            for _ in 0..32 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let _ = write!(text, " {:#018x}", 0x7f00_0000_0000 + (random >> 32 & 0xfff_fffc));
            }
            let _ = writeln!(
                text,
                " 0\n0410 ffffffff 0 STG.E 2 R4 R5 4 1 {:#x} 4 0\n#END_TB",
                0x7e00_0000_0000_u64 + u64::from(warp) * 128
            );
        }
        text
    }

    #[test]
    fn a_trace_takes_a_fraction_of_its_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kernel-1.traceg");
        let text = trace(1000);
        std::fs::write(&path, &text).expect("a file");
        let held = read_trace(&path).unwrap_or_else(|refused| panic!("{refused}")).held();
        // A random access: a byte for the place, six for the base, at most five for each difference. A stride: three and less.
        // A warp: 16 bytes, and the one path of 40 bytes that all share.
        assert!(held <= 1000 * (1 + 6 + 31 * 5 + 1 + 6 + 1 + 16) + 40, "{held}");
        assert!(held * 10 < text.len() as u64, "{held} of {}", text.len());
    }
}
