//! Hosts that stop, and go on elsewhere.

use super::{End, Host};
use crate::device::Device;
use nand::dies;
use proto::IoOp;

impl Host {
    /// The same host at the same moment before another device.
    pub fn before(&self, device: Device) -> Host {
        let mut other = Host::new(device, 0, self.depth);
        other.cx.queue.after(self.now(), dies::Event::ChannelFree(0).into());
        other.cx.queue.pop();
        Host {
            rng: self.rng.clone(),
            issued: self.issued,
            completed: self.completed,
            digest: self.digest,
            read_to: self.read_to,
            ..other
        }
    }

    /// Keeps the device busy for a number of events and stops, whatever is under way.
    pub fn run_events(&mut self, events: u64) -> End {
        self.run_events_of(events, |_| true)
    }

    /// The same with commands of some kinds only.
    pub fn run_events_of(&mut self, events: u64, wanted: impl Fn(IoOp) -> bool) -> End {
        for _ in 0..events {
            while self.issued - self.completed < u64::from(self.depth) {
                let command = self.command();
                if !wanted(command.op) {
                    continue;
                }
                self.issued += 1;
                self.device.submit(command, &mut self.cx);
            }
            let Some(event) = self.cx.queue.pop() else { return End::Deadlock };
            self.device.handle(event, &mut self.cx);
            self.completed += self.cx.sent.drain(..).count() as u64;
        }
        match self.device.shadow() {
            Some(shadow) if shadow.violations > 0 => End::Violated,
            _ => End::Done,
        }
    }
}
