//! Resources that serve one request after another.

use crate::Time;

/// Server with one first-in-first-out queue: a link direction, a processor.
///
/// Requests are granted only at the current time. Because nothing can overtake, the end of a grant is known at once,
/// and the queue needs no event of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serial {
    free_at: Time,
    busy: Time,
    grants: u64,
}

crate::snapshot!(Serial { free_at, busy, grants });

impl Serial {
    /// Joins the queue at `now` for `service`; returns when the service ends.
    #[inline]
    pub fn grant(&mut self, now: Time, service: Time) -> Time {
        self.grant_until(now, |start| start + service)
    }

    /// Joins the queue at `now` for a service that ends at `end(start)` if it begins at `start`: a server that waits
    /// for something is not free.
    #[inline]
    pub fn grant_until(&mut self, now: Time, end: impl FnOnce(Time) -> Time) -> Time {
        let start = self.free_at.max(now);
        self.free_at = end(start);
        self.busy += self.free_at - start;
        self.grants += 1;
        self.free_at
    }

    /// Returns the end of the last grant.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Returns the service granted so far, up to `now`.
    pub fn busy(&self, now: Time) -> Time {
        self.busy - self.free_at.since(now)
    }

    /// Returns the number of grants so far.
    pub fn grants(&self) -> u64 {
        self.grants
    }
}

/// Several equal servers behind one first-in-first-out queue, such as processor cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    servers: Vec<Serial>,
}

crate::snapshot!(Pool { servers });

impl Pool {
    /// Creates a pool of `count` idle servers.
    ///
    /// # Panics
    /// If `count` is zero.
    pub fn new(count: usize) -> Pool {
        assert!(count > 0, "a pool needs at least one server");
        Pool { servers: vec![Serial::default(); count] }
    }

    /// Joins the queue at `now` for `service` on the server that is free first; returns when the service ends.
    #[inline]
    pub fn grant(&mut self, now: Time, service: Time) -> Time {
        self.grant_until(now, |start| start + service)
    }

    /// Joins the queue as [`Serial::grant_until`] does, on the server that is free first.
    #[inline]
    pub fn grant_until(&mut self, now: Time, end: impl FnOnce(Time) -> Time) -> Time {
        let first = self.servers.iter_mut().min_by_key(|s| s.free_at).expect("a pool has a server");
        first.grant_until(now, end)
    }

    /// Returns the service granted so far, summed over the servers, up to `now`.
    pub fn busy(&self, now: Time) -> Time {
        self.servers.iter().fold(Time::ZERO, |sum, s| sum + s.busy(now))
    }

    /// Returns the number of servers.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns false: a pool always has a server.
    pub fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_server_queues_first_in_first_out() {
        let us = Time::from_us;
        let mut server = Serial::default();
        assert_eq!(server.grant(us(0), us(5)), us(5));
        assert_eq!(server.grant(us(1), us(5)), us(10));
        assert_eq!(server.grant(us(20), us(5)), us(25));
        assert_eq!(server.busy(us(22)), us(12));
        // The server waits until 31 with the service that begins at 25.
        assert_eq!(server.grant_until(us(21), |start| start.max(us(31)) + us(2)), us(33));
        assert_eq!(server.busy(us(30)), us(20));
    }

    #[test]
    fn a_pool_serves_as_many_as_it_has_servers() {
        let us = Time::from_us;
        let mut pool = Pool::new(2);
        let ends: Vec<Time> = (0..4).map(|_| pool.grant(us(0), us(3))).collect();
        assert_eq!(ends, [us(3), us(3), us(6), us(6)]);
    }
}
