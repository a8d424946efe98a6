//! A run that can be stopped, looked at, and gone on with.

use crate::assemble::{Assembled, assemble};
use crate::build::server;
use crate::machine::Machine;
use crate::machine::end::End;
use crate::plan::Plan;
use crate::plan::bring::{Policies, changed};
use crate::precondition::Report;
use crate::result::{Document, Frame, RunFigures};
use crate::run::{Observers, Outside, Stage, stall};
use crate::spec::Loaded;
use config::Diagnostic;
use engine::Time;

/// A plan whose machine is built and in its state, and as far as it has been run.
pub struct Session {
    plan: Plan,
    loaded: Loaded,
    /// Both with what has changed since.
    changes: Plan,
    present: Loaded,
    machine: Machine,
    warnings: Vec<String>,
    preconditions: Vec<Report>,
    precondition_cpu_s: f64,
    cpu_s: f64,
    wall_s: f64,
    begun: bool,
    /// What the last [`Session::run`] came to: none if it came to its pause.
    end: Option<End>,
}

impl Session {
    /// Builds the machine and brings it into its state; nothing if an early end was wanted before that was done.
    ///
    /// # Errors
    /// Everything that is unusable about the plan, or about policies from outside.
    pub fn open(
        plan: &Plan,
        outside: &mut Outside<'_>,
        observers: Observers,
        policies: Policies,
    ) -> Result<Option<Session>, Diagnostic> {
        let (loaded, present) = (plan.load()?, plan.load()?);
        let Some(assembled) = assemble(plan, &loaded, outside, observers, policies)? else { return Ok(None) };
        let Assembled { machine, warnings, preconditions, precondition_cpu_s } = assembled;
        (outside.watch)(Stage::Running(&machine));
        Ok(Some(Session {
            plan: plan.clone(),
            changes: plan.clone(),
            present,
            loaded,
            machine,
            warnings,
            preconditions,
            precondition_cpu_s,
            cpu_s: 0.0,
            wall_s: 0.0,
            begun: false,
            end: None,
        }))
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How the run has ended: not yet, if it was paused or interrupted.
    pub fn end(&self) -> Option<End> {
        self.end.filter(|end| *end != End::Interrupted)
    }

    /// Runs to the end, until a stop is wanted, or up to and with the first event at `pause` or later; nothing more once it has ended.
    ///
    /// # Errors
    /// A failure of a source.
    pub fn run(&mut self, outside: &mut Outside<'_>, pause: Time) -> Result<(), Diagnostic> {
        if self.end().is_some() || self.begun && self.machine.now() >= pause {
            return Ok(());
        }
        let (cpu, wall) = ((outside.cpu_s)(), (outside.wall_s)());
        if !std::mem::replace(&mut self.begun, true) {
            self.machine.begin();
        }
        self.end = self.machine.go_on(outside.stop, pause, |m| (outside.watch)(Stage::Running(m)));
        self.cpu_s += (outside.cpu_s)() - cpu;
        self.wall_s += (outside.wall_s)() - wall;
        match self.machine.failure() {
            Some(failure) if self.end == Some(End::Failed) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Changes policies, from now on: values of the spec as `key.path=value`, and those that a caller brings along. The result says so, and has the
    /// spec as it was at the beginning.
    ///
    /// # Errors
    /// Values that cannot be, or that cannot change while a machine runs: then nothing has changed. A part that nothing of the kind is decided for:
    /// what was named before it has.
    pub fn change(&mut self, set: &[String], policies: Policies) -> Result<(), Diagnostic> {
        let mut plan = self.changes.clone();
        plan.set.extend(set.iter().cloned());
        let loaded = plan.load()?;
        for number in 0..loaded.spec.cpu.len() {
            server::tables(&loaded, number)?;
        }
        let (of_spec, said) = changed(&self.present, &loaded, self.plan.seed)?;
        self.machine.bring(of_spec, &loaded.spec)?;
        let brought = self.machine.bring(policies, &loaded.spec)?;
        let now = self.machine.now();
        self.warnings.extend(said.into_iter().chain(brought).map(|what| format!("from {now} on, {what}")));
        (self.changes, self.present) = (plan, loaded);
        Ok(())
    }

    /// The system as it is now.
    pub fn system(&self) -> &Loaded {
        &self.present
    }

    /// The result so far. Of a run that has not ended it is partial, as that of one that was interrupted.
    pub fn document(&mut self, outside: &mut Outside<'_>) -> Document {
        let end = self.end.unwrap_or(End::Interrupted);
        let machine = &mut self.machine;
        let completed = machine.completed() as f64;
        let figures = RunFigures {
            wall_s: self.wall_s,
            cpu_s: self.cpu_s,
            precondition_cpu_s: self.precondition_cpu_s,
            events: machine.events,
            requests_per_cpu_s: if self.cpu_s > 0.0 { completed / self.cpu_s } else { 0.0 },
            peak_rss_bytes: (outside.peak_rss)(),
        };
        let frame = Frame {
            system: self.loaded.name.clone(),
            spec: self.loaded.spec.to_json(),
            seed: self.plan.seed,
            workload: self.plan.workloads.clone(),
            warnings: self.warnings.iter().cloned().chain(stall::report(machine, end)).collect(),
            preconditions: self.preconditions.clone(),
        };
        (outside.watch)(Stage::Checking);
        Document::collect(frame, machine, end, figures, outside.stop)
    }
}
