//! Sections: who waits for whom.

use crate::page_groups::testing::{Rig, groups, small};
use engine::Time;
use ftl::page_groups::translation::GroupTranslation;
use proto::groups::{Ask, Tell};

fn rig() -> Rig {
    Rig::new(&small(GroupTranslation::literal), 200)
}

#[test]
fn a_writer_waits_for_readers_and_they_do_not_wait_for_one_another() {
    let mut rig = rig();
    rig.lock(1, groups(0, 20), false);
    rig.lock(2, groups(10, 30), false);
    rig.lock(3, groups(15, 15), true);
    rig.lock(4, groups(40, 50), true);
    let now = Some(Time::ZERO);
    let locked = |rig: &Rig| [1, 2, 3, 4].map(|tag| rig.when(Tell::Locked { tag }));
    assert_eq!(locked(&rig), [now, now, None, now]);
    let read = rig.time(Ask::Read { tag: 9, groups: groups(0, 20) });
    rig.ask(Ask::Unlock { tag: 1 });
    assert_eq!(locked(&rig), [now, now, None, now]);
    rig.ask(Ask::Unlock { tag: 2 });
    assert_eq!(locked(&rig), [now, now, Some(read), now]);
    let stats = &rig.flash.stats;
    assert_eq!((stats.locks, stats.lock_wait.count(), stats.lock_wait.max()), (4, 1, Some(read.ps())));
    rig.check();
}

#[test]
fn a_lock_that_is_not_wanted_any_more_holds_up_nobody() {
    let mut rig = rig();
    rig.lock(1, groups(0, 20), false);
    rig.lock(2, groups(10, 30), true);
    rig.lock(3, groups(15, 15), false);
    assert_eq!(rig.when(Tell::Locked { tag: 3 }), None);
    rig.ask(Ask::Unlock { tag: 2 });
    assert_eq!(rig.when(Tell::Locked { tag: 3 }), Some(Time::ZERO));
    assert_eq!(rig.when(Tell::Locked { tag: 2 }), None);
    // A tag is free again.
    rig.lock(2, groups(60, 70), true);
    assert_eq!(rig.when(Tell::Locked { tag: 2 }), Some(Time::ZERO));
    rig.check();
}

/// A kernel that writes for hours does not put a dump off; one that comes while entries are copied waits for that.
#[test]
fn a_dump_waits_for_no_writer_and_a_writer_for_a_dump() {
    for comes_first in [true, false] {
        let mut rig = rig();
        rig.works_at_once = false;
        rig.time(Ask::Write { tag: 0, groups: groups(150, 150) });
        if comes_first {
            rig.lock(1, groups(0, 0), true);
        }
        while rig.works.is_empty() && rig.step() {}
        if !comes_first {
            rig.lock(1, groups(0, 0), true);
        }
        assert_eq!(rig.when(Tell::Locked { tag: 1 }).is_some(), comes_first);
        rig.works_at_once = true;
        rig.work(0);
        assert!(rig.when(Tell::Locked { tag: 1 }).is_some());
        rig.run();
        assert!(rig.flash.is_idle());
        assert_eq!(rig.flash.counters().dumps, 1);
    }
}
