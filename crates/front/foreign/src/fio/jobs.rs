//! What jobs were asked for, as fio repeats it beside its results.

/// A job by its name, with its options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Its options in their order; those without a value have an empty one.
    pub options: Vec<(String, String)>,
}

/// The options of an inline job, `fio:rw=randread,bs=4k`: a piece without `=` belongs to the value before it, unless that is none.
pub fn job_of_inline(text: &str) -> Job {
    let mut job = Job { name: "job".to_owned(), options: Vec::new() };
    for piece in text.strip_prefix("fio:").unwrap_or(text).split(',') {
        match (piece.split_once('='), job.options.last_mut()) {
            (Some((key, value)), _) if key.trim() == "name" => job.name = value.trim().to_owned(),
            (Some((key, value)), _) => job.options.push((key.trim().to_owned(), value.trim().to_owned())),
            (None, Some((_, value))) if piece.starts_with(|c: char| c.is_ascii_digit()) => {
                value.push(',');
                value.push_str(piece.trim());
            }
            (None, _) => job.options.push((piece.trim().to_owned(), String::new())),
        }
    }
    job
}

/// The jobs of a job file, each with what its `[global]` sections say before it.
pub fn jobs_of_file(text: &str) -> Vec<Job> {
    let (mut global, mut jobs): (Vec<(String, String)>, Vec<Job>) = (Vec::new(), Vec::new());
    let mut in_global = true;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            in_global = title == "global";
            if !in_global {
                jobs.push(Job { name: title.to_owned(), options: global.clone() });
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let option = (key.trim().to_owned(), value.trim().to_owned());
        let options = match jobs.last_mut() {
            Some(job) if !in_global => &mut job.options,
            _ => &mut global,
        };
        options.retain(|(known, _)| *known != option.0);
        options.push(option);
    }
    jobs
}
