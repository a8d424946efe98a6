//! Worked examples, and cuts of power.
