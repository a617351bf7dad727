//! Opening a session with a server at an address.

use std::sync::Arc;

use http::HeaderValue;
use rmcp::{
    ClientLifecycleMode, RoleClient,
    service::{RunningService, serve_client_with_lifecycle_and_ct},
    transport::{
        StreamableHttpClientTransport, common::client_side_sse::NeverRetry,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::{Admitted, Plan, greet::greet, note_session};
use crate::{
    config::Resolved,
    connector::{
        World,
        access::entrance,
        cause::Cause,
        fault::{cause_of_init_error, cause_of_open_error},
        log::Log,
        session::{Desk, End, Ended, Handler, Keeper, Session, Signals, check_revision},
        transport::{
            Authorization, CustomHeaders, EndCause, HttpClient, MAX_FRAME, SseTransport, StreamEnd, Watch, Web,
        },
    },
    trust::LaunchIdentity,
};

/// Requests to one server at once: more than there can be callers, so that no cancellation waits behind slow calls.
const MAX_POSTS: usize = 1024;

/// Contacts the server and greets it.
///
/// # Errors
/// The cause.
pub(super) async fn open(
    world: &World,
    plan: &Plan,
    desk: Arc<Desk>,
    launch: Admitted,
) -> Result<(Session, Keeper), Cause> {
    let Resolved::Http {
        url,
        headers,
        sse,
        oauth,
        ..
    } = launch.resolved
    else {
        return Err(Cause::Entry("Its entry names no address.".to_owned()));
    };
    let signals = Arc::new(Signals::default());
    let entrance = entrance(world, &plan.entry, &url, oauth.map(Arc::from)).await;
    let bearer = entrance.as_ref().ok().and_then(|entrance| entrance.bearer.clone());
    plan.bearer.store(bearer);
    let entrance = entrance?;
    let authorization = Authorization::new(entrance.credentials, signals.denials.clone());
    let way = Way {
        web: Web::new(url.expose(), authorization).map_err(|error| Cause::Entry(format!("{error}.")))?,
        url: url.expose(),
        headers: custom_headers(headers)?,
        watch: watch(plan.log.clone(), signals.clone()),
        signals,
        desk,
        stop: CancellationToken::new(),
        plan,
        identity: launch.identity,
    };
    if sse {
        way.open_sse().await
    } else {
        way.open_newest().await
    }
}

/// What every way to one server needs.
struct Way<'a> {
    web: Web,
    url: &'a Url,
    headers: CustomHeaders,
    watch: Watch,
    signals: Arc<Signals>,
    desk: Arc<Desk>,
    stop: CancellationToken,
    plan: &'a Plan,
    identity: LaunchIdentity,
}

impl Way<'_> {
    /// Over streamable HTTP, or over what was before it.
    async fn open_newest(&self) -> Result<(Session, Keeper), Cause> {
        let client = HttpClient::new(self.web.clone(), self.watch.clone());
        match self.open_streamable(&client).await {
            // It may be older than streamable HTTP. If it is not, the first refusal says more than this one.
            Err(refused) if client.knows_no_greeting() => self.open_sse().await.map_err(|cause| {
                let why = cause.sentence();
                self.plan
                    .log
                    .line(&format!("[session] HTTP+SSE was tried too, in vain: {why}"));
                refused
            }),
            opened => opened,
        }
    }

    async fn open_streamable(&self, client: &HttpClient) -> Result<(Session, Keeper), Cause> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(self.headers.clone())
            .max_concurrent_requests(MAX_POSTS)
            .max_json_response_size(MAX_FRAME)
            .max_sse_event_size(MAX_FRAME);
        // Our streams open themselves again.
        config.retry_config = Arc::new(NeverRetry::default());
        // Dropped with this future, and when another transport takes its place.
        let mut guard = None;
        let open = || {
            let client = client.another();
            guard = Some(client.guard());
            let transport = StreamableHttpClientTransport::with_client(client, config.clone());
            std::future::ready(Ok(transport))
        };
        let service = greet(self.plan.era, &self.handler(), &self.stop, open).await?;
        Ok(self.begin(service, How::Streamable { _guard: guard }))
    }

    async fn open_sse(&self) -> Result<(Session, Keeper), Cause> {
        let (transport, end) = SseTransport::open(
            &self.web,
            self.url,
            self.headers.clone(),
            &self.watch,
            self.plan.log.clone(),
        )
        .await
        .map_err(|error| cause_of_open_error(&error))?;
        let mode = ClientLifecycleMode::Initialize;
        let service = serve_client_with_lifecycle_and_ct(self.handler(), transport, mode, self.stop.clone())
            .await
            .map_err(|error| cause_of_init_error(&error))?;
        check_revision(&service)?;
        Ok(self.begin(service, How::Sse(end)))
    }

    fn handler(&self) -> Handler {
        Handler::new(self.signals.clone(), self.desk.clone())
    }

    fn begin(&self, service: RunningService<RoleClient, Handler>, how: How) -> (Session, Keeper) {
        let told_end = Arc::new(End::default());
        let session = Session::new(
            &service,
            self.signals.clone(),
            false,
            told_end.clone(),
            self.desk.clone(),
            self.identity,
        );
        note_session(self.plan, &session);
        let (log, name) = (self.plan.log.clone(), session.name.clone());
        let (ended, told) = oneshot::channel();
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let _ = service.waiting().await;
            told_end.over();
            let cause = Cause::Network(how.ended(stop.is_cancelled()));
            log.line(&format!("[session] {name} ended: {}", cause.sentence()));
            told_end.because(cause.clone());
            // A connector that is gone asks for no reason.
            let _ = ended.send(Ended { cause });
        });
        (session, Keeper::new(self.stop.clone(), told))
    }
}

