//! Red-black interval tree in flat storage (Cormen, Leiserson, Rivest and Stein, chapters 13 and 14).

use super::{Access, GroupRange, Owner};
use engine::Slab;

/// Leaf of all branches and parent of the root: black, and never in a range.
const NIL: u32 = 0;

/// Request for a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    range: GroupRange,
    access: Access,
    owner: Owner,
    /// Position in the order of arrival.
    pub(super) arrival: u64,
    /// Number of earlier requests that it waits for.
    pub(super) ahead: u32,
    parent: u32,
    child: [u32; 2],
    is_red: bool,
    /// Last group of all ranges of the subtree plus one, and the same for its writers; zero if none.
    ends: Ends,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Ends {
    all: u64,
    writers: u64,
}

impl Ends {
    fn and(self, other: Ends) -> Ends {
        Ends { all: self.all.max(other.all), writers: self.writers.max(other.writers) }
    }
    /// Returns the end that matters for a request with this access.
    #[inline]
    fn of_rivals(self, access: Access) -> u64 {
        if access == Access::Write { self.all } else { self.writers }
    }
}

impl Node {
    pub(super) fn new(range: GroupRange, access: Access, owner: Owner, arrival: u64, ahead: u32) -> Node {
        let ends = Ends::default();
        Node { range, access, owner, arrival, ahead, parent: NIL, child: [NIL; 2], is_red: true, ends }
    }

    /// Returns the node's own contribution to the ends.
    fn own(&self) -> Ends {
        let end = u64::from(self.range.last) + 1;
        Ends { all: end, writers: if self.access == Access::Write { end } else { 0 } }
    }

    fn conflicts(&self, range: GroupRange, access: Access) -> bool {
        (access == Access::Write || self.access == Access::Write)
            && self.range.first <= range.last
            && range.first <= self.range.last
    }
}

/// Red-black tree of requests.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Slab<Node>,
    root: u32,
    /// Nodes still to be visited by a search; kept for its memory.
    path: Vec<u32>,
    /// Nodes visited by searches and on the paths of insertions and removals.
    pub(super) visits: u64,
}

impl Default for Tree {
    fn default() -> Tree {
        let mut nodes = Slab::default();
        let mut nil = Node::new(GroupRange { first: 0, last: 0 }, Access::Read, Owner::Storengine, 0, 0);
        nil.is_red = false;
        nodes.insert(nil);
        Tree { nodes, root: NIL, path: Vec::new(), visits: 0 }
    }
}

