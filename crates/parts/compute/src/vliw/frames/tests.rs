//! Frames against a list of them.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A plain account: what each group is, and those that nobody uses in the order of their last use.
#[derive(Default)]
struct Plain {
    here: std::collections::BTreeMap<u32, (u16, bool, bool, bool)>,
    order: VecDeque<u32>,
    wanted: std::collections::BTreeSet<u32>,
}

impl Plain {
    fn idle(&self, dirty: bool) -> Option<u32> {
        self.order.iter().copied().find(|group| {
            let (pins, coming, is_dirty, writing) = self.here[group];
            pins == 0 && !coming && !writing && is_dirty == dirty
        })
    }

    /// Frames that are lacking beyond those that are empty, clean and in nobody's use, or will be when writes are over.
    fn short(&self, frames: u32) -> i64 {
        let lacking = self.wanted.iter().filter(|group| !self.here.contains_key(group)).count();
        let spare =
            self.here.values().filter(|(pins, coming, dirty, _)| *pins == 0 && !coming && !dirty).count();
        lacking as i64 - spare as i64 - (i64::from(frames) - self.here.len() as i64)
    }

    fn used(&mut self, group: u32) {
        self.order.retain(|other| *other != group);
        self.order.push_back(group);
    }
}

proptest! {
    #[test]
    fn frames_agree_with_a_list(steps in prop::collection::vec((0_u32..5, 0_u32..9, any::<bool>()), 1..200)) {
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
                    let oldest = plain.idle(true).filter(|_| plain.short(count) > 0);
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
                3 => if plain.wanted.remove(&group) {
                    frames.unwant(group);
                } else {
                    frames.want(group);
                    plain.wanted.insert(group);
                },
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

/// Four frames: one clean, three changed. Two sections want the same two groups, another a third: three are lacking, one of which the clean frame serves, so that two are written,
/// the oldest first, and no more while these are under way.
#[test]
fn as_many_are_written_as_frames_are_lacking() {
    let mut frames = Frames::new(4, 10);
    for (group, changed) in [(0, true), (1, false), (2, true), (3, true)] {
        assert_eq!(frames.claim(group), Claim::Fetch);
        frames.arrived(group);
        frames.release(group, changed);
    }
    assert_eq!(frames.write_oldest(), None, "nobody lacks a frame");
    [5, 6, 5, 6, 7].into_iter().for_each(|group| frames.want(group));
    assert_eq!(
        [frames.write_oldest(), frames.write_oldest(), frames.write_oldest()],
        [Some(0), Some(2), None]
    );
    // The clean frame goes first. Then both that were written.
    for (group, claim) in [(5, Claim::Fetch), (6, Claim::NoRoom), (5, Claim::Coming)] {
        assert_eq!(frames.claim(group), claim);
    }
    assert_eq!(frames.write_oldest(), None, "two are under way, for two");
    [0, 2].into_iter().for_each(|group| frames.written(group));
    assert_eq!([frames.claim(6), frames.claim(7)], [Claim::Fetch; 2]);
    // One that is used again before flash has it gives no frame: another is written instead.
    frames.want(8);
    assert_eq!(frames.write_oldest(), Some(3));
    assert_eq!(frames.claim(3), Claim::Here);
    frames.arrived(5);
    [true, false].into_iter().for_each(|changed| frames.release(5, changed));
    assert_eq!(frames.write_oldest(), Some(5));
}
