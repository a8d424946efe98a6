//! The part that issues requests and measures them: closed loops, open loops, several sources side by side.

mod flow;
mod injector;
mod observe;
mod source;
mod split;

pub use flow::FlowStats;
pub use injector::{Event, HostCost, Injector, Out, Queues};
pub use observe::{Observer, Seen, Waiting};
pub use source::{Next, Source};
pub use split::Split;
