//! Who makes way where all places are taken: nobody's many keep out another's first. Pure; what a place is for is its
//! owner's to know.

/// In whose name a place is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share<K> {
    /// Who is counted as one.
    pub group: K,
    /// Whom it might as well be: groups of one kin cost nothing to tell from another.
    pub kin: K,
}

/// Which of the places, the oldest first, makes way for `newcomer`: the latest of whoever holds most. `None` where the
/// newcomer holds one, or nobody holds so many more that giving one up is fair. A group's only place is taken for one of
/// another kin alone where its kin holds more than half of all: fewer may be programs that only share an interpreter.
pub fn makes_way<K: PartialEq>(held: &[Share<K>], newcomer: &Share<K>) -> Option<usize> {
    let of_group = |group: &K| held.iter().filter(|share| share.group == *group).count();
    let of_kin = |kin: &K| held.iter().filter(|share| share.kin == *kin).count();
    if of_group(&newcomer.group) > 0 {
        return None;
    }
    let own = of_kin(&newcomer.kin);
    let has_too_many = |share: &Share<K>| match share.kin == newcomer.kin {
        true => of_group(&share.group) > 1,
        false => {
            let of_its_kin = of_kin(&share.kin);
            of_its_kin > own + 1 && (of_group(&share.group) > 1 || of_its_kin > held.len() / 2)
        }
    };
    let candidates = held.iter().enumerate().filter(|(_, share)| has_too_many(share));
    candidates
        .max_by_key(|(at, share)| (of_kin(&share.kin), of_group(&share.group), *at))
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(kin: &'static str, group: &'static str) -> Share<&'static str> {
        Share { group, kin }
    }

    #[test]
    fn the_latest_of_whoever_holds_most_makes_way_for_somebodys_first() {
        let held = [share("a", "a"), share("b", "b"), share("b", "b"), share("c", "c")];
        assert_eq!(makes_way(&held, &share("d", "d")), Some(2));
        assert_eq!(makes_way(&held, &share("a", "a")), None, "it holds one");
    }

    #[test]
    fn where_each_holds_one_nobody_makes_way() {
        let held = [share("a", "a"), share("b", "b"), share("c", "c")];
        assert_eq!(makes_way(&held, &share("d", "d")), None);
    }

    #[test]
    fn two_programs_that_share_an_interpreter_keep_their_only_places() {
        let others = ["a", "b", "c", "d"];
        let mut held = vec![share("py", "1.py"), share("py", "2.py")];
        held.extend(others.map(|other| share(other, other)));
        assert_eq!(makes_way(&held, &share("e", "e")), None);
        held.push(share("py", "2.py"));
        assert_eq!(makes_way(&held, &share("e", "e")), Some(6), "one of two goes");
    }

    #[test]
    fn many_scripts_of_one_interpreter_count_together_against_another_program() {
        let held = [
            share("py", "1.py"),
            share("node", "x"),
            share("py", "2.py"),
            share("py", "3.py"),
        ];
        assert_eq!(makes_way(&held, &share("agent", "agent")), Some(3));
        assert_eq!(
            makes_way(&held, &share("py", "4.py")),
            None,
            "its own kin has no more to give"
        );
        let held = [share("py", "1.py"), share("py", "2.py"), share("py", "2.py")];
        assert_eq!(makes_way(&held, &share("py", "4.py")), Some(2));
    }
}
