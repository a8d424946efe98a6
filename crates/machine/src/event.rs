//! The machine's one event type.

/// An event of one of the machine's parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ev {
    /// The flash device's.
    Flash(flash::Event),
    /// The injector's.
    Inject(workload::inject::Event),
}

const _: () = assert!(size_of::<Ev>() <= 16, "events are copied often");
