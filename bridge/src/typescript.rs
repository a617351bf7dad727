//! The declarations behind `ui/src/lib/bridge.ts`: one file, made from the types that cross to the window.

/// The whole file, in a fixed order.
#[cfg(test)]
pub(crate) fn declarations() -> String {
    use ts_rs::{Config, TS};

    use crate::{
        caller, catalog, error, settings, snapshot,
        trust::{rules, scan},
    };

    let config = Config::default();
    let mut out = String::from("// Generated from the bridge's types by `make types`; never edited by hand.\n");
    macro_rules! declare {
        ($($type:ty),* $(,)?) => {$(
            out.push_str("\nexport ");
            out.push_str(&<$type as TS>::decl(&config));
            out.push('\n');
        )*};
    }
    declare!(
        snapshot::Snapshot,
        snapshot::ApiView,
        snapshot::ConfigView,
        snapshot::Notice,
        snapshot::NoticeLevel,
        snapshot::Status,
        snapshot::TransportKind,
        snapshot::Era,
        snapshot::Readiness,
        snapshot::ConnectorView,
        snapshot::AuthView,
        snapshot::AuthState,
        snapshot::KeychainView,
        snapshot::KeptIn,
        snapshot::KeychainState,
        snapshot::SignInView,
        snapshot::SignInStage,
        snapshot::RedirectKind,
        snapshot::SignInOutcome,
        snapshot::ApprovalView,
        snapshot::ApprovalState,
        snapshot::Question,
        snapshot::Elicitation,
        snapshot::CallQuestion,
        snapshot::FileWrite,
        snapshot::AskedSubject,
        snapshot::ArgumentView,
        snapshot::ChangeQuestion,
        snapshot::Need,
        snapshot::Reviews,
        snapshot::LaunchReview,
        snapshot::LaunchWhy,
        snapshot::EntryOrigin,
        snapshot::LaunchShown,
        snapshot::Given,
        snapshot::StandsOut,
        snapshot::ToolsReview,
        snapshot::ToolReview,
        snapshot::ToolState,
        snapshot::ToolText,
        snapshot::PromptReview,
        snapshot::PromptText,
        snapshot::PromptArgument,
        snapshot::TextReview,
        snapshot::FindingView,
        snapshot::RuleProposal,
        snapshot::WhoView,
        snapshot::WhoKind,
        snapshot::ProgramView,
        snapshot::TrustView,
        snapshot::TrustStanding,
        snapshot::ApiMode,
        snapshot::RuleView,
        snapshot::RuleSaid,
        snapshot::RuleSleep,
        snapshot::SleepingRules,
        snapshot::WalkInPolicy,
        snapshot::PairingView,
        snapshot::PairingRequest,
        snapshot::ClientView,
        snapshot::AskerView,
        snapshot::MutedView,
        snapshot::PausedView,
        caller::Scope,
        snapshot::ActivityEntry,
        snapshot::ActivityWho,
        snapshot::ActivityCaller,
        snapshot::ActivityWhat,
        snapshot::Arguments,
        snapshot::ActivityQuestion,
        snapshot::ActivityReview,
        snapshot::ActivityChange,
        snapshot::ActivityOutcome,
        snapshot::AllowedBy,
        snapshot::PersonAnswer,
        snapshot::StandingPolicy,
        snapshot::ActivityFilter,
        snapshot::ActivityKind,
        snapshot::ActivityPage,
        snapshot::ActivityDay,
        snapshot::RuleUse,
        snapshot::ActivityExport,
        snapshot::ExportFormat,
        snapshot::ConnectionView,
        snapshot::RetryView,
        snapshot::ConnectorDetail,
        snapshot::SecretView,
        snapshot::LogPage,
        snapshot::ToolView,
        snapshot::ToolHints,
        snapshot::RejectedTool,
        snapshot::CallAnswer,
        scan::Finding,
        scan::FindingKind,
        scan::Piece,
        error::Code,
        error::Action,
        error::ApiError,
        catalog::paste::Paste,
        catalog::paste::Proposal,
        settings::Theme,
        rules::Rule,
        rules::RuleDraft,
        rules::Effect,
        rules::Kind,
        rules::Arguments,
        rules::Condition,
        rules::RuleCaller,
        rules::ProgramId,
        rules::Lasts,
        rules::Origin,
        rules::Bound,
        rules::Choice,
        rules::FileValue,
        rules::Proposal,
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `make types` sets `UPDATE_TYPES` to write the file instead.
    #[test]
    fn the_windows_types_are_those_of_the_bridge() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../ui/src/lib/bridge.ts");
        let made = declarations();
        if std::env::var_os("UPDATE_TYPES").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == made, "ui/src/lib/bridge.ts is stale; run `make types`");
    }
}
