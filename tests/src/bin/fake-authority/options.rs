//! What the arguments may ask for, and what holds without them.

use std::collections::HashMap;

/// Name and default, as told at the top of the program.
const KNOWN: [(&str, &str); 39] = [
    ("port", "0"),
    ("record", ""),
    ("host", "127.0.0.1"),
    ("issuer-path", ""),
    ("authority", ""),
    ("challenge", "absolute"),
    ("challenge-metadata", ""),
    ("prm", "path"),
    ("resource", ""),
    ("metadata", "inserted"),
    ("metadata-issuer", ""),
    ("authorization-endpoint", ""),
    ("token-endpoint", ""),
    ("registration-endpoint", ""),
    ("revocation-endpoint", ""),
    ("pkce", "S256"),
    ("registration", "open"),
    ("auth-methods", "none"),
    ("method-returned", ""),
    ("client-id", ""),
    ("client-secret", ""),
    ("metadata-documents", "false"),
    ("authorize", "ok"),
    ("redirects", "exact"),
    ("iss", "right"),
    ("iss-advertised", "true"),
    ("lifetime", "3600"),
    ("refresh", "rotate"),
    ("token-fails", "no"),
    ("token-fails-for", "all"),
    ("token-delay", "0"),
    ("scopes", ""),
    ("scopes-supported", ""),
    ("authority-scopes", ""),
    ("step-up", ""),
    ("refuse-tokens", "false"),
    ("open", "false"),
    ("repeats", "no"),
    ("forget-clients", ""),
];

pub(crate) struct Options(HashMap<String, String>);

impl Options {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self(HashMap::new());
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let name = name
                .strip_prefix("--")
                .ok_or_else(|| format!("stray argument {name}"))?;
            options.set(name, value)?;
        }
        Ok(options)
    }

    pub(crate) fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        if !KNOWN.iter().any(|(known, _)| *known == name) {
            return Err(format!("unknown option --{name}"));
        }
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    /// # Panics
    /// When the name is not in the table.
    pub(crate) fn get(&self, name: &str) -> &str {
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        let (_, default) = known.unwrap_or_else(|| panic!("{name} is not in the table of options"));
        self.0.get(name).map_or(default, String::as_str)
    }

    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == value
    }

    /// The value where it is not empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }
}