impl Tree {
    /// Returns the number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    pub(super) fn owner(&self, name: u32) -> Owner {
        self.nodes[name].owner
    }

    /// Returns the number of nodes that conflict with a request.
    pub(super) fn count_conflicts(&mut self, range: GroupRange, access: Access) -> u32 {
        let mut count = 0;
        self.each_conflict(range, access, |_, _| count += 1);
        count
    }

    /// Returns whether a node conflicts with a request.
    pub(super) fn has_conflict(&mut self, range: GroupRange, access: Access) -> bool {
        self.search(range, access, |_, _| false)
    }

    /// Calls a function for every node that conflicts with a request, by its first group.
    pub(super) fn each_conflict(
        &mut self,
        range: GroupRange,
        access: Access,
        mut each: impl FnMut(u32, &mut Node),
    ) {
        self.search(range, access, |name, node| {
            each(name, node);
            true
        });
    }

    /// Visits the nodes that conflict with a request until `goes_on` returns false; returns whether it did.
    fn search(
        &mut self,
        range: GroupRange,
        access: Access,
        mut goes_on: impl FnMut(u32, &mut Node) -> bool,
    ) -> bool {
        let Tree { nodes, root, path, visits } = self;
        path.clear();
        path.push(*root);
        while let Some(name) = path.pop() {
            if name == NIL {
                continue;
            }
            *visits += 1;
            let node = &mut nodes[name];
            // Nothing in the subtree reaches the range.
            if node.ends.of_rivals(access) <= range.first.into() {
                continue;
            }
            // Ranges on the right begin no earlier than this one.
            if node.range.first <= range.last {
                path.push(node.child[1]);
            }
            path.push(node.child[0]);
            if node.conflicts(range, access) && !goes_on(name, node) {
                return true;
            }
        }
        false
    }

    fn update(&mut self, name: u32) {
        let Node { child: [left, right], .. } = self.nodes[name];
        let ends = self.nodes[name].own().and(self.nodes[left].ends).and(self.nodes[right].ends);
        self.nodes[name].ends = ends;
    }

    /// Updates the ends from a node to the root.
    fn update_up(&mut self, mut name: u32) {
        while name != NIL {
            self.visits += 1;
            self.update(name);
            name = self.nodes[name].parent;
        }
    }

    /// Returns which child of its parent a node is.
    fn side(&self, name: u32) -> usize {
        let parent = self.nodes[name].parent;
        usize::from(self.nodes[parent].child[1] == name)
    }

    /// Puts `new` in the place of `old` below its parent.
    fn replace(&mut self, old: u32, new: u32) {
        let parent = self.nodes[old].parent;
        if parent == NIL {
            self.root = new;
        } else {
            let side = self.side(old);
            self.nodes[parent].child[side] = new;
        }
        // Also for the leaf of all branches: removal climbs from it.
        self.nodes[new].parent = parent;
    }

    /// Rotates a node down to a side; its other child takes its place.
    fn rotate(&mut self, name: u32, side: usize) {
        let up = self.nodes[name].child[1 - side];
        let inner = self.nodes[up].child[side];
        self.nodes[name].child[1 - side] = inner;
        if inner != NIL {
            self.nodes[inner].parent = name;
        }
        self.replace(name, up);
        self.nodes[up].child[side] = name;
        self.nodes[name].parent = up;
        self.update(name);
        self.update(up);
    }

    /// Inserts a node and returns its name.
    pub(super) fn insert(&mut self, node: Node) -> u32 {
        let (mut parent, mut at, mut side) = (NIL, self.root, 0);
        while at != NIL {
            self.visits += 1;
            parent = at;
            side = usize::from(node.range.first >= self.nodes[at].range.first);
            at = self.nodes[at].child[side];
        }
        let name = self.nodes.insert(Node { parent, ..node });
        if parent == NIL {
            self.root = name;
        } else {
            self.nodes[parent].child[side] = name;
        }
        self.update_up(name);
        self.balance_inserted(name);
        name
    }

    fn balance_inserted(&mut self, mut name: u32) {
        while self.nodes[self.nodes[name].parent].is_red {
            let parent = self.nodes[name].parent;
            let grand = self.nodes[parent].parent;
            let side = self.side(parent);
            let uncle = self.nodes[grand].child[1 - side];
            if self.nodes[uncle].is_red {
                self.nodes[parent].is_red = false;
                self.nodes[uncle].is_red = false;
                self.nodes[grand].is_red = true;
                name = grand;
                continue;
            }
            if self.side(name) != side {
                name = parent;
                self.rotate(name, side);
            }
            let parent = self.nodes[name].parent;
            self.nodes[parent].is_red = false;
            self.nodes[grand].is_red = true;
            self.rotate(grand, 1 - side);
        }
        let root = self.root;
        self.nodes[root].is_red = false;
    }

    /// Removes a node and returns its range, access and arrival. Decrements `waiting` if the node waits.
    pub(super) fn remove(&mut self, name: u32, waiting: &mut u32) -> (GroupRange, Access, u64) {
        let node = self.nodes[name];
        *waiting -= u32::from(node.ahead > 0);
        let mut was_red = node.is_red;
        let (hole, changed);
        if let Some(side) = (0..2).find(|side| node.child[1 - side] == NIL) {
            hole = node.child[side];
            self.replace(name, hole);
            changed = node.parent;
        } else {
            // The next node by key takes its place; it has no left child.
            let mut next = node.child[1];
            while self.nodes[next].child[0] != NIL {
                self.visits += 1;
                next = self.nodes[next].child[0];
            }
            was_red = self.nodes[next].is_red;
            hole = self.nodes[next].child[1];
            if self.nodes[next].parent == name {
                self.nodes[hole].parent = next;
                changed = next;
            } else {
                changed = self.nodes[next].parent;
                self.replace(next, hole);
                let right = self.nodes[name].child[1];
                self.nodes[next].child[1] = right;
                self.nodes[right].parent = next;
            }
            self.replace(name, next);
            let left = self.nodes[name].child[0];
            self.nodes[next].child[0] = left;
            self.nodes[left].parent = next;
            self.nodes[next].is_red = node.is_red;
        }
        self.update_up(changed);
        if !was_red {
            self.balance_removed(hole);
        }
        self.nodes.remove(name);
        (node.range, node.access, node.arrival)
    }

    fn balance_removed(&mut self, mut name: u32) {
        while name != self.root && !self.nodes[name].is_red {
            let parent = self.nodes[name].parent;
            let side = usize::from(self.nodes[parent].child[1] == name);
            let mut brother = self.nodes[parent].child[1 - side];
            if self.nodes[brother].is_red {
                self.nodes[brother].is_red = false;
                self.nodes[parent].is_red = true;
                self.rotate(parent, side);
                brother = self.nodes[parent].child[1 - side];
            }
            let [near, far] = [side, 1 - side].map(|s| self.nodes[brother].child[s]);
            if !self.nodes[near].is_red && !self.nodes[far].is_red {
                self.nodes[brother].is_red = true;
                name = parent;
                continue;
            }
            if !self.nodes[far].is_red {
                self.nodes[near].is_red = false;
                self.nodes[brother].is_red = true;
                self.rotate(brother, 1 - side);
                brother = self.nodes[parent].child[1 - side];
            }
            self.nodes[brother].is_red = self.nodes[parent].is_red;
            self.nodes[parent].is_red = false;
            let far = self.nodes[brother].child[1 - side];
            self.nodes[far].is_red = false;
            self.rotate(parent, side);
            name = self.root;
        }
        self.nodes[name].is_red = false;
    }
}

