//! Admission on the second miss.

use super::Admission;
use crate::buffer::order::{Chain, NONE};
use engine::Snapshot;
use proto::Lpn;
use rustc_hash::FxHashMap;

/// Parameters of `second_touch`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of missed addresses that are remembered.
    #[schemars(range(min = 1, max = 268_435_456))]
    pub ghosts: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { ghosts: 4096 }
    }
}

/// Admits a unit on its second miss while the first is remembered, so that a scan does not flush the buffer.
///
/// A unit that misses for the first time is put on a ghost list, which holds addresses and no data. A unit that is on
/// the list when it misses again is removed and admitted. A full list forgets the oldest address.
///
/// Source: the ghost queue of LARC (Huang et al., "Improving flash-based disk cache with lazy adaptive replacement",
/// MSST 2013), with a list of fixed length; the idea is A1out of 2Q (Johnson and Shasha, VLDB 1994).
#[derive(Clone, Debug)]
pub struct SecondTouch {
    ghosts: u32,
    /// Address at each position of the list.
    names: Vec<Lpn>,
    place: FxHashMap<Lpn, u32>,
    order: Chain,
    free: Vec<u32>,
}

impl SecondTouch {
    /// Creates the policy with an empty ghost list for `ghosts` addresses. A list for none admits nothing.
    pub fn new(ghosts: u32) -> SecondTouch {
        SecondTouch {
            ghosts,
            names: Vec::new(),
            place: FxHashMap::default(),
            order: Chain::default(),
            free: Vec::new(),
        }
    }

    fn remember(&mut self, lpn: Lpn) {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.names.len() < self.ghosts as usize => {
                self.names.push(lpn);
                (self.names.len() - 1) as u32
            }
            None => match self.order.oldest() {
                NONE => return,
                oldest => {
                    self.order.remove(oldest);
                    self.place.remove(&self.names[oldest as usize]);
                    oldest
                }
            },
        };
        self.names[place as usize] = lpn;
        self.place.insert(lpn, place);
        self.order.push(place);
    }
}

impl Admission for SecondTouch {
    fn admit(&mut self, lpn: Lpn) -> bool {
        let Some(place) = self.place.remove(&lpn) else {
            self.remember(lpn);
            return false;
        };
        self.order.remove(place);
        self.free.push(place);
        true
    }
    fn save(&self, out: &mut Vec<u8>) {
        // The position of an address does not matter.
        let SecondTouch { ghosts: _, names, place: _, order, free: _ } = self;
        order.iter().map(|place| names[place as usize].0).collect::<Vec<u64>>().save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let names = Vec::<u64>::load(input)?;
        let mut loaded = SecondTouch::new(self.ghosts);
        if names.len() > self.ghosts as usize {
            return None;
        }
        for name in names {
            if loaded.place.contains_key(&Lpn(name)) {
                return None;
            }
            loaded.remember(Lpn(name));
        }
        *self = loaded;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn admits_what_a_plain_list_remembers(ghosts in 0u32..6, misses in prop::collection::vec(0u64..10, 0..200)) {
            let mut policy = SecondTouch::new(ghosts);
            let mut list: Vec<u64> = Vec::new();
            for lpn in misses {
                let known = list.iter().position(|l| *l == lpn);
                match known {
                    Some(at) => {
                        list.remove(at);
                    }
                    None => {
                        list.push(lpn);
                        if list.len() > ghosts as usize {
                            list.remove(0);
                        }
                    }
                }
                prop_assert_eq!(policy.admit(Lpn(lpn)), known.is_some());
                // Save, load and go on with the copy.
                let mut bytes = Vec::new();
                policy.save(&mut bytes);
                let mut copy = SecondTouch::new(ghosts);
                prop_assert_eq!(copy.load(&mut bytes.as_slice()), Some(()));
                policy = copy;
            }
        }
    }

    #[test]
    fn a_scan_does_not_enter() {
        let mut policy = SecondTouch::new(100);
        assert!((0..1000).all(|lpn| !policy.admit(Lpn(lpn))));
        assert!(policy.admit(Lpn(900)), "the last hundred are remembered");
        assert!(!policy.admit(Lpn(899)), "the one before is not");
    }

    #[test]
    fn a_damaged_list_is_refused() {
        let saved = |names: &[u64]| {
            let mut bytes = Vec::new();
            names.to_vec().save(&mut bytes);
            bytes
        };
        let load = |bytes: &[u8]| SecondTouch::new(2).load(&mut &bytes[..]);
        assert_eq!(load(&saved(&[1, 2])), Some(()));
        assert_eq!(load(&saved(&[1, 1])), None, "named twice");
        assert_eq!(load(&saved(&[1, 2, 3])), None, "longer than the list");
        assert_eq!(load(&saved(&[1, 2])[..12]), None, "cut short");
    }
}
