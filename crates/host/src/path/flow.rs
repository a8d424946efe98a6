//! Flows of requests: each is a thread that reads and writes a file, one request after another.

use super::frame::Frame;
use super::thread::Step;
use super::{Event, Host, Out};
use crate::tasks::Task;
use kernel::{Cx, Time};
use proto::file::OpenFlags;
use proto::{BufferState, Command, Completion, IoOp, Status};
use std::collections::VecDeque;

/// A flow of requests.
pub(super) struct Flow {
    /// The drive, and the number of the flow among those of its sender.
    key: (u16, u16),
    task: Task,
    /// The file as it has opened it.
    file: u32,
    waiting: VecDeque<Command>,
    /// Whether a request has just been answered.
    answered: bool,
}

use proto::file::Program;

impl<P: Program> Host<P> {
    /// A request of a flow: a system call on the file that fills a drive. Requests of a flow are served one after another; a flush is
    /// `fsync`, force unit access `O_DSYNC`. A request that is served is told ([`Out::Complete`]).
    pub fn submit_request(&mut self, disk: u16, command: Command, cx: &mut impl Cx<Event, Out>) {
        let key = (disk, command.flow);
        let at = match self.flows.iter().position(|flow| flow.key == key) {
            Some(at) => at,
            None => self.begin_flow(key),
        };
        let flow = &mut self.flows[at];
        flow.waiting.push_back(command);
        let task = flow.task;
        self.wake(task, cx);
    }

    fn begin_flow(&mut self, key: (u16, u16)) -> usize {
        let inode = self.whole_file(key.0);
        let file = self.open(inode, OpenFlags::default());
        let at = self.flows.len();
        let task = self.spawn(Frame::Flow(at as u16));
        self.flows.push(Flow { key, task, file, waiting: VecDeque::new(), answered: false });
        at
    }

    /// Requests of flows that have not been served.
    pub fn requests(&self) -> usize {
        self.flows.iter().map(|flow| flow.waiting.len()).sum()
    }

    /// The next request of a flow.
    pub(super) fn flow(&mut self, task: Task, at: u16) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Flow(at));
        }
        self.push(task, Frame::Flow(at));
        let flow = &mut self.flows[usize::from(at)];
        let Some(command) = flow.waiting.front().copied() else {
            // Whoever was answered asks for the next in the same instant: the thread of a program that calls again does not sleep in between.
            let looks_again = std::mem::take(&mut flow.answered);
            return if looks_again { Step::Compute(Time::ZERO) } else { Step::Sleep };
        };
        flow.answered = false;
        let file = flow.file;
        self.charge(task, self.costs.call);
        self.push(task, Frame::Answer(at));
        match command.op {
            IoOp::Read => self.call_read(task, file, command.offset, command.bytes),
            IoOp::Write => {
                self.open[file].flags.data_sync = command.fua;
                self.call_write(task, file, command.offset, command.bytes)
            }
            IoOp::Flush => {
                let inode = self.open[file].inode;
                self.call_sync(task, inode, false)
            }
            IoOp::Trim | IoOp::WriteZeroes => unreachable!("files are not punched: the machine refuses it"),
        }
    }

    /// A request has been served, and the flow's thread is back from the kernel.
    pub(super) fn answer(&mut self, task: Task, at: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Answer(at));
        }
        let flow = &mut self.flows[usize::from(at)];
        flow.answered = true;
        let Some(command) = flow.waiting.pop_front() else { return Step::Again };
        cx.emit(Out::Complete(Completion {
            tag: command.tag,
            to: command.from,
            status: Status::Success,
            errors: 0,
            buffer: BufferState::Unknown,
        }));
        Step::Again
    }
}
