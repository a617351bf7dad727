//! Finds out where a server wants people to sign in.

use url::Url;

use super::{
    challenge::Asked,
    fault::SignInError,
    fetch::{Fetch, FetchError, Fetched, busy},
    metadata::{ProtectedResource, ServerMetadata, is_about, issuer_url, places_of_issuer, places_of_resource},
    target::{Target, place},
};

/// What was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The `resource` of all requests (RFC 8707).
    pub(super) resource: String,
    pub(super) issuer: Url,
    pub(super) server: ServerMetadata,
    /// The scopes that the server's own metadata names.
    pub(super) resource_scopes: Vec<String>,
}

/// From the server's challenge, or without one from where its metadata may be, to its authorization server. Servers that
/// know nothing of RFC 9728 are their own authorization servers (2025-03-26).
///
/// `preferred` are issuers to take where the server names several, the first one first.
pub(super) async fn discover(
    fetch: &Fetch,
    target: &Target,
    asked: &Asked,
    preferred: &[&str],
) -> Result<Found, SignInError> {
    let told = asked.metadata_url(&target.url);
    let Some(document) = protected_resource(fetch, target, told).await? else {
        return of_its_own(fetch, target).await;
    };
    if !is_about(&document.resource, &target.url) {
        return Err(SignInError::Refused(
            "what the server says of its sign-in is about another server".to_owned(),
        ));
    }
    let issuers = document.authorization_servers.unwrap_or_default();
    let wanted = preferred
        .iter()
        .find(|wanted| issuers.iter().any(|issuer| issuer == *wanted));
    let Some(issuer) = wanted
        .map(|wanted| (*wanted).to_owned())
        .or_else(|| issuers.into_iter().next())
    else {
        return of_its_own(fetch, target).await;
    };
    let Some(at) = issuer_url(&issuer) else {
        return Err(SignInError::Refused(
            "the server names a place to sign in that is no secure address".to_owned(),
        ));
    };
    let Some(server) = server_metadata(fetch, &places_of_issuer(&at)).await? else {
        return Err(SignInError::Refused(format!(
            "{} does not say how to sign in there",
            place(&at)
        )));
    };
    if server.issuer != issuer {
        return Err(SignInError::Refused(format!(
            "{} says that it is someone else",
            place(&at)
        )));
    }
    Ok(Found {
        resource: document.resource,
        issuer: at,
        server,
        resource_scopes: document.scopes_supported.unwrap_or_default(),
    })
}

/// Without RFC 9728: the server's own origin is the issuer.
async fn of_its_own(fetch: &Fetch, target: &Target) -> Result<Found, SignInError> {
    let nothing = || SignInError::Refused("the server does not say where to sign in".to_owned());
    let mut origin = target.url.clone();
    origin.set_path("/");
    origin.set_query(None);
    origin.set_fragment(None);
    let assumed = ServerMetadata::assumed(&origin).ok_or_else(nothing)?;
    let found = server_metadata(fetch, &places_of_issuer(&origin)).await?;
    let server = found.unwrap_or_else(|| assumed.clone());
    // Nobody told this issuer, so that its spelling is not known: with or without the last slash.
    if server.issuer.trim_end_matches('/') != assumed.issuer {
        return Err(SignInError::Refused(format!(
            "{} says that it is someone else",
            place(&origin)
        )));
    }
    let mut resource = target.url.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    Ok(Found {
        resource: resource.into(),
        issuer: origin,
        server,
        resource_scopes: Vec::new(),
    })
}

async fn protected_resource(
    fetch: &Fetch,
    target: &Target,
    told: Option<Url>,
) -> Result<Option<ProtectedResource>, SignInError> {
    first(fetch, &places_of_resource(told, &target.url)).await
}

async fn server_metadata(fetch: &Fetch, places: &[Url]) -> Result<Option<ServerMetadata>, SignInError> {
    first(fetch, places).await
}

/// The first document that is there. A place that says "no", or shows a page instead, is passed over; one that may not be
/// contacted ends the search, because only a hostile server names it; that nothing was found is believed only where every
/// place could be asked.
async fn first<T: serde::de::DeserializeOwned>(fetch: &Fetch, places: &[Url]) -> Result<Option<T>, SignInError> {
    let mut trouble = None;
    for at in places {
        match fetch.get(at).await {
            Ok(fetched) if fetched.is_busy() => trouble = trouble.or_else(|| Some(busy(at, fetched.status))),
            Ok(fetched) => {
                if let Some(document) = document(&fetched) {
                    return Ok(Some(document));
                }
            }
            Err(error @ FetchError::Forbidden(_)) => return Err(error.into()),
            Err(error @ (FetchError::Unreachable(_) | FetchError::TooMuch(_))) => trouble = trouble.or(Some(error)),
        }
    }
    trouble.map_or(Ok(None), |error| Err(error.into()))
}

fn document<T: serde::de::DeserializeOwned>(fetched: &Fetched) -> Option<T> {
    fetched.status.is_success().then(|| fetched.object())?
}

impl From<FetchError> for SignInError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Unreachable(_) => Self::Unavailable(error.to_string()),
            FetchError::Forbidden(_) | FetchError::TooMuch(_) => Self::Refused(error.to_string()),
        }
    }
}
