//! Address newtypes.

/// A logical map unit: the index of a map-unit-sized piece of the logical space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lpn(pub u64);

/// A physical map unit: a place in the NAND array that can hold one logical map unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u64);

macro_rules! snapshots {
    ($($t:ident),*) => {$(
        impl engine::Snapshot for $t {
            fn save(&self, out: &mut Vec<u8>) {
                self.0.save(out);
            }
            fn load(input: &mut &[u8]) -> Option<$t> {
                u64::load(input).map($t)
            }
        }
    )*};
}
snapshots!(Lpn, Slot);
