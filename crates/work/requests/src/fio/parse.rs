//! Parser of inline jobs and job files into [`Jobs`].

use std::path::Path;

use config::{Diagnostic, Place, diag::nearest};

use super::spec::{Engine, Given, InertOption, JobSpec, Jobs, Notes};
use super::table::{Class, FioOption, names, option};
use super::value::{Value, has_opposite_suffix};

/// A `name=value` or `name` of the text.
struct Assignment<'a> {
    name: &'a str,
    text: Option<&'a str>,
    place: Place,
}

/// Reads an inline job: `rw=randread,bs=4k,iodepth=64`, with or without `fio:` before it.
///
/// A comma ends a value, unless the text after it has no `=` and is not the name of an option: then it continues the
/// same value, so `bs=4k,64k,iodepth=8` works as expected. Only options that take comma lists continue in this way.
pub fn parse_inline(text: &str) -> Result<Jobs, Diagnostic> {
    let body = text.strip_prefix("fio:").unwrap_or(text);
    let skipped = text.len() - body.len();
    let mut notes = Notes::default();
    let mut job = JobSpec::new("job");
    job.files.inline = true;
    let assignments = split_inline(text, body, skipped)?;
    assign_all(&mut job, &assignments, &mut notes)?;
    finish(&job, 0, &mut notes)?;
    Ok(Jobs { jobs: vec![job], notes })
}

fn split_inline<'a>(text: &'a str, body: &'a str, skipped: usize) -> Result<Vec<Assignment<'a>>, Diagnostic> {
    // Pieces as byte ranges of `body`, so that a value can grow over its commas.
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let mut start = 0;
    for piece in body.split(',') {
        let end = start + piece.len();
        let word = piece.trim();
        let stands_alone = word.contains('=') || option(word).is_some();
        match ranges.last_mut() {
            Some(last) if !stands_alone && takes_list(&body[last.0..last.1]) => last.1 = end,
            _ => ranges.push((start, end)),
        }
        start = end + 1;
    }
    let place = |start: usize| Place {
        source: "--workload".to_owned(),
        column: text[..skipped + start].chars().count() as u64 + 1,
        text: text.to_owned(),
        ..Place::default()
    };
    if body.trim().is_empty() {
        let help = "for example fio:rw=randread,bs=4k,iodepth=64,number_ios=100000";
        return Err(Diagnostic::new("the inline job is empty").at(place(0)).help(help));
    }
    let one = |&(start, end): &(usize, usize)| {
        if body[start..end].trim().is_empty() {
            return Err(Diagnostic::new("empty option between two commas").at(place(start)));
        }
        Ok(assignment(&body[start..end], place(start)))
    };
    ranges.iter().map(one).collect()
}

fn takes_list(piece: &str) -> bool {
    let name = piece.split('=').next().unwrap_or("").trim();
    piece.contains('=') && option(name).is_some_and(|row| row.list)
}

fn assignment(line: &str, place: Place) -> Assignment<'_> {
    match line.split_once('=') {
        Some((name, text)) => Assignment { name: name.trim(), text: Some(text.trim()), place },
        None => Assignment { name: line.trim(), text: None, place },
    }
}

/// Reads a job file from disk.
pub fn parse_file(path: &Path) -> Result<Jobs, Diagnostic> {
    parse_text(&path.display().to_string(), &config::read_text(path)?)
}

/// Reads the text of a job file; `name` is its name in diagnostics.
pub fn parse_text(name: &str, text: &str) -> Result<Jobs, Diagnostic> {
    let mut jobs = Jobs { jobs: Vec::new(), notes: Notes::default() };
    let mut defaults = JobSpec::new("global");
    let mut section: Option<Section> = None;
    for (index, raw) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = without_comment(raw);
        if line.is_empty() {
            continue;
        }
        let place = Place {
            source: name.to_owned(),
            line: index as u64 + 1,
            text: raw.to_owned(),
            ..Place::default()
        };
        if line.starts_with('[') {
            let title = section_title(line, &place)?;
            if let Some(done) = section.take() {
                done.close(&mut defaults, &mut jobs)?;
            }
            section = Some(Section { title, assignments: Vec::new() });
        } else if line == "include" || line.starts_with("include ") {
            let help = "replace it with the included lines";
            return Err(Diagnostic::new("fio's `include` is not supported").at(place).help(help));
        } else if let Some(open) = &mut section {
            open.assignments.push(assignment(line, place));
        } else {
            let what = format!("`{line}` is before the first [section]");
            return Err(Diagnostic::new(what)
                .at(place)
                .help("begin the file with [global] or the section of a job"));
        }
    }
    if let Some(done) = section {
        done.close(&mut defaults, &mut jobs)?;
    }
    if jobs.jobs.is_empty() {
        let what = format!("the fio job file `{name}` has no job");
        return Err(Diagnostic::new(what).help("a job is a section other than [global]"));
    }
    jobs.notes.warnings.extend(without_direct(&jobs.jobs));
    Ok(jobs)
}

