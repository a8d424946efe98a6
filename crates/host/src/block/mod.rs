//! The block layer: queues, tags, plugs, merges, schedulers. It knows no time but what it is told.
