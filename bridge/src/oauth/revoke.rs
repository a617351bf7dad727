//! Asking servers to forget tokens (RFC 7009), where they can. Nobody waits for it, and it may fail: here they are forgotten
//! all the same.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::runtime::Handle;
use url::Url;

use super::{
    core::Core,
    record::{Access, Grant, from_text},
    token::{TokenEndpoint, TokenKind},
};

/// Until a server has forgotten a sign-in.
const REVOKED_WITHIN: Duration = Duration::from_secs(5);

/// Has a server forget what the keychain held when it goes from there.
pub(super) fn whatever_goes(core: &Arc<Core>) {
    let (weak, runtime): (Weak<Core>, _) = (Arc::downgrade(core), Handle::current());
    core.keychain.tell_when_access_goes(Arc::new(move |text| {
        let Some(core) = weak.upgrade() else { return };
        match from_text(&text) {
            Some(Access::SignedIn(grant)) => drop(runtime.spawn(revoke(core, *grant))),
            Some(Access::SignedOut) | None => {}
        }
    }));
}

/// Has a server forget what was given up.
pub(super) fn soon(core: &Arc<Core>, grant: Grant) {
    tokio::spawn(revoke(core.clone(), grant));
}

async fn revoke(core: Arc<Core>, grant: Grant) {
    if tokio::time::timeout(REVOKED_WITHIN, ask(&core, &grant)).await.is_err() {
        tracing::info!("a server did not forget a sign-in in time");
    }
}

async fn ask(core: &Core, grant: &Grant) {
    let Ok(url) = Url::parse(&grant.url) else { return };
    if grant.server.revocation.is_none() {
        return;
    }
    let Ok(fetch) = core.fetches.named_by(&url).await else {
        return;
    };
    let endpoint = TokenEndpoint {
        fetch: &fetch,
        server: &grant.server,
        client: &grant.client,
        now: core.now(),
    };
    let refresh = grant.refresh.as_ref().map(|token| (token, TokenKind::Refresh));
    let access = grant.access.as_ref().map(|token| (token, TokenKind::Access));
    for (token, kind) in refresh.into_iter().chain(access) {
        if !endpoint.revoke(token, kind).await {
            tracing::info!("a server did not forget a token that was signed out");
        }
    }
}
