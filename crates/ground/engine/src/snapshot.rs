//! Saving and loading state.
//!
//! Every component and every policy implements [`Snapshot`]; the [`snapshot!`](crate::snapshot) macro lists the fields,
//! and does not compile if one is missing.

use crate::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// State that can be written to bytes and read back into an equal value.
pub trait Snapshot: Sized {
    /// Appends this value.
    fn save(&self, out: &mut Vec<u8>);
    /// Reads one value off the front of `input`; `None` if it is truncated or malformed.
    fn load(input: &mut &[u8]) -> Option<Self>;
}

/// Implements [`Snapshot`] for a struct, given the list of all its fields.
#[macro_export]
macro_rules! snapshot {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::Snapshot for $name {
            fn save(&self, out: &mut Vec<u8>) {
                // Naming every field turns a forgotten one into a compile error.
                let $name { $($field),* } = self;
                $($crate::Snapshot::save($field, out);)*
                let _ = out;
            }
            fn load(input: &mut &[u8]) -> Option<Self> {
                $(let $field = $crate::Snapshot::load(input)?;)*
                let _ = input;
                Some($name { $($field),* })
            }
        }
    };
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Snapshot for $t {
            #[inline]
            fn save(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn load(input: &mut &[u8]) -> Option<Self> {
                let (head, tail) = input.split_first_chunk()?;
                *input = tail;
                Some(<$t>::from_le_bytes(*head))
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, f64);

impl Snapshot for usize {
    fn save(&self, out: &mut Vec<u8>) {
        (*self as u64).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        u64::load(input)?.try_into().ok()
    }
}
impl Snapshot for bool {
    fn save(&self, out: &mut Vec<u8>) {
        u8::from(*self).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        match u8::load(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}
impl Snapshot for Time {
    fn save(&self, out: &mut Vec<u8>) {
        self.ps().save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        Some(Time::from_ps(u64::load(input)?))
    }
}
impl<T: Snapshot> Snapshot for Option<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.is_some().save(out);
        if let Some(value) = self {
            value.save(out);
        }
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        Some(if bool::load(input)? { Some(T::load(input)?) } else { None })
    }
}
impl<T: Snapshot> Snapshot for Box<T> {
    fn save(&self, out: &mut Vec<u8>) {
        (**self).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        T::load(input).map(Box::new)
    }
}
impl<A: Snapshot, B: Snapshot> Snapshot for (A, B) {
    fn save(&self, out: &mut Vec<u8>) {
        self.0.save(out);
        self.1.save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        Some((A::load(input)?, B::load(input)?))
    }
}
impl<T: Snapshot, const N: usize> Snapshot for [T; N] {
    fn save(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|x| x.save(out));
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        let items: Option<Vec<T>> = (0..N).map(|_| T::load(input)).collect();
        items?.try_into().ok()
    }
}

macro_rules! sequences {
    ($($t:ident<$($p:ident $(: $bound:ident)?),+> of $item:ty),*) => {$(
        impl<$($p: Snapshot $(+ $bound)?),+> Snapshot for $t<$($p),+> {
            fn save(&self, out: &mut Vec<u8>) {
                self.len().save(out);
                for item in self {
                    item.save_item(out);
                }
            }
            fn load(input: &mut &[u8]) -> Option<Self> {
                let len = usize::load(input)?;
                // No reservation: a damaged length must end in `None`, not in a huge allocation.
                (0..len).map(|_| <$item>::load(input)).collect()
            }
        }
    )*};
}
trait SaveItem {
    fn save_item(&self, out: &mut Vec<u8>);
}
impl<T: Snapshot> SaveItem for &T {
    fn save_item(&self, out: &mut Vec<u8>) {
        self.save(out);
    }
}
impl<K: Snapshot, V: Snapshot> SaveItem for (&K, &V) {
    fn save_item(&self, out: &mut Vec<u8>) {
        self.0.save(out);
        self.1.save(out);
    }
}
sequences!(Vec<T> of T, VecDeque<T> of T, BTreeSet<T: Ord> of T, BTreeMap<K: Ord, V> of (K, V));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Clone)]
    struct Sample {
        a: u32,
        b: Vec<Option<u64>>,
        c: BTreeMap<u16, bool>,
        d: [Time; 2],
    }
    snapshot!(Sample { a, b, c, d });

    proptest! {
        #[test]
        fn what_is_saved_is_loaded(a: u32, b in prop::collection::vec(any::<Option<u64>>(), 0..9), c in prop::collection::btree_map(any::<u16>(), any::<bool>(), 0..9)) {
            let sample = Sample { a, b, c, d: [Time::from_ns(3), Time::MAX] };
            let mut bytes = Vec::new();
            sample.save(&mut bytes);
            let mut input = bytes.as_slice();
            prop_assert_eq!(Sample::load(&mut input), Some(sample));
            prop_assert!(input.is_empty());
            for cut in 0..bytes.len() {
                prop_assert_eq!(Sample::load(&mut &bytes[..cut]), None);
            }
        }
    }
}
