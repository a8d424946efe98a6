//! Which files a program has, and which instance uses which.

use proto::file::{FileId, FileSpec};
use proto::offload::{Action, Plan};
use std::collections::BTreeMap;

/// Arrays of a plan that have to be in files: those that it loads or stores.
pub(super) fn filed(plan: &Plan) -> Vec<u16> {
    let mut arrays: Vec<u16> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Load(stretch) | Action::Store(stretch) => Some(stretch.array),
            Action::Work(_) => None,
        })
        .collect();
    arrays.sort_unstable();
    arrays.dedup();
    arrays
}

/// The files of a program, all on one drive.
pub(super) struct Files {
    drive: u16,
    pub(super) specs: Vec<FileSpec>,
    /// By application and instance.
    ids: Vec<Vec<Vec<FileId>>>,
    /// Those that instances share, by program and array.
    shared: BTreeMap<(u32, u16), FileId>,
}

impl Files {
    pub(super) fn new(drive: u16) -> Files {
        Files { drive, specs: Vec::new(), ids: Vec::new(), shared: BTreeMap::new() }
    }

    /// Gives the instances of one more application files for some arrays of its plan.
    pub(super) fn add(&mut self, plan: &Plan, arrays: &[u16], instances: u32) {
        let application = self.ids.len();
        let mut ids = Vec::new();
        for instance in 0..instances {
            let of_instance = arrays.iter().map(|array| {
                let about = &plan.arrays[usize::from(*array)];
                let key = (plan.program, *array);
                if let Some(known) = self.shared.get(&key) {
                    return *known;
                }
                let id = FileId(self.specs.len() as u32);
                let name = match about.is_shared {
                    true => format!("{}/{}", plan.name, about.name),
                    false => format!("{}.{application}.{instance}/{}", plan.name, about.name),
                };
                let bytes = about.is_given.then_some(about.bytes);
                self.specs.push(FileSpec { name, bytes, drive: self.drive });
                if about.is_shared {
                    self.shared.insert(key, id);
                }
                id
            });
            ids.push(of_instance.collect());
        }
        self.ids.push(ids);
    }

    /// The file of an instance's array, by the array's place among those in files.
    pub(super) fn of(&self, (application, instance): (u32, u32), place: usize) -> FileId {
        self.ids[application as usize][instance as usize][place]
    }
}