/// Notes the options that a file leaves at fio's default and whose default differs here.
fn without_direct(jobs: &[JobSpec]) -> Option<String> {
    const NAMED: usize = 4;
    let open = |job: &&JobSpec| job.buffered.is_none() && job.engine != Some(Engine::Passthrough);
    let names: Vec<String> = jobs.iter().filter(open).map(|job| format!("`{}`", job.name)).collect();
    let (first, more) = names.split_at(names.len().min(NAMED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let (noun, verb) = if names.len() == 1 { ("job", "leaves") } else { ("jobs", "leave") };
    (!names.is_empty()).then(|| {
        format!(
            "{noun} {}{more} {verb} out `direct`: fio would use the page cache (direct=0) and measure the host's memory and \
             write-back; here requests go straight to the drive, and results are the drive's; set direct=0 for the page cache, direct=1 for the drive",
            first.join(", ")
        )
    })
}

/// fio cuts a line at the first `;`, then at the first `#`.
fn without_comment(raw: &str) -> &str {
    let line = raw.split(';').next().unwrap_or("");
    line.split('#').next().unwrap_or("").trim()
}

fn section_title<'a>(line: &'a str, place: &Place) -> Result<&'a str, Diagnostic> {
    let title = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::trim);
    match title {
        None | Some("") => {
            let what = format!("`{line}` is not a section title such as [job1]");
            Err(Diagnostic::new(what).at(place.clone()))
        }
        Some(title) if title != "global" && title.starts_with("global") => {
            let what = format!("fio reads [{title}] as [global]");
            let help = "write [global], or give the job a name that does not begin with `global`";
            Err(Diagnostic::new(what).at(place.clone()).help(help))
        }
        Some(title) => Ok(title),
    }
}

struct Section<'a> {
    title: &'a str,
    assignments: Vec<Assignment<'a>>,
}

impl Section<'_> {
    /// Ends a section: [global] changes the defaults of the jobs below it; any other section is a job.
    fn close(self, defaults: &mut JobSpec, jobs: &mut Jobs) -> Result<(), Diagnostic> {
        if self.title == "global" {
            return assign_all(defaults, &self.assignments, &mut jobs.notes);
        }
        let inherited = defaults.given.len();
        let mut job = JobSpec { name: self.title.to_owned(), ..defaults.clone() };
        assign_all(&mut job, &self.assignments, &mut jobs.notes)?;
        finish(&job, inherited, &mut jobs.notes)?;
        jobs.jobs.push(job);
        Ok(())
    }
}

/// Assigns all options; `kb_base` comes first, wherever it is: fio gives it priority.
fn assign_all(job: &mut JobSpec, assignments: &[Assignment], notes: &mut Notes) -> Result<(), Diagnostic> {
    let is_base = |a: &&Assignment| a.name == "kb_base";
    for assignment in assignments.iter().filter(is_base) {
        assign(job, assignment, notes)?;
    }
    for assignment in assignments.iter().filter(|a| !is_base(a)) {
        assign(job, assignment, notes)?;
    }
    Ok(())
}

fn assign(job: &mut JobSpec, assignment: &Assignment, notes: &mut Notes) -> Result<(), Diagnostic> {
    let place = Place { key: assignment.name.to_owned(), ..assignment.place.clone() };
    let Some(row) = option(assignment.name) else { return Err(unknown(assignment.name, place)) };
    let expanded = match assignment.text {
        Some(text) => {
            expand(text, |name| std::env::var(name).ok()).map_err(|fault| fault.at(place.clone()))?
        }
        None => None,
    };
    for (name, value) in expanded.iter().flat_map(|expanded| &expanded.variables) {
        notes.warnings.push(format!(
            "job `{}`: {}: ${{{name}}} is `{value}`, from the environment",
            job.name, row.name
        ));
    }
    let text = expanded.as_ref().map_or(assignment.text, |expanded| Some(&expanded.text));
    let value = text.unwrap_or("");
    let shown = if text.is_some() { format!("{}={value}", row.name) } else { row.name.to_owned() };
    let inert = |job: &JobSpec, reason: &str| InertOption {
        job: job.name.clone(),
        option: row.name.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
    };
    let read = |job: &mut JobSpec| {
        let set = (row.set)(job, Value { text, kb_base: job.kb_base });
        set.map_err(|error| {
            Diagnostic { what: format!("{shown}: {}", error.what), ..error }.at(place.clone())
        })
    };
    match row.class {
        Class::Honoured => {
            read(job)?;
            if job.kb_base == 1024 && has_opposite_suffix(value) {
                let what =
                    format!("{shown}: fio reads KiB as 1000 bytes unless kb_base=1000; write k for 1024");
                notes.warnings.push(what);
            }
            notes.inert.extend(stands_for(job, row, value).map(|reason| inert(job, reason)));
            job.given.push(Given { option: row.name, value: value.to_owned(), place: place.clone() });
        }
        Class::Inert => {
            read(job)?;
            notes.inert.push(inert(job, row.doc));
        }
        Class::Unsupported if text.is_some() && row.neutral.contains(&value) => {
            notes.inert.push(inert(job, "asks for nothing"));
        }
        Class::Unsupported => return Err(refuse(row, &shown, place)),
    }
    Ok(())
}

