//! Tasks side by side, given up within a moment.

use super::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Between two looks at whether an end is wanted.
const LOOK: Duration = Duration::from_millis(50);

/// What threads share.
struct Work<T, F> {
    tasks: Vec<T>,
    task: F,
    next: AtomicUsize,
    stop: &'static AtomicBool,
}

impl<T, F> Work<T, F> {
    /// Does one task after another, and sends what comes of each with its place.
    fn go<R>(&self, sender: &Sender<(usize, R)>)
    where
        F: Fn(&T) -> R,
    {
        while !self.stop.load(Ordering::Relaxed) {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = self.tasks.get(at) else { break };
            let result = (self.task)(one);
            // What was ended before its time says nothing, and nobody listens any more.
            if self.stop.load(Ordering::Relaxed) || sender.send((at, result)).is_err() {
                break;
            }
        }
    }
}

/// Does tasks on as many threads as asked for; what came of them in their order, `None` where one was not begun or not brought to
/// its end. It returns within a moment after `stop` is set, whatever a task is at: graphs that are built and programs that are counted
/// look at nothing. Their threads are left to themselves; they work on what they share with nobody and begin nothing new.
pub(super) fn run_all<T, R>(
    tasks: Vec<T>,
    task: impl Fn(&T) -> R + Send + Sync + 'static,
    request: &Request<'_>,
) -> Vec<Option<R>>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
{
    let count = tasks.len();
    let work = Arc::new(Work { tasks, task, next: AtomicUsize::new(0), stop: request.stop });
    let (sender, receiver) = channel();
    let start = |_| {
        let (work, sender) = (Arc::clone(&work), sender.clone());
        std::thread::spawn(move || work.go(&sender))
    };
    let threads: Vec<_> = (0..request.jobs.clamp(1, count.max(1))).map(start).collect();
    drop(sender);
    let (mut results, mut done) = (Vec::new(), 0);
    results.resize_with(count, || None);
    while !request.stop.load(Ordering::Relaxed) {
        match receiver.recv_timeout(LOOK) {
            Ok((at, result)) => {
                results[at] = Some(result);
                done += 1;
                (request.progress)(done, count);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                threads
                    .into_iter()
                    .for_each(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
                return results;
            }
        }
    }
    for (at, result) in receiver.try_iter() {
        results[at] = Some(result);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// The second task never looks at whether an end is wanted: it waits until the test says that it may go on.
    #[test]
    fn a_task_that_looks_at_nothing_is_left_to_itself() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let (open, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let (say, ended) = mpsc::channel();
        let request = Request { jobs: 1, stop: &STOP, progress: &|_, _| (), states: &|_| None };
        let task = move |n: &u32| {
            if *n == 2 {
                STOP.store(true, Ordering::Relaxed);
                // Far beyond what the test takes, so that a failure ends as well.
                let _ = gate.lock().expect("one thread").recv_timeout(Duration::from_secs(60));
                let _ = say.send(());
            }
            10 * n
        };
        let results = run_all(vec![1, 2, 3], task, &request);
        assert_eq!(results, [Some(10), None, None]);
        assert!(ended.try_recv().is_err(), "it waited for the task");
        drop(open);
        ended.recv().expect("the task goes on to its end");
    }

    #[test]
    #[should_panic(expected = "the third")]
    fn a_panic_of_a_task_is_heard() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let request = Request { jobs: 2, stop: &STOP, progress: &|_, _| (), states: &|_| None };
        run_all(vec![1, 2, 3], |n| assert!(*n != 3, "the third"), &request);
    }
}
