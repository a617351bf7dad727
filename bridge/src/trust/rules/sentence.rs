//! A rule in one sentence, for people.

use super::{Arguments, Condition, Effect, Kind, ProgramId, Rule, RuleCaller};

/// Named one by one up to here.
const NAMED: usize = 3;

impl Rule {
    /// Such as "Claude Code may use read_file of “Files”, whatever the arguments." `connector` and `client` are the names
    /// that people know them by; `client` is needed only of a rule for a paired client.
    pub fn sentence(&self, connector: &str, client: Option<&str>) -> String {
        let who = match &self.caller {
            RuleCaller::Anyone => "Any program on this computer".to_owned(),
            RuleCaller::Program { program } => program.short(),
            RuleCaller::Client { client: id } => {
                client.map_or_else(|| format!("The assistant {id}"), ToOwned::to_owned)
            }
        };
        let (may, whatever) = match self.effect {
            Effect::Allow => ("may", ", whatever the arguments"),
            Effect::Deny => ("may never", ""),
        };
        let what = match self.kind {
            Kind::Tools => format!("use {} of “{connector}”", self.subjects("tool")),
            Kind::Resources => format!("read {} of “{connector}”", self.subjects("resource")),
            Kind::Prompts => format!("get {} of “{connector}”", self.subjects("prompt")),
        };
        let how = match (&self.arguments, self.kind) {
            (Arguments::Any, Kind::Resources) => String::new(),
            (Arguments::Any, Kind::Tools | Kind::Prompts) => whatever.to_owned(),
            (Arguments::Each { conditions }, _) => {
                let said: Vec<_> = conditions
                    .iter()
                    .filter_map(|(name, condition)| condition.said(name))
                    .collect();
                match (said.is_empty(), self.effect) {
                    (true, Effect::Allow) => ", with any value of the arguments that it declares".to_owned(),
                    (true, Effect::Deny) => String::new(),
                    (false, Effect::Allow) => format!(", if {}", said.join(" and ")),
                    (false, Effect::Deny) => format!(", if {}, or that cannot be told for certain", said.join(" and ")),
                }
            }
        };
        format!("{who} {may} {what}{how}.")
    }

    fn subjects(&self, one: &str) -> String {
        if self.bound.len() > NAMED {
            return format!("{} {one}s", self.bound.len());
        }
        if !self.bound.is_empty() {
            let names: Vec<_> = self.bound.iter().map(|bound| bound.tool.as_str()).collect();
            return listed(&names);
        }
        if self.patterns.iter().any(|pattern| pattern == "*") {
            return match self.effect {
                Effect::Allow => format!("every {one}"),
                Effect::Deny => format!("any {one}"),
            };
        }
        let patterns: Vec<_> = self.patterns.iter().map(String::as_str).collect();
        match patterns.len() {
            0..=NAMED => listed(&patterns),
            many => format!("{many} {one}s"),
        }
    }
}

impl ProgramId {
    /// The name of its file, or of its script where it has one.
    pub fn short(&self) -> String {
        let path = self.script.as_deref().unwrap_or(&self.path);
        path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
    }
}

impl Condition {
    /// `None` where anything will do.
    fn said(&self, name: &str) -> Option<String> {
        Some(match self {
            Self::Any => return None,
            Self::Absent => format!("“{name}” is left out"),
            Self::Equals { value } => format!("“{name}” is {value}"),
            Self::OneOf { values } => {
                let values: Vec<_> = values.iter().map(ToString::to_string).collect();
                format!("“{name}” is one of {}", values.join(", "))
            }
            Self::Url { origin, path } if path.is_empty() => format!("“{name}” is an address at {origin}"),
            Self::Url { origin, path } => format!("“{name}” is an address below {origin}/{}", path.join("/")),
            Self::Inside { folder } => format!("“{name}” is in the folder {folder}"),
        })
    }
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
