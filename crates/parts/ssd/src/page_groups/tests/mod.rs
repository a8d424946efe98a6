mod batch;
mod energy;
mod keep;
mod lockstep;
mod random;
mod sections;
mod specs;
mod time;
