//! What holds for all callers, as the person decides it: who needs a token, what happens to programs without one, which pages
//! may ask, and which programs are trusted to ask by themselves.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{BridgeHandle, shown};
use crate::{
    caller::{ProgramKey, Script},
    clients::ALLOWED_ORIGINS,
    error::ApiError,
    snapshot::{ActivityReview, ApiMode, AskerView, WalkInPolicy},
    trust,
};

/// Pages that may be allowed.
const MOST_ORIGINS: usize = 20;

/// What is to hold for all callers; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustChange {
    #[serde(default)]
    pub api_mode: Option<ApiMode>,
    #[serde(default)]
    pub walk_in: Option<WalkInPolicy>,
    #[serde(default)]
    pub paused: Option<bool>,
    #[serde(default)]
    pub allowed_origins: Option<Vec<String>>,
}

impl BridgeHandle {
    /// Programs without a token that do their own asking.
    pub fn askers(&self) -> Vec<AskerView> {
        self.inner.callers.askers()
    }

    /// Marks a program, by its path and for an interpreter its script, as doing its own asking, or not any more.
    ///
    /// # Errors
    /// `bad_request` for a path that is not absolute; `keychain_unavailable`, `not_saved`.
    pub async fn set_asker(&self, path: String, script: Option<String>, on: bool) -> Result<(), ApiError> {
        let path = PathBuf::from(path);
        if !path.is_absolute() {
            return Err(ApiError::bad_request("The program's path has to begin at the root."));
        }
        let script = script.map(|text| match PathBuf::from(&text) {
            file if file.is_absolute() => Script::File(file),
            _ => Script::Module(text),
        });
        let key = ProgramKey { path, script };
        self.inner.callers.set_asker(&key, on).await?;
        self.decided(None, asks(on), Some(key.path.display().to_string()));
        self.settled().await;
        Ok(())
    }

    /// The pages that may use the API: none, unless the person named some.
    pub fn allowed_origins(&self) -> Vec<String> {
        self.inner.callers.origins().to_vec()
    }

    /// Lets pages of an origin use the API, or no more. Its address may end in a slash.
    ///
    /// # Errors
    /// `bad_request` for what is no page's origin, and where too many are allowed; `keychain_unavailable`, `not_saved`.
    pub async fn set_page(&self, address: String, on: bool) -> Result<(), ApiError> {
        let page = address.strip_suffix('/').unwrap_or(&address).to_lowercase();
        let mut pages = self.allowed_origins();
        pages.retain(|known| *known != page);
        if on {
            pages.push(page);
        }
        self.set_trust(TrustChange {
            allowed_origins: Some(pages),
            ..TrustChange::default()
        })
        .await
    }

    /// Who needs a token.
    ///
    /// # Errors
    /// `keychain_unavailable`, `not_saved`.
    pub async fn set_api_mode(&self, mode: ApiMode) -> Result<(), ApiError> {
        self.set_trust(TrustChange {
            api_mode: Some(mode),
            ..TrustChange::default()
        })
        .await
    }

    /// What happens to walk-ins' calls that no rule covers.
    ///
    /// # Errors
    /// `keychain_unavailable`, `not_saved`.
    pub async fn set_walk_in(&self, policy: WalkInPolicy) -> Result<(), ApiError> {
        self.set_trust(TrustChange {
            walk_in: Some(policy),
            ..TrustChange::default()
        })
        .await
    }

    /// What is to hold for all callers from now on.
    ///
    /// # Errors
    /// `bad_request` for a page that cannot be allowed; `keychain_unavailable`, `not_saved`.
    pub async fn set_trust(&self, change: TrustChange) -> Result<(), ApiError> {
        let TrustChange {
            api_mode,
            walk_in,
            paused,
            allowed_origins,
        } = change;
        let mut decided = Vec::new();
        decided.extend(
            api_mode
                .filter(|mode| *mode != self.inner.callers.api_mode())
                .map(|mode| match mode {
                    ApiMode::Open => (ActivityReview::TokenNotNeeded, None),
                    ApiMode::Token => (ActivityReview::TokenNeeded, None),
                }),
        );
        let present = self.inner.published.load().view.walk_in();
        decided.extend(walk_in.filter(|policy| *policy != present).map(|policy| match policy {
            WalkInPolicy::Ask => (ActivityReview::WalkInsAsked, None),
            WalkInPolicy::Allow => (ActivityReview::WalkInsAllowed, None),
        }));
        let pages = allowed_origins
            .iter()
            .filter(|pages| ***pages != *self.inner.callers.origins());
        decided.extend(pages.map(|pages| (ActivityReview::Pages, Some(pages.join(", ")))));
        let mut settings: Vec<(&'static str, Value)> = Vec::new();
        settings.extend(api_mode.map(|mode| (trust::API_MODE, json!(mode))));
        settings.extend(walk_in.map(|policy| (trust::WALK_IN, json!(policy))));
        if let Some(origins) = allowed_origins {
            origins.iter().try_for_each(|origin| is_page(origin))?;
            if origins.len() > MOST_ORIGINS {
                return Err(ApiError::bad_request(format!(
                    "At most {MOST_ORIGINS} pages can be allowed."
                )));
            }
            settings.push((ALLOWED_ORIGINS, json!(origins)));
        }
        if !settings.is_empty() {
            self.inner.callers.set(settings).await?;
        }
        for (of, subject) in decided {
            self.decided(None, of, subject);
        }
        match paused {
            Some(on) => self.pause_all(on).await,
            None => {
                self.settled().await;
                Ok(())
            }
        }
    }
}

/// Whether somebody is trusted to ask by itself from now on.
pub(super) fn asks(itself: bool) -> ActivityReview {
    match itself {
        true => ActivityReview::AsksItself,
        false => ActivityReview::AskedHere,
    }
}

/// Whether a browser would send this as its `Origin`.
fn is_page(origin: &str) -> Result<(), ApiError> {
    let read = url::Url::parse(origin).ok().map(|url| url.origin());
    match read.filter(url::Origin::is_tuple) {
        Some(read) if read.ascii_serialization() == origin => Ok(()),
        Some(_) | None => Err(ApiError::bad_request(format!(
            "\"{}\" is not the origin of a page, such as https://example.com.",
            shown(origin)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_browser_sends_can_be_allowed() {
        for good in ["https://example.com", "http://localhost:3000", "https://a.example:8443"] {
            is_page(good).unwrap();
        }
        for bad in [
            "*",
            "null",
            "",
            "example.com",
            "https://example.com/",
            "https://example.com/x",
            "HTTPS://example.com",
            "file:///x",
        ] {
            assert!(is_page(bad).is_err(), "{bad}");
        }
    }
}
