//! The device that was measured, and who asks it.

use engine::{EventQueue, Time};
use linux::path::{Event, Out};
use proto::IoOp;

engine::events! {
    pub enum World {
        /// Of the host.
        Host(Event),
        /// The drive has done a command.
        Done(u32),
        /// A thread that calls the block device itself looks what it does next.
        Next(u32),
    }
}

/// A request is done at `max(t, when the one before is done) + L + n / B`; `P` later the guest has the answer.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) queue: EventQueue<World>,
    free: Time,
    /// Requests and bytes of them.
    pub(crate) reads: (u64, u64),
    pub(crate) writes: (u64, u64),
}

const B: u64 = 40_000_000;
const L: Time = Time::from_us(200);

/// From the guest to the server and back, which overlaps with other requests: measured for 4 KiB and 256 KiB, between them a line.
fn path(bytes: u64) -> Time {
    Time::from_us(52) + Time::from_ns(108_000 * bytes.saturating_sub(4 << 10) / (252 << 10))
}

impl Outside {
    fn take(&mut self, out: Out) {
        let command = match out {
            Out::Submit { command, .. } => command,
            Out::Complete(done) => {
                self.queue.after(Time::ZERO, World::Next(done.tag));
                return;
            }
            Out::Order { order, .. } => panic!("there is no coprocessor: {order:?}"),
        };
        let now = self.queue.now();
        self.free = self.free.max(now) + L + Time::transfer(command.bytes, B);
        self.queue.after(self.free + path(command.bytes) - now, World::Done(command.tag));
        let side = match command.op {
            IoOp::Read => &mut self.reads,
            IoOp::Write => &mut self.writes,
            _ => return,
        };
        side.0 += 1;
        side.1 += command.bytes;
    }
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| World::Host(event),
    out: |at, out| at.take(out),
}
