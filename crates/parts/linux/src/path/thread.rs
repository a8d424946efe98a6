//! Threads of a host: what each is doing, as a stack of frames.

use super::frame::Frame;
use super::wait::Wait;
use crate::block::{Bio, Plug, Stalled};
use crate::pagecache::ScanControl;
use crate::writeback::Dirtier;
use engine::Time;
use proto::file::CallError;
use std::collections::VecDeque;

/// A thread, of a program or of the kernel.
pub(super) struct Thread {
    /// What it is doing; the last frame is the innermost.
    pub(super) frames: Vec<Frame>,
    /// Core time of the kernel that it has used and not been on a core for.
    pub(super) owed: Time,
    /// When it wants to be woken.
    pub(super) alarm: Option<Time>,
    /// What else it sleeps for.
    pub(super) wait: Option<Wait>,
    /// What it has told the block layer and not shown it, by disk.
    pub(super) plugs: Vec<Plug>,
    /// Whether it shows nothing before it has submitted all requests of its call.
    pub(super) gathers: bool,
    /// The bio that it could not submit, and its disk, once there is room.
    pub(super) stalled: Option<(u16, Stalled)>,
    /// Whether a bio of it waits in the block layer: it submits nothing else before.
    pub(super) waits_for_room: bool,
    /// What it has made dirty.
    pub(super) dirtier: Dirtier,
    /// Until when it pauses for that.
    pub(super) pause: Option<Time>,
    /// The reclaim that it is in the middle of.
    pub(super) scan: Option<ScanControl>,
    /// Pages that it has submitted since it was told to write some, where it goes on, and how many it may still write.
    pub(super) submitted: u64,
    pub(super) next_page: u64,
    pub(super) left: u64,
    /// Pages of a victimization that its next bio announces.
    pub(super) announced: u32,
    /// Bios that it is about to submit, each with its disk.
    pub(super) bios: VecDeque<(u16, Bio)>,
    /// Why its call has failed.
    pub(super) failed: Option<CallError>,
    /// How long it had had a core when its program was last told.
    pub(super) told: Time,
    /// Time of the driver for what it has submitted, if it is to pay for it.
    pub(super) prepared: Time,
    /// The core that it submits as if it were on: that of the queue on which it looks for completions.
    pub(super) submits_on: Option<u16>,
}

impl Thread {
    pub(super) fn new(bottom: Frame, disks: usize) -> Thread {
        Thread {
            frames: vec![bottom],
            owed: Time::ZERO,
            alarm: None,
            wait: None,
            plugs: (0..disks).map(|_| Plug::default()).collect(),
            gathers: false,
            stalled: None,
            waits_for_room: false,
            dirtier: Dirtier::default(),
            pause: None,
            scan: None,
            submitted: 0,
            next_page: 0,
            left: 0,
            announced: 0,
            bios: VecDeque::new(),
            failed: None,
            told: Time::ZERO,
            prepared: Time::ZERO,
            submits_on: None,
        }
    }
}

/// What a thread does after a step of its innermost frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Goes on at once.
    Again,
    /// Is on its core for what it owes, then goes on.
    Pay,
    /// Computes.
    Compute(Time),
    /// Looks for completions until one comes, or its tick is over.
    Spin,
    /// Sleeps until it is woken. It must owe nothing.
    Sleep,
    /// Ends.
    End,
}