#[cfg(test)]
impl Tree {
    /// Returns the number of node places ever used.
    pub(super) fn places(&self) -> usize {
        self.nodes.places()
    }

    /// Returns the number of nodes that a search can keep without new memory.
    pub(super) fn path_room(&self) -> usize {
        self.path.capacity()
    }

    /// Checks order, colours, heights and ends of a subtree; returns its black height and levels.
    fn check_below(&self, name: u32, parent: u32) -> (u32, u32) {
        if name == NIL {
            return (1, 0);
        }
        let node = &self.nodes[name];
        assert_eq!(node.parent, parent);
        let [left, right] = node.child;
        let [below_left, below_right] = node.child.map(|child| self.check_below(child, name));
        assert_eq!(below_left.0, below_right.0, "as many black nodes on every way");
        assert!(!node.is_red || !self.nodes[left].is_red && !self.nodes[right].is_red);
        assert!(left == NIL || self.nodes[left].range.first <= node.range.first);
        assert!(right == NIL || self.nodes[right].range.first >= node.range.first);
        assert_eq!(node.ends, node.own().and(self.nodes[left].ends).and(self.nodes[right].ends));
        (below_left.0 + u32::from(!node.is_red), below_left.1.max(below_right.1) + 1)
    }

    /// Checks all invariants; returns the number of levels.
    pub(super) fn check(&self) -> u32 {
        let nil = &self.nodes[NIL];
        assert!(!nil.is_red && nil.ends == Ends::default() && nil.child == [NIL; 2]);
        assert!(!self.nodes[self.root].is_red);
        self.check_below(self.root, NIL).1
    }
}
