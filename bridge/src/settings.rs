//! `connect/settings.json`: what the person chose about the app itself. Decides no trust.

use std::{fs, io, path::Path, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use crate::{
    activity::{Keep, KeepArguments},
    config::replace_file_atomically,
    connector::{DEFAULT_PING_EVERY, Policy},
    snapshot::{Notice, NoticeLevel},
};

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: usize = 64 * 1024;

/// Everything in the file. A member that is missing or unusable has its default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Loopback port; `None` = the default port.
    pub port: Option<u16>,
    pub theme: Theme,
    pub retry: Retry,
    /// How often a session that may fall silent unnoticed is asked whether it lives; 100 ms to 1 h.
    pub ping_every: PingEvery,
    /// What is kept of what happens, and for how long.
    pub activity: Keep,
    /// The file's object as read, so that members this version does not know survive a save.
    file: Map<String, Value>,
    /// The file could not be read; a save keeps it under another name.
    damaged: bool,
}

/// What `"retry"` says: `{"baseMs": 1000, "capMs": 60000, "retries": 5}`, each member optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// A policy that can be followed; the default where nothing is said.
    Policy(Policy),
    /// What is written cannot be followed, and nobody knows what was meant: no other policy takes its place.
    Refused,
}

impl Default for Retry {
    fn default() -> Self {
        Self::Policy(Policy::default())
    }
}

/// A time between health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingEvery(pub Duration);

impl Default for PingEvery {
    fn default() -> Self {
        Self(DEFAULT_PING_EVERY)
    }
}

/// Colours of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Theme {
    /// As the desktop.
    #[default]
    System,
    Light,
    Dark,
}

impl Settings {
    /// Reads the file; a missing one gives the defaults. Never fails: what cannot be used is said in the notices and
    /// stays on disk.
    pub fn load(path: &Path) -> (Self, Vec<Notice>) {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (Self::default(), Vec::new()),
            Err(error) => return Self::damaged(path, &error.to_string()),
        };
        if bytes.len() > MAX_FILE_BYTES {
            return Self::damaged(path, "it is larger than 64 KiB");
        }
        let file =
            match serde_json::from_slice::<Map<String, Value>>(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)) {
                Ok(file) => file,
                Err(error) => return Self::damaged(path, &error.to_string()),
            };
        let mut notices = Vec::new();
        let port = member(
            path,
            &file,
            "port",
            "a whole number from 1 to 65535",
            &mut notices,
            |value| {
                value
                    .as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .filter(|port| *port != 0)
            },
        );
        let theme = member(
            path,
            &file,
            "theme",
            "\"system\", \"light\" or \"dark\"",
            &mut notices,
            |value| Theme::deserialize(value).ok(),
        );
        let ping_every = member(
            path,
            &file,
            "pingEveryMs",
            "a whole number from 100 to 3600000",
            &mut notices,
            |value| value.as_u64().filter(|ms| (100..=3_600_000).contains(ms)),
        );
        let activity = member(
            path,
            &file,
            "activity",
            "{\"arguments\": \"shape\" or \"full\", \"days\": a whole number from 1 to 365}",
            &mut notices,
            read_keep,
        );
        let retry = match file.get("retry").map(read_policy) {
            None => Retry::default(),
            Some(Ok(policy)) => Retry::Policy(policy),
            Some(Err(why)) => {
                notices.push(refused_policy(path, &why));
                Retry::Refused
            }
        };
        let settings = Self {
            port,
            theme: theme.unwrap_or_default(),
            retry,
            ping_every: ping_every.map_or_else(PingEvery::default, |ms| PingEvery(Duration::from_millis(ms))),
            activity: activity.unwrap_or_default(),
            file,
            damaged: false,
        };
        (settings, notices)
    }

    /// Saves everything, whole. A file that could not be read is kept as `<name>.bak`.
    ///
    /// # Errors
    /// Of the step that failed; the old file stays.
    pub fn save(&mut self, path: &Path) -> io::Result<()> {
        if self.damaged
            && let Ok(old) = fs::read(path)
        {
            replace_file_atomically(&path.with_extension("json.bak"), &old)?;
        }
        let mut file = self.file.clone();
        match self.port {
            Some(port) => {
                file.insert("port".to_owned(), port.into());
            }
            None => {
                file.shift_remove("port");
            }
        }
        file.insert("theme".to_owned(), serde_json::to_value(self.theme)?);
        let mut text = serde_json::to_string_pretty(&file)?;
        text.push('\n');
        replace_file_atomically(path, text.as_bytes())?;
        (self.file, self.damaged) = (file, false);
        Ok(())
    }

    fn damaged(path: &Path, why: &str) -> (Self, Vec<Notice>) {
        let message = format!(
            "{} cannot be read ({why}); the default settings apply until it is corrected or changed in the window.",
            path.display()
        );
        (
            Self {
                damaged: true,
                ..Self::default()
            },
            vec![warning(message)],
        )
    }
}

