//! Flows as the injector knows them: opened when they are first seen, named at the end.

use super::super::FlowStats;
use super::batch::{self, Thread};
use super::{Event, FLOWS, Flow, Injector, Out, UNSEEN};
use engine::{Cx, Time};

impl Injector {
    /// A source's flow as the injector knows it; it is opened when it is first seen.
    #[inline]
    pub(super) fn flow(&mut self, source: u16, flow: u16, cx: &mut impl Cx<Event, Out>) -> Flow {
        let known = &self.sources[usize::from(source)].flows;
        match known.get(usize::from(flow)) {
            Some(known) if known.index != UNSEEN.index => *known,
            _ => self.open(source, flow, cx),
        }
    }

    #[cold]
    fn open(&mut self, source: u16, flow: u16, cx: &mut impl Cx<Event, Out>) -> Flow {
        if self.flows.len() < FLOWS {
            self.flows.push(FlowStats::default());
        }
        // The last one is shared by all that come later.
        let index = (self.flows.len() - 1) as u16;
        let running = &mut self.sources[usize::from(source)];
        let target = running.target + running.source.target(flow);
        let path = self.targets.open(target, FLOWS as u16);
        self.floors.open(index, running.source.guards(flow));
        let mut opened = Flow { index, thread: batch::NONE, path };
        let batches = running.source.batches(flow);
        if let Some(advice) = running.source.advice(flow) {
            cx.emit(Out::Open { target, flow: path.number, batches, advice });
        } else if let Some(batches) = batches {
            opened.thread = running.in_batches.len() as u16;
            running.in_batches.push(Thread::new(flow, &batches));
        }
        if running.flows.len() <= usize::from(flow) {
            running.flows.resize(usize::from(flow) + 1, UNSEEN);
            running.threads.resize(usize::from(flow) + 1, Time::ZERO);
        }
        running.flows[usize::from(flow)] = opened;
        opened
    }

    /// Gives the flows what their sources know of them by now: names, and which are open loops.
    pub fn name_flows(&mut self) {
        for running in &self.sources {
            let names = running.source.flows();
            let seen = running.flows.iter().enumerate().filter(|(_, flow)| flow.index != UNSEEN.index);
            for (number, Flow { index, path, .. }) in seen {
                let shared = usize::from(*index) == FLOWS - 1;
                let name = names.get(number).filter(|_| !shared).cloned();
                let flow = &mut self.flows[usize::from(*index)];
                flow.name = name.unwrap_or_else(|| "other".into());
                flow.target = path.target;
                flow.open = !shared && running.source.is_open(number as u16);
            }
        }
    }
}
