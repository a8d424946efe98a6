//! Frames against a list of them.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A plain account: what each group is, and those that nobody uses in the order of their last use.
#[derive(Default)]
struct Plain {
    here: std::collections::BTreeMap<u32, (u16, bool, bool, bool)>,
    order: VecDeque<u32>,
}

impl Plain {
    fn idle(&self, dirty: bool) -> Option<u32> {
        self.order.iter().copied().find(|group| {
            let (pins, coming, is_dirty, writing) = self.here[group];
            pins == 0 && !coming && !writing && is_dirty == dirty
        })
    }

    fn used(&mut self, group: u32) {
        self.order.retain(|other| *other != group);
        self.order.push_back(group);
    }
}

proptest! {
    #[test]
    fn frames_agree_with_a_list(steps in prop::collection::vec((0_u32..4, 0_u32..9, any::<bool>()), 1..200)) {
        let count = 5;
        let mut frames = Frames::new(count, 9);
        let mut plain = Plain::default();
        for (what, group, changed) in steps {
            let known = plain.here.get(&group).copied();
            match what {
                0 => {
                    let wanted = match known {
                        Some((_, true, ..)) => Claim::Coming,
                        Some(_) => Claim::Here,
                        None => {
                            if plain.here.len() as u32 == count && let Some(oldest) = plain.idle(false) {
                                plain.here.remove(&oldest);
                                plain.order.retain(|other| *other != oldest);
                            }
                            if (plain.here.len() as u32) < count { Claim::Fetch } else { Claim::NoRoom }
                        }
                    };
                    prop_assert_eq!(frames.claim(group), wanted);
                    if wanted != Claim::NoRoom {
                        plain.here.entry(group).or_insert((0, true, false, false)).0 += 1;
                    }
                }
                1 => match known {
                    Some((_, true, ..)) => {
                        frames.arrived(group);
                        plain.here.get_mut(&group).expect("known").1 = false;
                    }
                    Some((pins, false, ..)) if pins > 0 => {
                        frames.release(group, changed);
                        let it = plain.here.get_mut(&group).expect("known");
                        it.0 -= 1;
                        it.2 |= changed;
                        plain.used(group);
                    }
                    _ => {}
                },
                2 if changed => {
                    let oldest = plain.idle(true);
                    prop_assert_eq!(frames.write_oldest(), oldest);
                    if let Some(oldest) = oldest {
                        let it = plain.here.get_mut(&oldest).expect("known");
                        (it.2, it.3) = (false, true);
                    }
                }
                2 => {
                    let may = known.is_some_and(|(_, coming, dirty, writing)| !coming && dirty && !writing);
                    prop_assert_eq!(frames.write(group), may);
                    if may {
                        let it = plain.here.get_mut(&group).expect("known");
                        (it.2, it.3) = (false, true);
                    }
                }
                _ => if known.is_some_and(|(_, _, _, writing)| writing) {
                    frames.written(group);
                    let it = plain.here.get_mut(&group).expect("known");
                    it.3 = false;
                    if it.0 == 0 {
                        plain.used(group);
                    }
                },
            }
            prop_assert_eq!(frames.free(), count - plain.here.len() as u32);
        }
    }
}
