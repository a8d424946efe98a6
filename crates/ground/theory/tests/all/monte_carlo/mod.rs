//! The formulas against small simulations that share nothing with them but the rules of the game.

mod drive;
mod hot_cold;
mod queues;
mod rng;
mod uniform;
