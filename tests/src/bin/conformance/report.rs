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

/// What did not pass in full, what is not built, and the sum; fails unless everything passed.
pub(crate) fn print_end(plan: &Plan, outcomes: &[(&Scenario, Outcome)]) -> ExitCode {
    for (name, why) in plan.not_built {
        println!("– {:<10}  {name:<44} not built: {why}", "extension");
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
    let is_whole = outcomes.len() == plan.scenarios.len();
    match is_whole && outcomes.iter().all(|(_, outcome)| outcome.is_passed()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
