//! Each formula against numbers worked out by hand from the kernel's function, then the machines.

mod limits;
