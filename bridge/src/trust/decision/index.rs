//! Rules by the names that their patterns are about, so that those of other names cost next to nothing.

use std::{collections::HashMap, sync::Arc};

use crate::{
    tools::pattern,
    trust::rules::{Kind, Rule},
};

/// One of each kind.
#[derive(Debug, Default)]
pub(super) struct PerKind<T> {
    tools: T,
    resources: T,
    prompts: T,
}

impl<T> PerKind<T> {
    pub(super) fn of(&self, kind: Kind) -> &T {
        match kind {
            Kind::Tools => &self.tools,
            Kind::Resources => &self.resources,
            Kind::Prompts => &self.prompts,
        }
    }

    pub(super) fn of_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Tools => &mut self.tools,
            Kind::Resources => &mut self.resources,
            Kind::Prompts => &mut self.prompts,
        }
    }
}

/// Rules under their patterns; one with several patterns may be met more than once.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    exact: HashMap<Box<str>, Vec<Arc<Rule>>>,
    wild: Vec<(Wild, Arc<Rule>)>,
}

impl Patterns {
    pub(super) fn add(&mut self, rule: &Arc<Rule>) {
        for pattern in &rule.patterns {
            match pattern.find(['*', '?']) {
                None => {
                    let rules = self.exact.entry(pattern.as_str().into()).or_default();
                    rules.push(Arc::clone(rule));
                }
                Some(first) => self.wild.push((Wild::read(pattern, first), Arc::clone(rule))),
            }
        }
    }

    pub(super) fn naming<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Rule> {
        let exact = self.exact.get(name).into_iter().flatten();
        let wild = self.wild.iter().filter(move |(wild, _)| wild.matches(name));
        exact.chain(wild.map(|(_, rule)| rule)).map(AsRef::as_ref)
    }
}

/// A pattern with a sign in it that is none of the name's.
#[derive(Debug)]
struct Wild {
    pattern: Box<str>,
    /// Bytes before the first sign, and after the last.
    prefix: usize,
    suffix: usize,
    /// Whether there is one sign and it is `*`: prefix and suffix are all there is to compare.
    is_one_run: bool,
}

impl Wild {
    fn read(pattern: &str, first: usize) -> Self {
        let last = pattern.rfind(['*', '?']).unwrap_or(first);
        Self {
            pattern: pattern.into(),
            prefix: first,
            suffix: pattern.len() - last - 1,
            is_one_run: first == last && pattern.as_bytes().get(first) == Some(&b'*'),
        }
    }

    fn matches(&self, name: &str) -> bool {
        let (pattern, given) = (self.pattern.as_bytes(), name.as_bytes());
        given.len() >= self.prefix + self.suffix
            && given.starts_with(&pattern[..self.prefix])
            && given.ends_with(&pattern[pattern.len() - self.suffix..])
            && (self.is_one_run || pattern::matches(&self.pattern, name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_prepared_pattern_says_what_the_pattern_says(pattern in "[abß*?]{0,8}", name in "[abß]{0,10}") {
            if let Some(first) = pattern.find(['*', '?']) {
                prop_assert_eq!(Wild::read(&pattern, first).matches(&name), pattern::matches(&pattern, &name));
            }
        }
    }
}
