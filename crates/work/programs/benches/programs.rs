//! What the programs of a GPU do and what executing them costs: `cargo bench -p nandscape-programs --bench programs`. Arguments
//! name programs with their parameters; without any, every program runs as it is by default.

use std::time::Instant;

use programs::program::{Census, census, entries, open};

fn row(text: &str) {
    let begin = Instant::now();
    let mut programs = match open(&[text]) {
        Ok(programs) => programs,
        Err(refused) => return println!("{text:24} {}", refused.one_line()),
    };
    let built = begin.elapsed();
    for program in &mut programs {
        let begin = Instant::now();
        let c: Census = census(program.as_mut());
        let ns = begin.elapsed().as_nanos() as f64;
        println!(
            "{text:24} build {:5} ms, {:4} kernels, {:6.2} M warp instructions ({:5.2} M entries, {:4.1} % lanes), {:5.2} M lines, \
             read {:.3} (loads {:.3}, instructions {:.3}), {:3} MiB, {:3.0} % touched, {:3.0} % written, {:4.1} ops/B, {:4.1} ns an instruction",
            built.as_millis(),
            c.kernels.len(),
            c.warp_instructions as f64 / 1e6,
            c.entries as f64 / 1e6,
            c.lane_use() * 100.0,
            (c.loads.lines + c.stores.lines + c.atomics.lines) as f64 / 1e6,
            c.read_ratio(),
            c.load_ratio(),
            c.instruction_read_ratio(),
            c.footprint >> 20,
            c.touched() as f64 / c.footprint as f64 * 100.0,
            c.written_pages as f64 * 4096.0 / c.footprint as f64 * 100.0,
            c.intensity(),
            ns / c.warp_instructions as f64,
        );
    }
}

fn main() {
    let named: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if named.is_empty() {
        entries().for_each(|entry| row(entry.name));
    }
    named.iter().for_each(|text| row(text));
}
