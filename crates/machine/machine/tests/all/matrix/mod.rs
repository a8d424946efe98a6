//! Any memory behind any processor: each pair is built, runs with all checks and shadows on, and moves data through every wire.

mod machines;

use machine::run::{Plan, run_alone};
use machines::{Behind, In, PAIRS, REFUSED};
use serde_json::Value;

/// The document of a run of this machine.
fn run(processor: In, behind: &Behind) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("machine.toml");
    std::fs::write(&path, machines::spec(processor, behind)).expect("a file");
    let mut plan = Plan::new(&path.to_string_lossy(), processor.workload());
    plan.set = [processor.set(), behind.set].concat().iter().map(|set| (*set).to_owned()).collect();
    plan.set.push("sim.shadow=true".to_owned());
    let document = run_alone(&plan).unwrap_or_else(|fault| panic!("{processor:?}, {}: {fault}", behind.name));
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.ok).collect();
    assert!(document.ok, "{processor:?}, {}: {failed:#?}", behind.name);
    serde_json::to_value(document).expect("a document has a JSON form")
}

/// Figures that are not above zero though data have gone that way.
fn idle(document: &Value, processor: In, behind: &Behind) -> Vec<String> {
    let own = processor.moved().iter().map(|path| (*path).to_owned());
    let root = processor.root();
    let of_memory = behind.moved.iter().map(|path| match path.strip_prefix('/') {
        Some(_) => (*path).to_owned(),
        None => format!("{root}/memory/{path}"),
    });
    let is_idle = |path: &String| document.pointer(path).and_then(Value::as_f64).is_none_or(|n| n <= 0.0);
    own.chain(of_memory).filter(is_idle).collect()
}

#[test]
fn any_memory_stands_behind_any_processor() {
    let mut faults = Vec::new();
    let mut work = [None; 2];
    for (processor, behind) in PAIRS {
        let document = run(*processor, behind);
        let idle = idle(&document, *processor, behind);
        if !idle.is_empty() {
            faults.push(format!("{processor:?}, {}: nothing in {}", behind.name, idle.join(", ")));
        }
        let done = document.pointer(processor.work()).and_then(Value::as_u64);
        let known = work[*processor as usize].get_or_insert(done);
        if done.is_none() || *known != done {
            faults.push(format!("{processor:?}, {}: {done:?} in place of {known:?}", behind.name));
        }
    }
    assert_eq!(faults, [""; 0]);
}

/// Impossible combinations of hardware are refused when the file is read.
#[test]
fn what_cannot_stand_together_is_refused() {
    for (text, words, why) in REFUSED {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("machine.toml");
        std::fs::write(&path, text).expect("a file");
        let shown = match machine::load(&path.to_string_lossy(), &[]) {
            Ok(_) => panic!("{words}: not refused, though {why}"),
            Err(fault) => fault.to_string(),
        };
        assert!(shown.contains(words), "no `{words}` in\n{shown}");
    }
}