fn read_keep(value: &Value) -> Option<Keep> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Wanted {
        Shape,
        Full,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        arguments: Option<Wanted>,
        days: Option<u32>,
    }
    let written = Written::deserialize(value).ok()?;
    let usual = Keep::default();
    let days = written.days.unwrap_or(usual.days);
    (1..=365).contains(&days).then_some(Keep {
        arguments: match written.arguments {
            Some(Wanted::Full) => KeepArguments::Full,
            Some(Wanted::Shape) => KeepArguments::Shape,
            None => usual.arguments,
        },
        days,
    })
}

/// Bounds that keep an episode from being a storm, or from never coming back.
fn read_policy(value: &Value) -> Result<Policy, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Written {
        base_ms: Option<u64>,
        cap_ms: Option<u64>,
        retries: Option<u32>,
    }
    let written = Written::deserialize(value).map_err(|error| error.to_string())?;
    let usual = Policy::default();
    let time = |ms: Option<u64>, usual| ms.map_or(usual, Duration::from_millis);
    let policy = Policy {
        base: time(written.base_ms, usual.base),
        cap: time(written.cap_ms, usual.cap),
        retries: written.retries.unwrap_or(usual.retries),
    };
    if !(100..=60_000).contains(&policy.base.as_millis()) {
        return Err("\"baseMs\" must be from 100 to 60000".to_owned());
    }
    if policy.cap < policy.base || policy.cap > Duration::from_secs(3600) {
        return Err("\"capMs\" must be from \"baseMs\" to 3600000".to_owned());
    }
    if policy.retries > 20 {
        return Err("\"retries\" must be from 0 to 20".to_owned());
    }
    Ok(policy)
}

fn refused_policy(path: &Path, why: &str) -> Notice {
    Notice {
        level: NoticeLevel::Error,
        ..warning(format!(
            "In {}, \"retry\" is refused: {why}. What held before goes on; after a start, nothing is tried again by itself until it is corrected.",
            path.display()
        ))
    }
}

fn member<T>(
    path: &Path,
    file: &Map<String, Value>,
    name: &str,
    wanted: &str,
    notices: &mut Vec<Notice>,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let value = file.get(name)?;
    let read = read(value);
    if read.is_none() {
        notices.push(warning(format!(
            "In {}, \"{name}\" must be {wanted}; its default applies until it is corrected.",
            path.display()
        )));
    }
    read
}

