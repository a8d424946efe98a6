//! `${NAME}` in the values of a job: the environment says them, as in fio.

use config::Diagnostic;

/// A value with its variables replaced, and each variable with what it is.
pub(super) struct Expanded {
    pub(super) text: String,
    pub(super) variables: Vec<(String, String)>,
}

/// Replaces `${NAME}` by what `of` says; nothing if the text has none.
///
/// # Errors
/// A variable that is not set or empty, which fio would replace by nothing.
pub(super) fn expand(
    text: &str,
    of: impl Fn(&str) -> Option<String>,
) -> Result<Option<Expanded>, Diagnostic> {
    let mut expanded = Expanded { text: String::new(), variables: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else {
            let what = format!("`{}` begins a variable that does not end", &rest[at..]);
            return Err(Diagnostic::new(what).help("write ${NAME}"));
        };
        let name = &rest[at + 2..at + end];
        let Some(value) = of(name).filter(|value| !value.is_empty()) else {
            let what = format!("the environment variable `{name}` is not set, or empty");
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
