mod energy;
mod keep;
mod random;
mod sections;
mod specs;
mod time;
