//! Which scopes are asked for. Pure.

/// Grants refresh tokens at servers of OpenID Connect.
pub(super) const OFFLINE: &str = "offline_access";

/// What is known before asking.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wishes<'a> {
    /// The entry's own; they win.
    pub(super) configured: Option<&'a [String]>,
    /// The challenge's.
    pub(super) challenged: &'a [String],
    /// Those that the server's metadata names (RFC 9728 `scopes_supported`).
    pub(super) of_resource: &'a [String],
    /// Those that the authorization server's metadata names.
    pub(super) of_authority: &'a [String],
    /// What was allowed so far, where more is needed: nothing of it is given up.
    pub(super) allowed: Option<&'a [String]>,
}

/// The entry's, else the challenge's, else the metadata's, else none; for more than was allowed, the union of all that was
/// allowed or asked for. `offline_access` is added where the authorization server has it, and never asked for because a
/// list of the resource names it.
pub(super) fn choose(wishes: Wishes<'_>) -> Vec<String> {
    let has_offline = wishes.of_authority.iter().any(|scope| scope == OFFLINE);
    let mut chosen = Vec::new();
    match (wishes.configured, wishes.challenged) {
        (Some(configured), _) => add(&mut chosen, configured),
        (None, []) => {
            add(&mut chosen, wishes.of_resource);
            chosen.retain(|scope| scope != OFFLINE);
        }
        (None, challenged) => add(&mut chosen, challenged),
    }
    if let Some(allowed) = wishes.allowed {
        let mut union = allowed.to_vec();
        add(&mut union, &chosen);
        add(&mut union, wishes.challenged);
        chosen = union;
    }
    if has_offline && wishes.configured.is_none() && !chosen.is_empty() {
        add(&mut chosen, &[OFFLINE.to_owned()]);
    }
    chosen
}

fn add(scopes: &mut Vec<String>, more: &[String]) {
    for scope in more {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn the_nearest_word_about_scopes_counts() {
        let (configured, challenged, resource) = (list("c"), list("a b"), list("r offline_access"));
        let all = Wishes {
            configured: Some(&configured),
            challenged: &challenged,
            of_resource: &resource,
            ..Wishes::default()
        };
        assert_eq!(choose(all), list("c"));
        let unconfigured = Wishes {
            configured: None,
            ..all
        };
        assert_eq!(choose(unconfigured), list("a b"));
        let unchallenged = Wishes {
            challenged: &[],
            ..unconfigured
        };
        assert_eq!(choose(unchallenged), list("r"));
        assert_eq!(choose(Wishes::default()), list(""));
    }

    #[test]
    fn offline_access_is_asked_for_where_the_authority_has_it() {
        let (challenged, authority) = (list("a"), list("a offline_access admin"));
        let wishes = Wishes {
            challenged: &challenged,
            of_authority: &authority,
            ..Wishes::default()
        };
        assert_eq!(choose(wishes), list("a offline_access"));
        assert_eq!(
            choose(Wishes {
                challenged: &[],
                ..wishes
            }),
            list("")
        );
        let configured = list("c");
        assert_eq!(
            choose(Wishes {
                configured: Some(&configured),
                ..wishes
            }),
            list("c")
        );
    }

    #[test]
    fn asking_for_more_gives_nothing_up() {
        let (allowed, challenged) = (list("read"), list("write"));
        let wishes = Wishes {
            challenged: &challenged,
            allowed: Some(&allowed),
            ..Wishes::default()
        };
        assert_eq!(choose(wishes), list("read write"));
    }
}
