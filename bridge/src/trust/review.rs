//! What the person approved of a connector's launch, and whether what its entry says now may run by it. Pure.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{LaunchIdentity, identity::expand_home};
use crate::{
    builtin,
    config::{Connector, Launch, StdioLaunch},
    ids::ConnectorId,
    ledger::Standing,
    snapshot::{LaunchShown, LaunchWhy},
    tools::pattern,
};

/// The last approved launch of one connector, as its row keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reviewed {
    pub identity: LaunchIdentity,
    /// Whether it was on when the person last decided, or has been turned off in the file since.
    pub enabled: bool,
    /// The patterns of tools that the person wants hidden.
    pub disabled_tools: Vec<String>,
    /// As it was shown, without values that are secret.
    pub shown: LaunchShown,
    /// Where its requests went, for what was entered for it.
    pub place: Place,
    /// The secrets that it named.
    pub secrets: Vec<String>,
    /// Unix milliseconds.
    pub approved_at: u64,
    pub by: ApprovedBy,
}

/// Where what was entered for a connector goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Place {
    /// To the program of this identity.
    Program,
    Address {
        /// Scheme, host and port.
        origin: String,
        /// The canonical address, for which sign-ins are.
        canonical: String,
    },
}

/// How it came to be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovedBy {
    /// The person looked at it.
    Review,
    /// The person wrote it here.
    Edit,
}

/// Whether an entry may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    MayRun,
    NeedsReview(LaunchWhy),
    /// Nobody can say at present what was approved.
    TrustUnknown,
}

/// Everything that decides whether an entry may run.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub entry: &'a Connector,
    /// Of what would run now.
    pub identity: LaunchIdentity,
    pub reviewed: Option<&'a Reviewed>,
    pub standing: Standing,
    /// Whether what runs needs a look first.
    pub review_on: bool,
    /// The person's home folder.
    pub home: &'a Path,
}

/// Whether it may run; of one that is turned off, whether it might.
pub fn judge(case: &Case<'_>) -> Verdict {
    if !case.review_on {
        return Verdict::MayRun;
    }
    let needs_none = is_compiled_in(&case.entry.launch, case.home);
    let is_known = match case.standing {
        Standing::Unknown(_) => false,
        Standing::Fresh | Standing::Verified | Standing::Broken(_) | Standing::ForThisRun => true,
    };
    match case.reviewed {
        _ if !is_known && needs_none => Verdict::MayRun,
        _ if !is_known => Verdict::TrustUnknown,
        Some(reviewed) if reviewed.identity == case.identity || needs_none => match reviewed.enabled {
            true => Verdict::MayRun,
            false => Verdict::NeedsReview(LaunchWhy::TurnedOn),
        },
        None if needs_none => Verdict::MayRun,
        None => Verdict::NeedsReview(LaunchWhy::New),
        Some(_) => Verdict::NeedsReview(LaunchWhy::Changed),
    }
}

/// The default connector on its own folder, which is part of this program. On another folder it is another launch.
pub fn is_compiled_in(launch: &Launch, home: &Path) -> bool {
    let Launch::Stdio(stdio) = launch else { return false };
    let folder = builtin::sandbox_path(home);
    builtin::is_files_server(launch)
        && stdio.args.len() == 2
        && Path::new(&expand_home(&stdio.args[1], home)) == folder
        && stdio.env.is_empty()
        && stdio.cwd.is_none()
        && stdio.env_file.is_none()
}

/// Whether two launches run the same command with the same arguments in the same folder, or contact the same address;
/// variables, headers and the sign-in may differ.
pub fn is_same_place(one: &Launch, other: &Launch, home: &Path) -> bool {
    match (one, other) {
        (Launch::Stdio(one), Launch::Stdio(other)) => {
            let args = |launch: &StdioLaunch| launch.args.iter().map(|arg| expand_home(arg, home)).collect::<Vec<_>>();
            let cwd = |launch: &StdioLaunch| launch.cwd.as_deref().map(|cwd| expand_home(cwd, home));
            one.command == other.command && args(one) == args(other) && cwd(one) == cwd(other)
        }
        (Launch::Http(one), Launch::Http(other)) => one.url == other.url,
        (Launch::Stdio(_), Launch::Http(_)) | (Launch::Http(_), Launch::Stdio(_)) => false,
    }
}

/// Which tools are hidden, and what the file alone would show again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hidden {
    /// The patterns in force.
    pub patterns: Vec<String>,
    /// Approved patterns that the file does not have any more.
    pub dropped: Vec<String>,
}

/// The file may hide more by itself; what it hides less waits for the person.
pub fn hidden(disabled_tools: &[String], reviewed: Option<&Reviewed>, review_on: bool) -> Hidden {
    let mut patterns = disabled_tools.to_vec();
    let kept = reviewed
        .filter(|_| review_on)
        .map_or(&[][..], |reviewed| &reviewed.disabled_tools);
    let dropped: Vec<String> = kept
        .iter()
        .filter(|kept| !covers(disabled_tools, kept))
        .cloned()
        .collect();
    patterns.extend(dropped.iter().cloned());
    Hidden { patterns, dropped }
}

/// Whether these patterns hide all that `pattern` does. Of two patterns with runs only equality is known.
fn covers(patterns: &[String], pattern: &str) -> bool {
    let is_name = !pattern.contains(['*', '?']);
    patterns
        .iter()
        .any(|other| other == pattern || other == "*" || (is_name && pattern::matches(other, pattern)))
}

/// The row as it has to be once the file turned something off by itself; `None` = as it is. So that turning it on again
/// is a wish of its own.
pub fn tightened(entry: &Connector, reviewed: &Reviewed) -> Option<Reviewed> {
    let mut next = reviewed.clone();
    next.enabled = reviewed.enabled && entry.enabled;
    let more = entry
        .disabled_tools
        .iter()
        .filter(|pattern| !reviewed.disabled_tools.contains(pattern));
    next.disabled_tools.extend(more.cloned());
    (next != *reviewed).then_some(next)
}

/// Names exactly this launch and the reason to look at it.
pub fn review_id(server: &ConnectorId, identity: &LaunchIdentity, why: &LaunchWhy) -> String {
    let (word, tools): (&str, &[String]) = match why {
        LaunchWhy::New => ("new", &[]),
        LaunchWhy::Changed => ("changed", &[]),
        LaunchWhy::TurnedOn => ("turned on", &[]),
        LaunchWhy::ToolsShown { tools } => ("tools shown", tools),
    };
    let mut digest = Sha256::new();
    let parts = [server.as_str().as_bytes(), identity.as_bytes(), word.as_bytes()];
    for part in parts.into_iter().chain(tools.iter().map(String::as_bytes)) {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    let digits: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{REVIEW_ID}{digits}")
}

/// Begins every id of a review, so that it is told from a question's.
pub const REVIEW_ID: &str = "launch-";

#[cfg(test)]
mod tests;
