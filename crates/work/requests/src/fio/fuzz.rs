//! The entry point of a fuzzer.

use std::collections::VecDeque;

use engine::Time;

use crate::fio::{parse_inline, parse_text};
use crate::synth::{Generator, Job, Poll, Region};

/// Requests of a job that are drawn.
const DRAWN: usize = 200;

/// Reads `data` as an inline job or a job file, the first byte decides, and draws from every job that fits a device of 64 MiB. Panics if a
/// promise of the reader or the generator is broken.
pub fn fuzz_one(data: &[u8]) {
    const CAPACITY: u64 = 64 << 20;
    let Some((choice, content)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(content);
    let read = if choice & 1 == 0 { parse_inline(&text) } else { parse_text("fuzz", &text) };
    match read.and_then(|jobs| jobs.resolve(CAPACITY)) {
        Ok(groups) => {
            groups.into_iter().flat_map(|group| group.jobs).take(4).for_each(|job| draw(job, CAPACITY))
        }
        Err(fault) => assert!(!fault.what.is_empty()),
    }
}

/// Every request lies in its job's region; a job never waits for what cannot come.
fn draw(job: Job, capacity: u64) {
    let one = vec![Region { start: job.start, bytes: job.bytes }];
    let regions = job.files.as_ref().map_or(one, |files| files.regions.clone());
    assert!(regions.iter().all(|region| region.start + region.bytes <= capacity));
    let is_inside = |offset: u64, bytes: u64| {
        regions.iter().any(|of| of.start <= offset && offset + bytes <= of.start + of.bytes)
    };
    let mut generator = Generator::new(job, 1);
    generator.start(Time::ZERO, Time::ZERO);
    let mut now = Time::ZERO;
    let mut flying = VecDeque::new();
    for _ in 0..DRAWN {
        match generator.poll(now, flying.len() as u32) {
            Poll::Issue(request) => {
                assert!(request.at <= now);
                assert!(request.bytes == 0 || is_inside(request.offset, request.bytes));
                flying.push_back(request.op);
            }
            Poll::At(time) if flying.is_empty() => {
                assert!(time > now);
                now = time;
            }
            Poll::At(_) | Poll::Blocked => {
                let Some(op) = flying.pop_front() else { panic!("blocked with nothing in flight") };
                generator.completed(op);
            }
            Poll::Done => match flying.pop_front() {
                Some(op) => generator.completed(op),
                None => return,
            },
        }
    }
}
