//! What a run came to, as a table and one last line.

use std::process::ExitCode;

use crate::plan::{Group, Plan, Scenario};

/// What one scenario came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    /// Checks for which nothing happened, such as those of messages that this revision does not have.
    pub(crate) skipped: usize,
    /// Why it did not pass; empty when it did.
    pub(crate) faults: Vec<String>,
    /// Everything that was printed, for one that did not.
    pub(crate) story: String,
}

impl Outcome {
    fn is_passed(&self) -> bool {
        self.faults.is_empty()
    }
}

/// One line as soon as it is known.
pub(crate) fn print_row(scenario: &Scenario, outcome: &Outcome) {
    let mark = if outcome.is_passed() { "✓" } else { "✗" };
    let group = match &scenario.group {
        Group::Revision(revision) => revision.as_str(),
        Group::Added => "added",
        Group::Extension => "extension",
    };
    let skipped = match outcome.skipped {
        0 => String::new(),
        some => format!(", {some} skipped"),
    };
    println!(
        "{mark} {group:<10}  {:<44} {:>3} checks{skipped}",
        scenario.name, outcome.passed
    );
    for fault in &outcome.faults {
        println!("    {fault}");
    }
}

/// How much was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// What was asked for; says nothing of the rest.
    Part,
}

/// What did not pass in full, what is not built, and the sum; fails unless everything that was to be run passed.
pub(crate) fn print_end(plan: &Plan, extent: Extent, outcomes: &[(&Scenario, Outcome)]) -> ExitCode {
    match extent {
        Extent::Whole => {
            for (name, why) in plan.not_built {
                println!("– {:<10}  {name:<44} not built: {why}", "extension");
            }
        }
        Extent::Part => println!("only a part was run"),
    }
    for (scenario, outcome) in outcomes.iter().filter(|(_, outcome)| !outcome.is_passed()) {
        println!("\n--- {} ---\n{}", scenario.name, outcome.story);
    }
    let passed = |group: &Group| {
        let of_group = outcomes.iter().filter(|(scenario, _)| scenario.group == *group);
        of_group.filter(|(_, outcome)| outcome.is_passed()).count()
    };
    let mut sums: Vec<_> = plan
        .revisions
        .iter()
        .map(|(revision, count)| format!("{revision} {}/{count}", passed(&Group::Revision(revision.clone()))))
        .collect();
    sums.push(format!("extensions {}/{}", passed(&Group::Extension), plan.extensions));
    println!("{}", sums.join(" · "));
    let were_run = match extent {
        Extent::Whole => outcomes.len() == plan.scenarios.len(),
        Extent::Part => !outcomes.is_empty(),
    };
    match were_run && outcomes.iter().all(|(_, outcome)| outcome.is_passed()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
