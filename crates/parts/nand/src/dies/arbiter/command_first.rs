//! Commands before data.

use super::{Arbiter, Heads, Want, first_come};

/// Sends commands before data: an array never idles behind a transfer. Commands of reads first, then those of erases
/// and copy-backs; then data, in order of arrival. A die that has taken a command is busy in its array or waits with
/// data. So commands precede a transfer at most once for each other die, and nothing starves.
///
/// Data in order of arrival is *chosen* as fairest. Cosmos+ OpenSSD (GreedyFTL 3.0.0, `SchedulingNandReqPerCh`) sends
/// data of programs before data of reads.
#[derive(Clone, Copy, Debug)]
pub struct CommandFirst;

impl CommandFirst {
    /// Builds the policy.
    pub fn new(_: &()) -> CommandFirst {
        CommandFirst
    }
}

impl Arbiter for CommandFirst {
    fn pick(&mut self, heads: &Heads) -> Want {
        let command = [Want::Read, Want::Command].into_iter().find(|want| heads[*want as usize].is_some());
        let want = command.or_else(|| first_come(heads, &[Want::DataOut, Want::DataIn]));
        want.unwrap_or(Want::Command)
    }
}
