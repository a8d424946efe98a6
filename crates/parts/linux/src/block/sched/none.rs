//! Software queues without a scheduler.

use super::super::Map;
use super::{Context, Scheduler, SchedulerStats};
use crate::block::bio::{Piece, Side};
use crate::block::request::{Request, RequestList, Requests};
use engine::Time;

/// Software queues of the cores, served one after another (`blk_mq_flush_busy_ctxs`). Requests stay in them only from
/// the sleep of a task that had them in its plug until a worker runs the hardware queue.
#[derive(Debug)]
pub struct Passing {
    map: Map,
    /// Software queue of each core.
    software: Vec<RequestList>,
    /// Requests in the software queues of each hardware queue.
    waiting: Vec<u32>,
}

impl Passing {
    /// Creates empty software queues.
    pub fn new(context: &Context) -> Passing {
        let map = context.map;
        Passing {
            map,
            software: vec![RequestList::default(); map.cores().into()],
            waiting: vec![0; map.hctxs().into()],
        }
    }
}

impl Scheduler for Passing {
    fn is_elevator(&self) -> bool {
        false
    }
    fn shallow(&self, _: bool, _: bool) -> u32 {
        u32::MAX
    }
    fn least_shallow(&self) -> u32 {
        u32::MAX
    }
    fn bio_merge(
        &mut self,
        requests: &mut Requests,
        piece: &Piece,
        core: u16,
        _: &mut Vec<u32>,
    ) -> Option<Side> {
        requests.attempt_list_merge(&self.software[usize::from(core)], piece)
    }
    fn insert(&mut self, requests: &mut Requests, name: u32, _: bool, _: Time, _: &mut Vec<u32>) {
        let Request { core, hctx, .. } = requests[name];
        self.software[usize::from(core)].push_back(requests, name);
        self.waiting[usize::from(hctx)] += 1;
    }
    fn dispatch(&mut self, requests: &mut Requests, hctx: u16, _: Time) -> Option<u32> {
        if self.waiting[usize::from(hctx)] == 0 {
            return None;
        }
        self.waiting[usize::from(hctx)] -= 1;
        let mut cores = self.map.cores_of(hctx);
        cores.find_map(|core| self.software[usize::from(core)].pop_front(requests))
    }
    fn has_work(&self, hctx: u16) -> bool {
        // No request waits for a polled queue: its tasks do not sleep with a plug.
        self.waiting.get(usize::from(hctx)).is_some_and(|waiting| *waiting > 0)
    }
    fn finish(&mut self, _: &mut Request, _: &mut Vec<u16>) {}
    fn completed(&mut self, _: &Request, _: Time) {}
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn timer(&mut self, _: Time) {}
    fn stats(&self) -> SchedulerStats {
        SchedulerStats::default()
    }
    fn reset_stats(&mut self, _: Time) {}
}
