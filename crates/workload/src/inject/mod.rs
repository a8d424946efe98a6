//! The part that issues requests and measures them: closed loops, open loops, several sources side by side,
//! each with its target.

mod flow;
mod injector;
mod observe;
mod source;
mod split;
mod targets;

pub use flow::FlowStats;
pub use injector::{Event, Injector, Out};
pub use observe::{Observer, Seen, Waiting};
pub use source::{Next, Source};
pub use split::Split;
pub use targets::{HostCost, Queues};
