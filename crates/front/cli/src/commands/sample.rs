//! `nandscape sample`.

use crate::options;
use crate::output::{Fault, Files, print, wrapped, write_whole};
use crate::outside::{Clocks, peak_rss};
use crate::progress::Lines;
use config::units::Share;
use config::{Diagnostic, Place};
use requests::trace::what_is;
use sampling::{Bound, Dims, Format, Group, Plan, Prediction, Profile, Rule, Sample, Selection};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use text::unpack;

/// Maximum number of groups in the table.
const SHOWN: usize = 20;
/// Maximum length of a kernel's name in the table, in characters.
const NAME: usize = 48;

const FORMATS: &str = "\
A profile is one of these, plain or packed (gzip, xz, bzip2, zstd), recognised by its content; `-` reads standard input:
  our kernel CSV      id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name
  a Chrome trace      of PyTorch's profiler (Kineto): JSON with traceEvents
  Nsight Systems      nsys stats --report cuda_gpu_trace --format csv (or cuda_kern_exec_trace)
  Nsight Compute      ncu --csv --metrics gpu__time_duration.sum (--page raw or details)

docs/sampling.md has the method, its formulas, and the format of the file that --out writes.";

/// Arguments of `sample`.
#[derive(clap::Args)]
#[command(after_help = FORMATS)]
pub(crate) struct Args {
    /// GPU profile
    file: PathBuf,
    /// Bound on the relative error of the predicted time
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    error: String,
    /// Confidence of the bound
    #[arg(long, value_name = "SHARE", default_value = "95%")]
    confidence: String,
    /// Scope of the bound: every group (allegro; fewest splits further, if the profile's order can be trusted) or the
    /// total alone (neyman)
    #[arg(long, default_value = "allegro")]
    rule: String,
    /// Seed for drawing kernels
    #[arg(long, default_value_t = 1, value_parser = options::whole_i63)]
    seed: u64,
    /// Print one JSON document with all groups
    #[arg(long)]
    json: bool,
    /// Write the kernels to simulate, as TOML
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Document printed by `--json`.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    profile: String,
    format: Format,
    remarks: Vec<String>,
    error: f64,
    confidence: f64,
    rule: Rule,
    seed: u64,
    /// Number of kernels, and of those to simulate.
    kernels: u64,
    simulated: u64,
    /// Distinct combinations of name, grid and block; groups after splitting them.
    kinds: u64,
    groups: Vec<Row>,
    /// Kernels over simulated kernels; total time over time of the simulated ones, null if that is zero.
    speedup_kernels: f64,
    speedup_time: Option<f64>,
    predicted_ns: f64,
    half_width_ns: f64,
    actual_ns: f64,
    /// Relative error (predicted - actual) / actual; null if the actual time is zero and the prediction is not.
    actual_error: Option<f64>,
    run: Cost,
}

/// Cost of the command itself.
#[derive(Serialize)]
struct Cost {
    wall_s: f64,
    cpu_s: f64,
    peak_rss_bytes: u64,
}

/// Group of kernels in the document.
#[derive(Serialize)]
struct Row {
    name: String,
    grid: Option<Dims>,
    block: Option<Dims>,
    /// Index of the part within its kind, by ascending duration.
    part: usize,
    count: u64,
    simulated: u64,
    mean_ns: f64,
    deviation_ns: f64,
    min_ns: f64,
    max_ns: f64,
    total_ns: f64,
}

/// Plans, draws, predicts, and compares the prediction with the profile.
///
/// # Errors
/// The profile cannot be read, the bound is invalid, or a file cannot be written.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let clocks = Clocks::start();
    let bound = Bound::new(share("--error", &args.error)?, share("--confidence", &args.confidence)?)?;
    let rule: Rule = args.rule.parse()?;
    Files::default().reads("FILE", &args.file).writes("--out", args.out.as_deref()).apart()?;
    let lines = Lines::about(format!("reading {}", args.file.display()));
    let profile = profile(&args.file)?;
    drop(lines);
    let plan = Plan::new(&profile, bound, rule)?;
    let sample = plan.draw(args.seed);
    let prediction = sample.predict(&plan, |kernel| profile.durations_ns()[kernel as usize]);
    if let Some(out) = &args.out {
        let name = args.file.display().to_string();
        write_whole(out, Selection::new(&plan, &sample, &name, args.seed).to_toml().as_bytes())?;
    }
    let document = document(args, &clocks, &profile, &plan, &sample, &prediction);
    print(&if args.json {
        // Text and numbers: serialising cannot fail.
        serde_json::to_string_pretty(&document).unwrap_or_default()
    } else {
        wrapped(&human(&document))
    })?;
    Ok(true)
}

/// Reads a profile, compressed in any way that traces may be; a different file is named for what it is.
fn profile(path: &Path) -> Result<Profile, Diagnostic> {
    let source = path.display().to_string();
    let file = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let Ok(unpacked) = File::open(file).and_then(unpack) else { return Profile::read(path) };
    Profile::from_reader(&source, unpacked).map_err(|fault| {
        let place = Place { source: source.clone(), ..Place::default() };
        match what_is(file, programs::FILES).filter(|(what, _)| !what.starts_with("a profile")) {
            Some((what, help)) => {
                Diagnostic::new(format!("this is {what}, not a profile of a GPU")).at(place).help(help)
            }
            None => fault,
        }
    })
}

