//! `nandscape completions`.

use crate::complete::VARIABLE;
use crate::output::{Fault, print};
use clap_complete::env::Shells;
use config::Diagnostic;

/// Arguments of `completions`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nandscape completions bash > ~/.local/share/bash-completion/completions/nandscape
  nandscape completions zsh > ~/.zfunc/_nandscape
  nandscape completions fish > ~/.config/fish/completions/nandscape.fish")]
pub(crate) struct Args {
    /// Shell: bash, elvish, fish, powershell or zsh
    shell: String,
}

/// Prints the script by which a shell asks this program for candidates.
///
/// # Errors
/// An unknown shell.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).ok_or_else(|| {
        Diagnostic::new(format!("no completions for the shell `{}`", args.shell))
            .allowed(&args.shell, shells.names())
    })?;
    let mut script = Vec::new();
    // A vector takes everything.
    let _ = shell.write_registration(VARIABLE, "nandscape", "nandscape", "nandscape", &mut script);
    print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(true)
}
