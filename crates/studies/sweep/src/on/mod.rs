//! Runs on a cluster: where it is, and what it takes to make one.

mod cluster;
mod order;

pub(crate) use cluster::{Cluster, Said};
pub use order::{Answer, Order};

use config::Diagnostic;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where a cluster is.
#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum On {
    /// A scheduler of Dask that is there: `tcp://HOST:PORT`.
    Address(String),
    /// One that is made for this sweep.
    Made(Made),
}

/// A cluster that a batch system makes.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Made {
    /// Which batch system.
    cluster: Kind,
    /// Jobs that are asked of it; of `local`, processes.
    jobs: u32,
    /// Arguments of the class of dask-jobqueue, or of `LocalCluster`.
    #[serde(default)]
    options: toml::Table,
}

/// What makes a cluster.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Processes of this machine.
    Local,
    Slurm,
    Pbs,
    Lsf,
    Sge,
    Htcondor,
    Oar,
    Moab,
}

/// What a file of a cluster says, for diagnostics.
const HELP: &str = "cluster = \"slurm\", jobs = 8, and in [options] what dask-jobqueue's SLURMCluster takes: cores, memory, queue, walltime";

impl On {
    /// Reads `--on`: `dask://HOST:PORT`, or a TOML file.
    ///
    /// # Errors
    /// It is neither, or the file says something else.
    pub(crate) fn read(text: &str) -> Result<On, Diagnostic> {
        if let Some(address) = text.strip_prefix("dask://") {
            let is_whole = address.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
            if !is_whole {
                return Err(Diagnostic::new(format!("--on: `{text}` has no host and port")).help(
                    "`dask scheduler` prints its address: tcp://10.0.0.1:8786 is dask://10.0.0.1:8786",
                ));
            }
            return Ok(On::Address(format!("tcp://{address}")));
        }
        if !text.ends_with(".toml") {
            return Err(Diagnostic::new(format!("--on: `{text}` is no cluster"))
                .help("dask://HOST:PORT is a scheduler of Dask, FILE.toml a batch system that makes one"));
        }
        let path = Path::new(text);
        let content = std::fs::read_to_string(path)
            .map_err(|fault| Diagnostic::new(format!("cannot read {text}: {fault}")).help(HELP))?;
        let made: Made = toml::from_str(&content).map_err(|fault| {
            let line = fault.span().map_or(0, |span| content[..span.start].matches('\n').count() + 1);
            Diagnostic::new(format!("{text}:{line}: {}", fault.message())).help(HELP)
        })?;
        if made.jobs == 0 {
            return Err(Diagnostic::new(format!("{text}: `jobs` is 0: nothing would run")).help(HELP));
        }
        Ok(On::Made(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        assert_eq!(On::read("dask://node7:8786").unwrap(), On::Address("tcp://node7:8786".into()));
        assert_eq!(On::read("dask://[::1]:8786").unwrap(), On::Address("tcp://[::1]:8786".into()));
        for wrong in [
            "dask://",
            "dask://node7",
            "dask://node7:",
            "dask://:8786",
            "dask://node7:0",
            "tcp://a:1",
            "slurm",
        ] {
            let fault = On::read(wrong).unwrap_err();
            assert!(fault.what.contains(wrong) && fault.help.is_some(), "{fault}");
        }
    }

    #[test]
    fn a_file_names_a_batch_system() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join("c.toml");
            std::fs::write(&path, text).unwrap();
            On::read(&path.display().to_string())
        };
        let good = read("cluster = \"slurm\"\njobs = 4\n[options]\ncores = 8\n").unwrap();
        let On::Made(made) = &good else { panic!("{good:?}") };
        assert_eq!((made.cluster, made.jobs, made.options["cores"].as_integer()), (Kind::Slurm, 4, Some(8)));
        for (wrong, said) in [
            ("cluster = \"slurn\"\njobs = 4", "c.toml:1: unknown variant `slurn`"),
            ("cluster = \"slurm\"\njob = 4", "c.toml:2: unknown field `job`"),
            ("cluster = \"slurm\"\njobs = 0", "nothing would run"),
            ("jobs = 2", "missing field `cluster`"),
        ] {
            let fault = read(wrong).unwrap_err();
            assert!(fault.what.contains(said), "{fault}");
        }
    }
}