fn warning(message: String) -> Notice {
    Notice {
        level: NoticeLevel::Warning,
        message,
        line: None,
        column: None,
        server: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn what_is_saved_is_read_again_and_unknown_members_survive() {
        let (_folder, path) = file("{\"later\": {\"x\": 1.10}, \"theme\": \"dark\", \"port\": 7772}");
        let (mut settings, notices) = Settings::load(&path);
        assert_eq!(
            (settings.port, settings.theme, notices.len()),
            (Some(7772), Theme::Dark, 0)
        );
        settings.port = None;
        settings.theme = Theme::Light;
        settings.save(&path).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("\"x\": 1.10"));
        assert_eq!(Settings::load(&path), (settings, vec![]));
    }

    #[test]
    fn no_file_means_defaults_without_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let (mut settings, notices) = Settings::load(&folder.path().join("settings.json"));
        assert_eq!((settings.clone(), notices.len()), (Settings::default(), 0));
        settings.save(&folder.path().join("settings.json")).unwrap();
    }

    #[test]
    fn one_bad_member_costs_only_its_own_default() {
        for bad in ["0", "70000", "\"7771\"", "-1", "1.5", "null"] {
            let (_folder, path) = file(&format!("{{\"port\": {bad}, \"theme\": \"dark\"}}"));
            let (settings, notices) = Settings::load(&path);
            assert_eq!(
                (settings.port, settings.theme, notices.len()),
                (None, Theme::Dark, 1),
                "{bad}"
            );
        }
        let (_folder, path) = file("{\"port\": 1, \"theme\": \"pink\"}");
        let (settings, notices) = Settings::load(&path);
        assert_eq!((settings.port, settings.theme), (Some(1), Theme::System));
        assert!(notices[0].message.contains("\"dark\""));
    }

    #[test]
    fn a_retry_policy_that_cannot_be_followed_is_refused_and_not_replaced_by_another() {
        for bad in [
            "5",
            "null",
            "{\"retries\": 21}",
            "{\"retries\": -1}",
            "{\"baseMs\": 0}",
            "{\"baseMs\": 2000, \"capMs\": 1000}",
            "{\"capMs\": 3600001}",
            "{\"tries\": 3}",
            "{\"retries\": \"5\"}",
        ] {
            let (_folder, path) = file(&format!("{{\"retry\": {bad}}}"));
            let (settings, notices) = Settings::load(&path);
            assert_eq!(settings.retry, Retry::Refused, "{bad}");
            assert_eq!((notices.len(), notices[0].level), (1, NoticeLevel::Error), "{bad}");
        }
        let (_folder, path) = file("{\"retry\": {\"retries\": 2}, \"pingEveryMs\": 200}");
        let (settings, notices) = Settings::load(&path);
        let policy = Policy {
            retries: 2,
            ..Policy::default()
        };
        assert_eq!((settings.retry, notices.len()), (Retry::Policy(policy), 0));
        assert_eq!(settings.ping_every, PingEvery(Duration::from_millis(200)));
    }

    #[test]
    fn what_is_kept_of_activity_is_as_written_and_the_least_where_that_makes_no_sense() {
        let of = |text: &str| {
            let (_folder, path) = file(&format!("{{\"activity\": {text}}}"));
            let (settings, notices) = Settings::load(&path);
            (settings.activity, notices.len())
        };
        let keep = |arguments, days| Keep { arguments, days };
        assert_eq!(of("{}"), (keep(KeepArguments::Shape, 30), 0));
        assert_eq!(
            of("{\"arguments\": \"full\", \"days\": 7}"),
            (keep(KeepArguments::Full, 7), 0)
        );
        for bad in [
            "true",
            "{\"days\": 0}",
            "{\"days\": 366}",
            "{\"arguments\": \"all\"}",
            "{\"arguments\": \"full\", \"more\": 1}",
        ] {
            assert_eq!(of(bad), (Keep::default(), 1), "{bad}");
        }
    }

    #[test]
    fn a_damaged_file_gives_defaults_and_is_kept_when_settings_are_saved() {
        for text in ["", "{\"port\": 77", "[]", "\u{0}"] {
            let (_folder, path) = file(text);
            let (mut settings, notices) = Settings::load(&path);
            assert_eq!(
                (settings.port, settings.theme, notices.len()),
                (None, Theme::System, 1),
                "{text:?}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            settings.save(&path).unwrap();
            assert_eq!(fs::read_to_string(path.with_extension("json.bak")).unwrap(), text);
            assert_eq!(Settings::load(&path).1, []);
        }
    }
}
