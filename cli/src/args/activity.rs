//! What `activity` is asked for.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ActivityArgs {
    /// Only about this connector
    #[arg(long, value_name = "ID")]
    pub(crate) server: Option<String>,
    /// Only what was done by
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) caller: Option<ByWhom>,
    /// Only what ended so
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) outcome: Option<Ended>,
    /// Only this kind
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Option<Happened>,
    /// Only the last while, such as 30m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = a_while)]
    pub(crate) since: Option<Duration>,
    /// Only what has this text in its names, addresses, arguments or codes
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// How many of the last entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) lines: u32,
    /// Go on showing new entries until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Write everything that fits to a new file: jsonl or csv, and its name
    #[arg(long, num_args = 2, value_names = ["FORMAT", "FILE"], conflicts_with = "follow")]
    export: Option<Vec<String>>,
}

/// Where an export goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportTo {
    /// `jsonl` or `csv`
    pub(crate) format: String,
    /// `-` is standard output.
    pub(crate) file: PathBuf,
}

impl ActivityArgs {
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub(crate) fn export_to(&self) -> Result<Option<ExportTo>, String> {
        match self.export.as_deref() {
            None => Ok(None),
            Some([format, file]) if matches!(format.as_str(), "jsonl" | "csv") => Ok(Some(ExportTo {
                format: format.clone(),
                file: file.into(),
            })),
            Some(_) => Err("--export needs a format, jsonl or csv, and the name of a file.".to_owned()),
        }
    }
}

/// Whose doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByWhom {
    /// Yourself, in the window or here
    Owner,
    /// A program without a token
    WalkIn,
    /// A paired assistant
    Client,
    /// Nobody: a connector, the file, the clock
    Itself,
}

impl ByWhom {
    /// As the API spells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::WalkIn => "walk_in",
            Self::Client => "client",
            Self::Itself => "itself",
        }
    }
}

/// How something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ended {
    Ok,
    Failed,
    Denied,
    Cancelled,
}

impl Ended {
    /// As the API spells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Happened {
    Call,
    Read,
    Prompt,
    Question,
    SignIn,
    SignOut,
    Review,
    Change,
    Lost,
}

impl Happened {
    /// As the API spells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Read => "read",
            Self::Prompt => "prompt",
            Self::Question => "question",
            Self::SignIn => "sign_in",
            Self::SignOut => "sign_out",
            Self::Review => "review",
            Self::Change => "change",
            Self::Lost => "lost",
        }
    }
}

/// `30m`, `12h`, `7d`.
fn a_while(text: &str) -> Result<Duration, String> {
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        Some(_) | None => 0,
    };
    let number = text
        .get(..text.len().saturating_sub(1))
        .and_then(|number| number.parse::<u32>().ok());
    match number {
        // Ten years.
        Some(number) if unit > 0 && u64::from(number) * unit <= 10 * 366 * 24 * 3600 => {
            Ok(Duration::from_secs(u64::from(number) * unit))
        }
        Some(_) | None => Err("give a time such as 30m, 12h or 7d".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_while_is_a_number_with_its_unit() {
        for (text, seconds) in [("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("0m", 0)] {
            assert_eq!(a_while(text), Ok(Duration::from_secs(seconds)));
        }
        for bad in ["", "7", "d", "-1h", "1.5h", "7w", "99999999d", "ü"] {
            assert!(a_while(bad).is_err(), "{bad}");
        }
    }
}
