//! Read retry: a page that the code could not correct is sensed again with other read voltages.
//!
//! The decoder is in the controller: a page leaves over the channel before it is known whether it can be corrected. If not, the
//! die stays with its command: it takes the read again, senses, and hands out its data again, and whoever wants the die or the
//! channel meanwhile waits. Of a command on several planes each step senses those pages again that still need it, together.
//! Who has joined a read gets its data with it, and what a register holds has been corrected: neither is read again by itself.

use super::arbiter::Want;
use super::op::NO_OP;
use super::{Backend, DieState, Event};
use engine::{Cx, Time};
use std::convert::Infallible;

impl Backend {
    /// The data of a read have come to the decoder, which could not correct all of it: the die asks for its channel again.
    #[cold]
    pub(super) fn reads_again(&mut self, unit: u32, cx: &mut impl Cx<Event, Infallible>) {
        let d = &mut self.dies[unit as usize];
        d.step += 1;
        d.state = DieState::Retrying;
        let c = &self.channels[d.channel as usize];
        if cx.now() >= c.busy_until && !c.is_wanted() {
            self.grant_retry(unit, cx);
        } else {
            self.ask(unit, Want::Read, cx);
        }
    }

    /// The pages that still have too many errors are sensed again.
    #[cold]
    pub(super) fn grant_retry(&mut self, unit: u32, cx: &mut impl Cx<Event, Infallible>) {
        let now = cx.now();
        let latency = self.errors.as_ref().map_or(Time::ZERO, |errors| errors.latency());
        let (first, step) = (self.dies[unit as usize].active, self.dies[unit as usize].step);
        let (mut tenure, mut sensing, mut at) = (Time::ZERO, Time::ZERO, first);
        while at != NO_OP {
            let op = &self.ops[at];
            if op.steps >= step {
                tenure += self.timing.command(op);
                sensing = sensing.max(self.timing.array(op));
                self.counters.retry_steps += 1;
            }
            at = op.mate;
        }
        let array = sensing + latency;
        self.array_time.due += array;
        let d = &mut self.dies[unit as usize];
        d.state = DieState::Working;
        d.array_from = now + tenure;
        d.array_to = now + tenure + array;
        d.ticket = Some(cx.after(tenure + array, Event::ArrayDone(unit)));
        let channel = d.channel;
        self.hold(channel, (self.ops[first].class, tenure), cx);
    }

    /// Pages have been sensed once more. Whoever reads one of them joins this command no longer.
    #[cold]
    pub(super) fn sensed_again(&mut self, first: u32, now: Time) {
        let mut at = first;
        while at != NO_OP {
            self.ops[at].sensed = now;
            at = self.after(at);
        }
    }
}