/// How a session's messages travel, as far as its end is concerned.
enum How {
    /// Whatever of it is still under way goes with the guard.
    Streamable {
        _guard: Option<DropGuard>,
    },
    Sse(EndCause),
}

impl How {
    /// Why a session that travelled so is over, as half a sentence.
    fn ended(&self, by_us: bool) -> String {
        let told = match self {
            Self::Streamable { .. } => None,
            Self::Sse(end) => end.get(),
        };
        match (told, by_us) {
            (Some(end), _) => end.to_string(),
            (None, true) => StreamEnd::ByUs.to_string(),
            (None, false) => "the session with the server broke off".to_owned(),
        }
    }
}

/// Headers as transports want them.
///
/// # Errors
/// [`Cause::Entry`] for one that no header may hold.
pub(in crate::connector) fn custom_headers(
    headers: impl IntoIterator<Item = (http::HeaderName, SecretString)>,
) -> Result<CustomHeaders, Cause> {
    headers
        .into_iter()
        .map(|(name, value)| {
            let mut value = HeaderValue::from_str(value.expose_secret())
                .map_err(|_| Cause::Entry(format!("The header {name} holds characters that no header may hold.")))?;
            value.set_sensitive(true);
            Ok((name, value))
        })
        .collect()
}

fn watch(log: Log, signals: Arc<Signals>) -> Watch {
    Watch {
        stream_open: signals.stream_open.clone(),
        replaced: Arc::new(move |earlier, now| {
            log.line(&format!(
                "[session] {} replaces {}: the server had forgotten the earlier one; what belonged to it is gone",
                short(now),
                short(earlier)
            ));
            signals.replaced.notify_one();
        }),
    }
}

/// Tells sessions apart without telling their ids, with which anybody could use them.
fn short(session: &str) -> String {
    let digest = Sha256::digest(session.as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_a_stream_of_its_own_does_not_end_because_of_one() {
        let streamable = How::Streamable { _guard: None };
        assert_eq!(streamable.ended(false), "the session with the server broke off");
        assert_eq!(streamable.ended(true), "the connection was closed");
    }

    #[test]
    fn a_session_is_named_by_eight_digits_that_do_not_give_it_away() {
        assert_eq!(short("abc"), "ba7816bf");
    }
}