/// Parses a share from an option. A value above one is reported as out of range.
fn share(option: &str, text: &str) -> Result<f64, Diagnostic> {
    let above_one = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match above_one {
        Some(percent) if percent > 100.0 => Ok(percent / 100.0),
        _ => text.parse::<Share>().map(Share::get).map_err(|fault| {
            let mut fault =
                fault.at(Place { source: option.to_owned(), text: text.to_owned(), ..Place::default() });
            fault.allowed = vec!["a share above 0 % and below 100 %, such as 5% or 0.05".to_owned()];
            fault
        }),
    }
}

fn document(
    args: &Args,
    clocks: &Clocks,
    profile: &Profile,
    plan: &Plan,
    sample: &Sample,
    prediction: &Prediction,
) -> Document {
    let row = |group: &Group| {
        let kind = &plan.kinds()[group.kind()];
        let (min_ns, max_ns) = group.range_ns();
        Row {
            name: kind.name.clone(),
            grid: kind.grid,
            block: kind.block,
            part: group.part(),
            count: group.count(),
            simulated: group.samples(),
            mean_ns: group.mean_ns(),
            deviation_ns: group.deviation_ns(),
            min_ns,
            max_ns,
            total_ns: group.total_ns(),
        }
    };
    let mut groups: Vec<Row> = plan.groups().iter().map(row).collect();
    // Largest first; ties keep the order of their first kernels.
    groups.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
    let sampled = prediction.sampled_ns();
    Document {
        schema: "nandscape.sample/1",
        profile: args.file.display().to_string(),
        format: profile.format(),
        remarks: profile.remarks(),
        error: plan.bound().error(),
        confidence: plan.bound().confidence(),
        rule: plan.rule(),
        seed: args.seed,
        kernels: plan.kernels(),
        simulated: sample.len(),
        kinds: plan.kinds().len() as u64,
        groups,
        speedup_kernels: plan.kernels() as f64 / sample.len() as f64,
        speedup_time: (sampled > 0.0).then(|| plan.total_ns() / sampled),
        predicted_ns: prediction.total_ns(),
        half_width_ns: prediction.half_width_ns(),
        actual_ns: plan.total_ns(),
        actual_error: prediction.error(plan.total_ns()),
        run: Cost { wall_s: clocks.wall_s(), cpu_s: clocks.cpu_s(), peak_rss_bytes: peak_rss() },
    }
}

fn human(document: &Document) -> String {
    let Document { profile, format, error, confidence, rule, seed, .. } = document;
    let mut text =
        format!("{profile}: {} kernels ({format}), {}\n", document.kernels, time(document.actual_ns));
    for remark in &document.remarks {
        let _ = writeln!(text, "  {remark}");
    }
    let _ = writeln!(
        text,
        "bound {} at a confidence of {}, rule {rule}, seed {seed}\n",
        percent(*error),
        percent(*confidence)
    );
    table(&mut text, document);
    let speedup = document
        .speedup_time
        .map_or_else(String::new, |speedup| format!(", {speedup:.1} times less kernel time"));
    let _ = writeln!(
        text,
        "\ngroups     {} by name, grid and block; {} after splitting\n\
         simulate   {} of {} kernels: {:.1} times fewer{speedup}\n\
         predicted  {} ± {} ({:.2} %)",
        document.kinds,
        document.groups.len(),
        document.simulated,
        document.kernels,
        document.speedup_kernels,
        time(document.predicted_ns),
        time(document.half_width_ns),
        100.0 * part(document.half_width_ns, document.predicted_ns),
    );
    let _ = match document.actual_error {
        Some(actual) => write!(
            text,
            "actual     {}: error {:+.3} %, {} the bound",
            time(document.actual_ns),
            100.0 * actual,
            if actual.abs() <= *error { "inside" } else { "outside" }
        ),
        None => write!(text, "actual     {}", time(document.actual_ns)),
    };
    text
}

fn table(text: &mut String, document: &Document) {
    let all = document.actual_ns;
    let _ = writeln!(
        text,
        "{:>9} {:>9} {:>7} {:>11} {:>8}  {:<14} {:<12} name",
        "kernels", "simulate", "time %", "mean us", "sd %", "grid", "block"
    );
    let dims = |dims: Option<Dims>| dims.map_or_else(|| "-".to_owned(), |dims| dims.to_string());
    for row in document.groups.iter().take(SHOWN) {
        let name: String = row.name.chars().take(NAME).collect();
        let _ = writeln!(
            text,
            "{:>9} {:>9} {:>7.2} {:>11.3} {:>8.2}  {:<14} {:<12} {name}",
            row.count,
            row.simulated,
            100.0 * part(row.total_ns, all),
            row.mean_ns / 1e3,
            100.0 * part(row.deviation_ns, row.mean_ns),
            dims(row.grid),
            dims(row.block),
        );
    }
    let rest = document.groups.get(SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let _ = writeln!(
            text,
            "{:>9} {:>9} {:>7.2}  in {} smaller groups; --json has all",
            rest.iter().map(|row| row.count).sum::<u64>(),
            rest.iter().map(|row| row.simulated).sum::<u64>(),
            100.0 * part(rest.iter().map(|row| row.total_ns).sum(), all),
            rest.len()
        );
    }
}

fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 { of / whole } else { 0.0 }
}

fn percent(share: f64) -> String {
    // Enough digits for the share, without the noise of its binary value.
    let text = format!("{:.6}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{:.3} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.3} ms", ns / 1e6),
        ns => format!("{:.3} us", ns / 1e3),
    }
}
