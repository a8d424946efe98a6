//! What is left to do of each kernel, and what may be done now: the multi-app execution chain (FlashAbacus, section 4.2).

/// A kernel that was offloaded, by its place in the order in which they came.
pub type Instance = u32;

/// What a core executes at one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A kernel from its beginning to its end.
    Kernel(Instance),
    /// A screen of the microblock that a kernel is in.
    Screen(Instance),
}

/// Work for a core: a screen of a microblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Whose.
    pub instance: Instance,
    /// The microblock, by its place in the kernel.
    pub microblock: u32,
    /// The screen, by its place in the microblock.
    pub screen: u32,
}

/// What the end of a screen has brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing: others of the microblock are not over.
    Screen,
    /// Its microblock is over, and the next may begin.
    Microblock,
    /// Its kernel is over.
    Kernel,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kernel {
    app: u16,
    /// Screens of each microblock.
    screens: Vec<u32>,
    /// The microblock that it is in, and how many of its screens have begun and ended.
    microblock: u32,
    begun: u32,
    ended: u32,
    /// Whether one core executes all of it.
    whole: bool,
}

impl Kernel {
    fn is_over(&self) -> bool {
        self.microblock as usize == self.screens.len()
    }

    /// Screens that may begin.
    fn ready(&self) -> u32 {
        if self.is_over() { 0 } else { self.screens[self.microblock as usize] - self.begun }
    }

    fn has_begun(&self) -> bool {
        self.microblock > 0 || self.begun > 0
    }
}

/// Kernels with their microblocks and screens. A screen may begin when every screen of the microblock before it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    kernels: Vec<Kernel>,
    /// All before it are over.
    first: usize,
}

impl Chain {
    /// A kernel of an application has been offloaded: so many screens in each of its microblocks.
    ///
    /// # Panics
    /// If it has no microblock, or one without screens.
    pub fn offload(&mut self, app: u16, screens: &[u32]) -> Instance {
        assert!(!screens.is_empty() && screens.iter().all(|count| *count > 0), "a kernel without work");
        let screens = screens.to_vec();
        self.kernels.push(Kernel { app, screens, microblock: 0, begun: 0, ended: 0, whole: false });
        self.kernels.len() as Instance - 1
    }

    /// Kernels that are not over, in the order in which they came.
    pub fn open(&self) -> impl Iterator<Item = Instance> + '_ {
        let kernels = self.kernels.iter().enumerate().skip(self.first);
        kernels.filter(|(_, kernel)| !kernel.is_over()).map(|(at, _)| at as Instance)
    }

    /// Whether every kernel is over.
    pub fn is_over(&self) -> bool {
        self.first == self.kernels.len()
    }

    /// The application of a kernel.
    pub fn app(&self, instance: Instance) -> u16 {
        self.kernels[instance as usize].app
    }

    /// Whether nothing of a kernel has begun.
    pub fn is_fresh(&self, instance: Instance) -> bool {
        !self.kernels[instance as usize].has_begun()
    }

    /// Screens of a kernel that may begin, of one that no core has for itself.
    pub fn ready(&self, instance: Instance) -> u32 {
        let kernel = &self.kernels[instance as usize];
        if kernel.whole { 0 } else { kernel.ready() }
    }

    /// A core begins a unit: its first screen.
    ///
    /// # Panics
    /// If it may not begin.
    pub fn begin(&mut self, unit: Unit) -> Screen {
        let (instance, whole) = match unit {
            Unit::Kernel(instance) => (instance, true),
            Unit::Screen(instance) => (instance, false),
        };
        let kernel = &mut self.kernels[instance as usize];
        assert!(!kernel.whole && (!whole || !kernel.has_begun()), "another core has the kernel");
        kernel.whole = whole;
        self.next(instance)
    }

    /// The core that has a kernel for itself goes on with its next screen.
    ///
    /// # Panics
    /// If the kernel is over, or its microblock's screens have all begun.
    pub fn next(&mut self, instance: Instance) -> Screen {
        let kernel = &mut self.kernels[instance as usize];
        assert!(kernel.ready() > 0, "no screen may begin");
        let screen = Screen { instance, microblock: kernel.microblock, screen: kernel.begun };
        kernel.begun += 1;
        screen
    }

    /// Whether a screen is the first of its kernel.
    pub fn is_first(&self, screen: Screen) -> bool {
        screen.microblock == 0 && screen.screen == 0
    }

    /// A screen has ended.
    pub fn end(&mut self, screen: Screen) -> Ended {
        let kernel = &mut self.kernels[screen.instance as usize];
        debug_assert_eq!(
            kernel.microblock, screen.microblock,
            "a microblock before the one that is under way"
        );
        kernel.ended += 1;
        if kernel.ended < kernel.screens[kernel.microblock as usize] {
            return Ended::Screen;
        }
        (kernel.microblock, kernel.begun, kernel.ended) = (kernel.microblock + 1, 0, 0);
        if !kernel.is_over() {
            return Ended::Microblock;
        }
        while self.kernels.get(self.first).is_some_and(Kernel::is_over) {
            self.first += 1;
        }
        Ended::Kernel
    }
}
