//! Inputs that several applications of one run share.

use std::sync::Arc;

use crate::graph::Graph;

/// Graphs already built, by how they were asked for: eight instances of one program hold one graph.
#[derive(Default)]
pub struct Inputs {
    graphs: Vec<(String, Arc<Graph>)>,
    /// What a user must know of inputs that were read, not yet handed on.
    pub(crate) notes: Vec<String>,
}

impl Inputs {
    /// The graph known by `recipe`, or the one that `build` makes.
    ///
    /// # Errors
    /// What `build` refuses.
    pub fn graph<E>(
        &mut self,
        recipe: &str,
        build: impl FnOnce(&mut Vec<String>) -> Result<Graph, E>,
    ) -> Result<Arc<Graph>, E> {
        if let Some((_, graph)) = self.graphs.iter().find(|(known, _)| known == recipe) {
            return Ok(Arc::clone(graph));
        }
        let graph = Arc::new(build(&mut self.notes)?);
        self.graphs.push((recipe.to_owned(), Arc::clone(&graph)));
        Ok(graph)
    }
}
