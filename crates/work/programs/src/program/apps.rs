//! Several applications side by side.

use proto::simt::{Launch, Programs, Tape, WarpStart};

use crate::program::{Kernel, Program, WarpAt};

/// Bits of an instruction's address inside its application: the code of another begins above them.
const CODE_BITS: u32 = 24;

struct App {
    program: Box<dyn Program>,
    /// The program before its first launch, if it is to be repeated.
    first: Option<Box<dyn Program>>,
    /// Every kernel launched, in order; the last is the present one.
    kernels: Vec<Kernel>,
}

/// Applications with an address space each, as a GPU's multiprocessors see them. A warp's slot has the same number in the
/// machine and in the program.
pub struct Apps {
    apps: Vec<App>,
    /// The application of the warp in each slot.
    of: Vec<u8>,
}

impl Apps {
    /// These programs, numbered in their order.
    ///
    /// # Panics
    /// If there are more than 254.
    pub fn new(programs: Vec<Box<dyn Program>>) -> Apps {
        assert!(programs.len() < usize::from(u8::MAX), "applications are numbered by a byte");
        let app = |program| App { program, first: None, kernels: Vec::new() };
        Apps { apps: programs.into_iter().map(app).collect(), of: Vec::new() }
    }

    /// So that each can begin anew: its data are kept twice.
    pub fn repeatable(mut self) -> Apps {
        for app in &mut self.apps {
            app.first = Some(app.program.copy());
        }
        self
    }

    /// An application's program.
    pub fn program(&self, app: u8) -> &dyn Program {
        self.apps[usize::from(app)].program.as_ref()
    }

    /// Bytes of an application's address space, from zero up, whole pages.
    pub fn footprint(&self, app: u8) -> u64 {
        self.program(app).space().footprint()
    }

    /// The kernels that an application has launched so far, in order of their numbers.
    pub fn kernels(&self, app: u8) -> &[Kernel] {
        &self.apps[usize::from(app)].kernels
    }

    /// Name of an application's launch `number`: `betw.forward#3`. A launch that has not been has only its number.
    pub fn kernel_name(&self, app: u8, number: u32) -> String {
        let kernel = self.kernels(app).get(number as usize).map_or("", |kernel| kernel.name);
        format!("{}.{kernel}#{number}", self.program(app).name())
    }
}

impl Programs for Apps {
    fn apps(&self) -> u8 {
        self.apps.len() as u8
    }

    fn launch(&mut self, app: u8) -> Option<Launch> {
        let app = &mut self.apps[usize::from(app)];
        let kernel = app.program.launch()?;
        assert!(kernel.blocks > 0 && kernel.threads > 0, "an empty grid: {}", kernel.name);
        let number = app.kernels.len() as u32;
        app.kernels.push(kernel);
        let Kernel { blocks, threads, registers, shared, .. } = kernel;
        Some(Launch { number, blocks, threads, registers, shared })
    }

    fn restart(&mut self, app: u8) {
        let app = &mut self.apps[usize::from(app)];
        app.program = app.first.as_ref().expect("only what is repeatable begins anew").copy();
    }

    fn start(&mut self, slot: u32, warp: WarpStart) {
        let n = slot as usize;
        if n >= self.of.len() {
            self.of.resize(n + 1, 0);
        }
        self.of[n] = warp.app;
        let app = &mut self.apps[usize::from(warp.app)];
        let kernel = app.kernels.last().expect("a warp begins after its kernel is launched");
        app.program.start(slot, WarpAt::new(warp.block, warp.warp, kernel.threads));
    }

    #[inline]
    fn step(&mut self, slot: u32, tape: &mut Tape) -> bool {
        let app = self.of[slot as usize];
        // Address zero is nobody's: it marks page walks.
        self.apps[usize::from(app)].program.step(slot, (u32::from(app) + 1) << CODE_BITS, tape)
    }
}
