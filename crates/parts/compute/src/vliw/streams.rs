//! A prefetcher of streams: of lines that were missed one behind the other, it asks memory for the next one before a core does.
//!
//! As a C66x's, from memory of SPRUGW0: a few streams at once, begun by a miss on the line behind another miss. *Chosen*: it follows streams upwards alone, as many beginnings are remembered as
//! streams are followed, and what was used longest ago goes first. When its line arrives it does not know: whoever asks for it knows what that costs.

use std::collections::VecDeque;

/// Streams that are followed, and those that a miss may begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    most: usize,
    /// The line that comes next in each, the stream that was used last in front.
    next: VecDeque<u64>,
    /// The lines behind the last misses that belong to none.
    begins: VecDeque<u64>,
}

impl Streams {
    /// Follows so many streams at once; none of none.
    pub(super) fn new(most: u32) -> Streams {
        Streams { most: most as usize, ..Streams::default() }
    }

    /// A line is missed: whether it has been asked for.
    #[inline]
    pub(super) fn missed(&mut self, line: u64) -> bool {
        if self.most == 0 {
            return false;
        }
        let is_ahead = take(&mut self.next, line);
        let of = if is_ahead || take(&mut self.begins, line) { &mut self.next } else { &mut self.begins };
        of.push_front(line + 1);
        of.truncate(self.most);
        is_ahead
    }
}

/// Takes a line out of some, if it is there.
fn take(lines: &mut VecDeque<u64>, line: u64) -> bool {
    lines.iter().position(|one| *one == line).and_then(|at| lines.remove(at)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(most: u32, lines: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut streams = Streams::new(most);
        lines.into_iter().filter(|line| streams.missed(*line)).collect()
    }

    /// The first two lines of a stream are missed before it is known to be one.
    #[test]
    fn the_third_line_of_a_stream_has_been_asked_for() {
        assert_eq!(ahead(1, 10..16), [12, 13, 14, 15]);
        assert_eq!(ahead(0, 10..16), [0; 0]);
        // Upwards alone, and not with a gap.
        assert_eq!(ahead(8, (10..16).rev()), [0; 0]);
        assert_eq!(ahead(8, (10..40).step_by(2)), [0; 0]);
    }

    /// Streams in turn, one more than are followed: each has been forgotten when its turn comes.
    #[test]
    fn as_many_streams_as_are_followed() {
        let in_turn =
            |streams: u64| (0..10).flat_map(move |line| (0..streams).map(move |at| 1_000 * at + line));
        assert_eq!(ahead(4, in_turn(4)).len(), 4 * 8);
        assert_eq!(ahead(4, in_turn(5)).len(), 0);
    }

    /// Others between the lines of a stream do not end it, as long as they are fewer than are remembered.
    #[test]
    fn a_stream_outlives_single_misses() {
        let lines = (0..10).flat_map(|line| [line, 1_000 + 7 * line]);
        assert_eq!(ahead(2, lines).len(), 8);
    }
}
