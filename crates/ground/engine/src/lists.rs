//! Waiting lists that share one table.

use crate::Slab;

/// End of a list.
const END: u32 = u32::MAX;

/// A list of [`Lists`]: its owner keeps it, and gives it to every call. It belongs to the lists that it was first pushed to. A
/// copy is good until the list or another copy of it changes.
#[derive(Clone, Copy, Debug)]
pub struct List {
    first: u32,
    /// Without meaning if there is no first one.
    last: u32,
}

impl Default for List {
    #[inline]
    fn default() -> Self {
        List::EMPTY
    }
}

impl List {
    /// Nobody waits.
    pub const EMPTY: List = List { first: END, last: END };

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == END
    }

    /// Takes the whole list; what its owner has is empty afterwards. Who is served may so wait again, and is not served twice.
    #[inline]
    pub fn take(&mut self) -> List {
        std::mem::take(self)
    }
}

/// Any number of lists, first in first out, whose items lie in one slab: those who wait for one of many things. Nothing is allocated
/// once as many items have waited at the same time as ever will.
#[derive(Clone, Debug)]
pub struct Lists<T> {
    /// Each item with the name of the next one.
    items: Slab<(T, u32)>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists { items: Slab::default() }
    }
}

impl<T: Copy> Lists<T> {
    /// An item joins a list, behind the others.
    ///
    /// # Panics
    /// If 2^32 - 1 items wait.
    #[inline]
    pub fn push(&mut self, list: &mut List, item: T) {
        let name = self.items.insert((item, END));
        if list.is_empty() {
            list.first = name;
        } else {
            self.items[list.last].1 = name;
        }
        list.last = name;
    }

    /// The first item leaves a list.
    #[inline]
    pub fn pop(&mut self, list: &mut List) -> Option<T> {
        if list.is_empty() {
            return None;
        }
        let (item, next) = self.items[list.first];
        self.items.remove(list.first);
        list.first = next;
        Some(item)
    }

    /// The items of a list, in the order in which they came.
    pub fn iter(&self, list: &List) -> impl Iterator<Item = &T> {
        let mut next = list.first;
        std::iter::from_fn(move || {
            if next == END {
                return None;
            }
            let (item, behind) = &self.items[next];
            next = *behind;
            Some(item)
        })
    }

    /// Items of all lists together.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no list has an item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{List, Lists};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn lists_that_share_a_table_keep_their_order() {
        let (mut lists, mut a, mut b) = (Lists::default(), List::EMPTY, List::EMPTY);
        lists.push(&mut a, 1);
        lists.push(&mut b, 2);
        lists.push(&mut a, 3);
        assert_eq!(lists.iter(&a).collect::<Vec<_>>(), [&1, &3]);
        assert_eq!((lists.pop(&mut a), lists.pop(&mut a), lists.pop(&mut a)), (Some(1), Some(3), None));
        assert_eq!((a.is_empty(), b.is_empty(), lists.len()), (true, false, 1));
        lists.push(&mut a, 4);
        assert_eq!((lists.pop(&mut b), lists.pop(&mut a), lists.is_empty()), (Some(2), Some(4), true));
    }

    #[test]
    fn who_waits_again_while_a_taken_list_is_served_waits_for_the_next_time() {
        let (mut lists, mut list) = (Lists::default(), List::EMPTY);
        lists.push(&mut list, 1);
        lists.push(&mut list, 2);
        let mut taken = list.take();
        let mut served = Vec::new();
        while let Some(item) = lists.pop(&mut taken) {
            served.push(item);
            lists.push(&mut list, item + 10);
        }
        assert_eq!((served, lists.len()), (vec![1, 2], 2));
        assert_eq!(lists.iter(&list).collect::<Vec<_>>(), [&11, &12]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Pop(usize),
        /// All of a list goes to the end of another one.
        Drain(usize, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..5usize).prop_map(Step::Push),
            3 => (0..5usize).prop_map(Step::Pop),
            1 => (0..5usize, 0..5usize).prop_map(|(from, to)| Step::Drain(from, to)),
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn like_a_queue_for_each(steps in steps()) {
            let mut lists = Lists::default();
            let mut own = [List::EMPTY; 5];
            let mut queues = vec![VecDeque::new(); 5];
            let mut most = 0;
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(at) => {
                        lists.push(&mut own[at], number);
                        queues[at].push_back(number);
                    }
                    Step::Pop(at) => prop_assert_eq!(lists.pop(&mut own[at]), queues[at].pop_front()),
                    Step::Drain(from, to) => {
                        let mut taken = own[from].take();
                        while let Some(item) = lists.pop(&mut taken) {
                            lists.push(&mut own[to], item);
                        }
                        let moved = std::mem::take(&mut queues[from]);
                        queues[to].extend(moved);
                    }
                }
                let all: usize = queues.iter().map(VecDeque::len).sum();
                most = most.max(all);
                prop_assert_eq!((lists.len(), lists.is_empty()), (all, all == 0));
                for (list, queue) in own.iter().zip(&queues) {
                    prop_assert_eq!(list.is_empty(), queue.is_empty());
                    prop_assert!(lists.iter(list).eq(queue));
                }
                prop_assert_eq!(lists.items.places(), most, "places are used again");
            }
        }
    }
}
