//! Who runs and who waits. Pure.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

use indexmap::IndexMap;

/// One call that asks for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Ticket(pub u64);

/// What becomes of a call that asks for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Now,
    Waits {
        /// A waiting call of whoever had most of them, which has lost its turn.
        makes_way: Option<Ticket>,
    },
    Refused,
}

/// Running and waiting calls by caller.
#[derive(Debug)]
pub(super) struct Book<K> {
    most_of_one: usize,
    most: usize,
    most_waiting: usize,
    running: usize,
    running_of: HashMap<K, usize>,
    /// The first caller is the next whose turn it is. No queue is empty.
    waiting: IndexMap<K, VecDeque<Ticket>>,
    waiting_calls: usize,
}

impl<K: Clone + Eq + Hash> Book<K> {
    pub(super) fn new(most_of_one: usize, most: usize, most_waiting: usize) -> Self {
        Self {
            most_of_one,
            most,
            most_waiting,
            running: 0,
            running_of: HashMap::new(),
            waiting: IndexMap::new(),
            waiting_calls: 0,
        }
    }

    pub(super) fn running_of(&self, caller: &K) -> usize {
        self.running_of.get(caller).copied().unwrap_or(0)
    }

    /// A call asks for a place.
    pub(super) fn enter(&mut self, caller: &K, ticket: Ticket) -> Entry {
        // Whoever waits has a full share, or all places are taken: nobody is passed by.
        if self.has_room_for(caller) {
            self.force(caller);
            return Entry::Now;
        }
        let makes_way = if self.waiting_calls < self.most_waiting {
            None
        } else {
            match self.make_way_for(caller) {
                Some(ticket) => Some(ticket),
                None => return Entry::Refused,
            }
        };
        self.waiting.entry(caller.clone()).or_default().push_back(ticket);
        self.waiting_calls += 1;
        Entry::Waits { makes_way }
    }

    /// A call runs, whatever the limits say.
    pub(super) fn force(&mut self, caller: &K) {
        self.running += 1;
        *self.running_of.entry(caller.clone()).or_default() += 1;
    }

    /// A running call of this caller has ended.
    pub(super) fn leave(&mut self, caller: &K) {
        if let Some(running) = self.running_of.get_mut(caller) {
            *running -= 1;
            if *running == 0 {
                self.running_of.remove(caller);
            }
            self.running -= 1;
        }
    }

    /// The waiting call whose turn it is, now running. `None` = there is no place for anybody who waits.
    pub(super) fn next(&mut self) -> Option<Ticket> {
        let at = self.waiting.keys().position(|caller| self.has_room_for(caller))?;
        let (caller, mut queue) = self.waiting.shift_remove_index(at)?;
        let ticket = queue.pop_front()?;
        self.waiting_calls -= 1;
        self.force(&caller);
        if !queue.is_empty() {
            // Behind all others.
            self.waiting.insert(caller, queue);
        }
        Some(ticket)
    }

    /// A call does not wait any more. One that does not is no error.
    pub(super) fn give_up(&mut self, caller: &K, ticket: Ticket) {
        let Some(queue) = self.waiting.get_mut(caller) else {
            return;
        };
        let before = queue.len();
        queue.retain(|waiting| *waiting != ticket);
        self.waiting_calls -= before - queue.len();
        if queue.is_empty() {
            self.waiting.shift_remove(caller);
        }
    }

    fn has_room_for(&self, caller: &K) -> bool {
        self.running < self.most && self.running_of(caller) < self.most_of_one
    }

    /// Takes the last call of whoever has most waiting, if that is more than this caller would have then.
    fn make_way_for(&mut self, caller: &K) -> Option<Ticket> {
        let own = self.waiting.get(caller).map_or(0, VecDeque::len);
        let (longest, queue) = self.waiting.iter_mut().max_by_key(|(_, queue)| queue.len())?;
        if longest == caller || queue.len() <= own + 1 {
            return None;
        }
        let ticket = queue.pop_back()?;
        self.waiting_calls -= 1;
        Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Entry = Entry::Waits { makes_way: None };

    /// Lets callers ask one after the other; tickets count from 0.
    fn asked(book: &mut Book<char>, callers: &str) -> Vec<Entry> {
        let asked = callers.chars().zip(0..);
        asked
            .map(|(caller, ticket)| book.enter(&caller, Ticket(ticket)))
            .collect()
    }

    #[test]
    fn a_caller_with_a_full_share_waits_while_others_run() {
        let mut book = Book::new(2, 4, 8);
        assert_eq!(
            asked(&mut book, "aaabbc"),
            [Entry::Now, Entry::Now, WAITS, Entry::Now, Entry::Now, WAITS]
        );
        book.leave(&'b');
        assert_eq!(book.next(), Some(Ticket(5)), "a has its share, so c comes first");
        assert_eq!(book.next(), None);
        book.leave(&'a');
        assert_eq!(book.next(), Some(Ticket(2)));
    }

    #[test]
    fn callers_take_turns_however_many_calls_each_has_waiting() {
        let mut book = Book::new(9, 1, 9);
        asked(&mut book, "xaaabbc");
        let mut order = Vec::new();
        let mut running = 'x';
        for _ in 0..6 {
            book.leave(&running);
            let ticket = book.next().unwrap();
            running = "xaaabbc".chars().nth(usize::try_from(ticket.0).unwrap()).unwrap();
            order.push(running);
        }
        assert_eq!(order.iter().collect::<String>(), "abcaba");
    }

    #[test]
    fn a_full_queue_makes_way_for_those_who_have_less_in_it() {
        let mut book = Book::new(9, 1, 4);
        asked(&mut book, "xaaaa");
        assert_eq!(book.enter(&'a', Ticket(10)), Entry::Refused);
        let way = |ticket| Entry::Waits {
            makes_way: Some(Ticket(ticket)),
        };
        assert_eq!(book.enter(&'b', Ticket(11)), way(4));
        assert_eq!(book.enter(&'b', Ticket(12)), way(3));
        assert_eq!(book.enter(&'b', Ticket(13)), Entry::Refused);
        assert_eq!(book.enter(&'c', Ticket(14)), way(12));
    }

    #[test]
    fn who_gives_up_leaves_its_place_in_the_queue_and_nothing_goes_wrong_twice() {
        let mut book = Book::new(9, 1, 2);
        asked(&mut book, "xaa");
        book.give_up(&'a', Ticket(1));
        book.give_up(&'a', Ticket(1));
        book.give_up(&'z', Ticket(1));
        assert_eq!(book.enter(&'b', Ticket(9)), WAITS);
        book.leave(&'z');
        assert_eq!(book.next(), None);
        book.leave(&'x');
        assert_eq!(book.next(), Some(Ticket(2)));
        book.force(&'b');
        assert_eq!((book.running, book.running_of(&'b')), (2, 1));
    }
}
