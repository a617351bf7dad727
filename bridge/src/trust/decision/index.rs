//! Rules by the names that their patterns are about, so that those of other names cost next to nothing.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    tools::pattern,
    trust::rules::{Arguments, Condition, Declared, Kind, OnlyText, Rule, folded, may_turn},
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
    exact: HashMap<Box<str>, Bucket>,
    wild: Vec<(Wild, Bucket)>,
}

type ByText = HashMap<Box<str>, Vec<Arc<Rule>>>;

/// Rules of one pattern.
#[derive(Debug, Default)]
struct Bucket {
    all: Vec<Arc<Rule>>,
    /// Those that no single text decides.
    others: Vec<Arc<Rule>>,
    /// Those that need an argument to be a text, under its name and the text in the form in which texts are compared.
    by_text: HashMap<Box<str>, ByText>,
}

impl Patterns {
    pub(super) fn add(&mut self, rule: &Arc<Rule>) {
        for pattern in &rule.patterns {
            let bucket = match pattern.find(['*', '?']) {
                None => self.exact.entry(pattern.as_str().into()).or_default(),
                Some(first) => self.wild_bucket(pattern, first),
            };
            bucket.add(rule);
        }
    }

    fn wild_bucket(&mut self, pattern: &str, first: usize) -> &mut Bucket {
        let known = self.wild.iter().position(|(wild, _)| &*wild.pattern == pattern);
        let place = known.unwrap_or_else(|| {
            self.wild.push((Wild::read(pattern, first), Bucket::default()));
            self.wild.len() - 1
        });
        &mut self.wild[place].1
    }

    /// Those about this name.
    pub(super) fn naming<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Rule> {
        self.buckets(name).flat_map(|bucket| &bucket.all).map(AsRef::as_ref)
    }

    /// Those about this name that could mean these arguments; the rest differs for certain.
    pub(super) fn naming_with<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        declared: Declared<'a>,
    ) -> impl Iterator<Item = &'a Rule> {
        self.buckets(name)
            .flat_map(move |bucket| bucket.with(arguments, declared))
            .map(AsRef::as_ref)
    }

    fn buckets<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Bucket> {
        let wild = self.wild.iter().filter(move |(wild, _)| wild.matches(name));
        self.exact.get(name).into_iter().chain(wild.map(|(_, bucket)| bucket))
    }
}

impl Bucket {
    fn add(&mut self, rule: &Arc<Rule>) {
        self.all.push(Arc::clone(rule));
        match needed_text(&rule.arguments) {
            None => self.others.push(Arc::clone(rule)),
            Some((name, text)) => {
                let texts = self.by_text.entry(name.into()).or_default();
                texts.entry(folded(text).into()).or_default().push(Arc::clone(rule));
            }
        }
    }

    fn with<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        declared: Declared<'a>,
    ) -> impl Iterator<Item = &'a Arc<Rule>> {
        let by_text = self.by_text.iter().flat_map(move |(name, texts)| {
            let (some, all) = match declared.only_text(name, arguments) {
                OnlyText::This(text) => (texts.get(&*folded(text)), None),
                OnlyText::None => (None, None),
                OnlyText::Unsure => (None, Some(texts.values().flatten())),
            };
            some.into_iter().flatten().chain(all.into_iter().flatten())
        });
        self.others.iter().chain(by_text)
    }
}

/// An argument that has to be one text, which no other text is turned into.
fn needed_text(arguments: &Arguments) -> Option<(&str, &str)> {
    match arguments {
        Arguments::Any => None,
        Arguments::Each { conditions } => conditions.iter().find_map(|(name, condition)| match condition {
            Condition::Equals { value } => Some((name.as_str(), value.as_str().filter(|text| !may_turn(text))?)),
            Condition::Any
            | Condition::Absent
            | Condition::OneOf { .. }
            | Condition::Url { .. }
            | Condition::Inside { .. } => None,
        }),
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