/// Returns what replaces a value without a counterpart here.
fn stands_for(job: &JobSpec, row: &FioOption, value: &str) -> Option<&'static str> {
    match row.name {
        "filename" if job.files.device().is_some() => Some("the simulated drive replaces the device"),
        "ioengine" if job.engine == Some(Engine::Passthrough) && value != "io_uring_cmd" => {
            Some("requests reach the drive as with io_uring_cmd; driver costs are those of the host")
        }
        _ => None,
    }
}

fn unknown(name: &str, place: Place) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(format!("fio has no option `{name}`")).at(place);
    diagnostic.nearest = nearest(name, names()).map(str::to_owned);
    diagnostic.help("`nandscape list fio` lists every option and its support")
}

fn refuse(row: &FioOption, shown: &str, place: Place) -> Diagnostic {
    let diagnostic = Diagnostic::new(format!("{shown} is not supported: {}", row.doc)).at(place);
    match row.neutral {
        [] => diagnostic,
        values => Diagnostic { allowed: values.iter().map(|v| (*v).to_owned()).collect(), ..diagnostic },
    }
}

/// Checks that need the whole job. Options from `inherited` on are in the job's own section.
fn finish(job: &JobSpec, inherited: usize, notes: &mut Notes) -> Result<(), Diagnostic> {
    job.contradictions()?;
    for (option, why) in job.without_effect() {
        if job.given.iter().skip(inherited).any(|given| given.option == option) {
            notes.warnings.push(format!("job `{}`: {option} has no effect: {why}", job.name));
        }
    }
    Ok(())
}

// Variables `${NAME}` in the values of a job, replaced from the environment as in fio.

/// A value with its variables replaced, and the value of each variable.
pub(super) struct Expanded {
    pub(super) text: String,
    pub(super) variables: Vec<(String, String)>,
}

/// Replaces each `${NAME}` by the result of `of`; returns none if the text has no variables.
///
/// # Errors
/// If a variable is unset or empty; fio would replace it by nothing.
pub(super) fn expand(
    text: &str,
    of: impl Fn(&str) -> Option<String>,
) -> Result<Option<Expanded>, Diagnostic> {
    let mut expanded = Expanded { text: String::new(), variables: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else {
            let what = format!("`{}` begins an unterminated variable", &rest[at..]);
            return Err(Diagnostic::new(what).help("write ${NAME}"));
        };
        let name = &rest[at + 2..at + end];
        let Some(value) = of(name).filter(|value| !value.is_empty()) else {
            let what = format!("the environment variable `{name}` is not set or is empty");
            let help = format!("set it for the run ({name}=... nandscape run ...), or write the value");
            return Err(Diagnostic::new(what).help(help));
        };
        expanded.text += &rest[..at];
        expanded.text += &value;
        expanded.variables.push((name.to_owned(), value));
        rest = &rest[at + end + 1..];
    }
    expanded.text += rest;
    Ok((!expanded.variables.is_empty()).then_some(expanded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<Option<String>, String> {
        let of = |name: &str| match name {
            "SIZE" => Some("64m".to_owned()),
            "DEV" => Some("nvme0n1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        expand(text, of).map(|found| found.map(|found| found.text)).map_err(|fault| fault.what)
    }

    /// fio's HOWTO, "Environment variables": any sub-string of the form `${VARNAME}` of a value.
    #[test]
    fn variables_are_replaced_wherever_they_stand() {
        assert_eq!(expanded("${SIZE}"), Ok(Some("64m".into())));
        assert_eq!(expanded("/dev/${DEV}:${SIZE}x"), Ok(Some("/dev/nvme0n1:64mx".into())));
        assert_eq!(expanded("$jobname.$jobnum"), Ok(None));
        assert_eq!(expanded("4k"), Ok(None));
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        for (text, name) in
            [("${NONE}", "`NONE`"), ("4${EMPTY}k", "`EMPTY`"), ("${SIZE", "${SIZE"), ("${}", "``")]
        {
            let said = expanded(text).expect_err(text);
            assert!(said.contains(name), "{text}: {said}");
        }
    }
}
