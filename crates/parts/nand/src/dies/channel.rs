//! Channels: who waits for one, and who holds it.

use super::arbiter::Want;
use super::op::Class;
use super::{Backend, Event};
use engine::{Cx, Ticket, Time};
use std::collections::VecDeque;
use std::convert::Infallible;

#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) busy_until: Time,
    pub(super) busy: Time,
    /// A wake-up or the end of a data transfer will look at the waiting dies.
    pub(super) looks_again: bool,
    /// The present tenure is a data transfer, whose end is an event of its own.
    pub(super) moves_data: bool,
    /// Place in the schedule order of the wake-up at the end of the present tenure, whether it is needed or not.
    pub(super) wake: Option<Ticket>,
    pub(super) waiting: [VecDeque<(u32, u64)>; Want::COUNT],
    /// How many wait.
    pub(super) wanted: u32,
    pub(super) asked: u64,
    /// Operations not yet started, in order of arrival; kept only when the scheduler holds the line.
    pub(super) line: VecDeque<u32>,
    /// Who has or had it last.
    pub(super) tenant: Class,
}

impl Default for Channel {
    fn default() -> Channel {
        Channel {
            busy_until: Time::ZERO,
            busy: Time::ZERO,
            looks_again: false,
            moves_data: false,
            wake: None,
            waiting: Default::default(),
            wanted: 0,
            asked: 0,
            line: VecDeque::new(),
            tenant: Class::HostRead,
        }
    }
}

impl Channel {
    /// Arranges the wake-up at the end of the present tenure.
    #[inline]
    pub(super) fn look_again(&mut self, channel: u32, cx: &mut impl Cx<Event, Infallible>) {
        self.looks_again = true;
        let place = self.wake.unwrap_or_else(|| cx.reserve_late());
        cx.at_place(place, self.busy_until.since(cx.now()), Event::ChannelFree(channel));
    }

    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted > 0
    }
}

impl Backend {
    /// Queues a die at its channel.
    #[inline]
    pub(super) fn ask(&mut self, die: u32, want: Want, cx: &mut impl Cx<Event, Infallible>) {
        let channel = self.dies[die as usize].channel;
        self.ask_channel(channel, die, want, cx);
    }

    /// Queues a unit or a transfer at a channel.
    #[inline]
    pub(super) fn ask_channel(
        &mut self,
        channel: u32,
        unit: u32,
        want: Want,
        cx: &mut impl Cx<Event, Infallible>,
    ) {
        if self.holders.is_some() {
            self.asks_for_channel(channel, cx.now());
        }
        let c = &mut self.channels[channel as usize];
        c.asked += 1;
        c.wanted += 1;
        c.waiting[want as usize].push_back((unit, c.asked));
        if !c.looks_again {
            c.look_again(channel, cx);
        }
    }

    /// A channel has become free: the next die gets it.
    pub(super) fn channel_free(&mut self, channel: u32, cx: &mut impl Cx<Event, Infallible>) {
        let c = &mut self.channels[channel as usize];
        if cx.now() < c.busy_until {
            // Somebody got it in this instant before the wake-up.
            if !c.moves_data {
                c.look_again(channel, cx);
            }
            return;
        }
        c.looks_again = false;
        self.serve(channel, cx);
    }

    pub(super) fn serve(&mut self, channel: u32, cx: &mut impl Cx<Event, Infallible>) {
        let c = &mut self.channels[channel as usize];
        if c.looks_again || !c.is_wanted() {
            return;
        }
        if cx.now() < c.busy_until {
            c.look_again(channel, cx);
            return;
        }
        let heads = Want::ALL.map(|want| c.waiting[want as usize].front().map(|(_, asked)| *asked));
        let want = self.arbiter.pick(&heads);
        let Some((die, _)) = c.waiting[want as usize].pop_front() else { return };
        c.wanted -= 1;
        self.grant(die, cx);
        // The grant holds the channel: look again at its end if others wait.
        self.serve(channel, cx);
    }

    /// The channel moves data of a class for `tenure` from now, which has an event of its own at its end.
    #[inline]
    pub(super) fn move_data(
        &mut self,
        channel: u32,
        (class, tenure): (Class, Time),
        end: Event,
        cx: &mut impl Cx<Event, Infallible>,
    ) {
        let c = &mut self.channels[channel as usize];
        c.tenant = class;
        c.busy_until = cx.now() + tenure;
        c.busy += tenure;
        c.looks_again = true;
        c.moves_data = true;
        let is_wanted = c.is_wanted();
        cx.after(tenure, end);
        if is_wanted {
            self.is_held_while_wanted(channel, cx.now());
        }
    }

    /// The channel is busy for a class for `tenure` from now.
    #[inline]
    pub(super) fn hold(
        &mut self,
        channel: u32,
        (class, tenure): (Class, Time),
        cx: &mut impl Cx<Event, Infallible>,
    ) {
        let c = &mut self.channels[channel as usize];
        c.tenant = class;
        c.busy_until = cx.now() + tenure;
        c.busy += tenure;
        c.moves_data = false;
        // The wake-up has its place even if nobody asks for it: folding it away leaves the same order behind.
        c.wake = Some(cx.reserve_late());
        if !self.fold && !c.looks_again {
            c.look_again(channel, cx);
        }
        if c.is_wanted() {
            self.is_held_while_wanted(channel, cx.now());
        }
    }
}
