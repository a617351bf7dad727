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
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{Plan, greet::greet, note_session};
use crate::{
    config::Resolved,
    connector::{
        cause::Cause,
        fault::{cause_of_init_error, cause_of_open_error},
        log::Log,
        session::{End, Ended, Handler, Keeper, Session, Signals},
        transport::{CustomHeaders, EndCause, HttpClient, MAX_FRAME, SseTransport, StreamEnd, Watch, Web},
    },
};

/// Requests to one server at once; more wait.
const MAX_POSTS: usize = 64;

/// Contacts the server and greets it.
///
/// # Errors
/// The cause.
pub(super) async fn open(plan: &Plan, resolved: Resolved) -> Result<(Session, Keeper), Cause> {
    let Resolved::Http { url, headers, sse, .. } = resolved else {
        return Err(Cause::Entry("Its entry names no address.".to_owned()));
    };
    let signals = Arc::new(Signals::default());
    let way = Way {
        web: Web::new(url.expose()).map_err(|error| Cause::Entry(format!("{error}.")))?,
        url: url.expose(),
        headers: custom_headers(headers)?,
        watch: watch(plan.log.clone(), signals.clone()),
        signals,
        stop: CancellationToken::new(),
        plan,
    };
    if sse {
        return way.open_sse().await;
    }
    let client = HttpClient::new(way.web.clone(), way.watch.clone());
    match way.open_streamable(&client).await {
        // It may be older than streamable HTTP. If it is not, the first refusal says more than this one.
        Err(refused) if client.knows_no_greeting() => way.open_sse().await.map_err(|cause| {
            let why = cause.sentence();
            plan.log
                .line(&format!("[session] HTTP+SSE was tried too, in vain: {why}"));
            refused
        }),
        opened => opened,
    }
}

/// What every way to one server needs.
struct Way<'a> {
    web: Web,
    url: &'a Url,
    headers: CustomHeaders,
    watch: Watch,
    signals: Arc<Signals>,
    stop: CancellationToken,
    plan: &'a Plan,
}

impl Way<'_> {
    async fn open_streamable(&self, client: &HttpClient) -> Result<(Session, Keeper), Cause> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(self.headers.clone())
            .max_concurrent_requests(MAX_POSTS)
            .max_json_response_size(MAX_FRAME)
            .max_sse_event_size(MAX_FRAME);
        // Our streams open themselves again.
        config.retry_config = Arc::new(NeverRetry::default());
        let open = || {
            let transport = StreamableHttpClientTransport::with_client(client.another(), config.clone());
            std::future::ready(Ok(transport))
        };
        let service = greet(self.plan.era, &self.handler(), &self.stop, open).await?;
        Ok(self.begin(service, None))
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
        Ok(self.begin(service, Some(end)))
    }

    fn handler(&self) -> Handler {
        Handler::new(self.signals.clone())
    }

    fn begin(&self, service: RunningService<RoleClient, Handler>, end: Option<EndCause>) -> (Session, Keeper) {
        let told_end = Arc::new(End::default());
        let session = Session::new(&service, self.signals.clone(), false, told_end.clone());
        note_session(self.plan, &session);
        let (log, name) = (self.plan.log.clone(), session.name.clone());
        let (ended, told) = oneshot::channel();
        tokio::spawn(async move {
            let _ = service.waiting().await;
            told_end.over();
            let why = end.and_then(|end| end.get()).unwrap_or(StreamEnd::Closed);
            let cause = Cause::Network(why.to_string());
            log.line(&format!("[session] {name} ended: {}", cause.sentence()));
            told_end.because(cause.clone());
            // A connector that is gone asks for no reason.
            let _ = ended.send(Ended { cause });
        });
        (session, Keeper::new(self.stop.clone(), told))
    }
}

fn custom_headers(headers: impl IntoIterator<Item = (http::HeaderName, SecretString)>) -> Result<CustomHeaders, Cause> {
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
    fn a_session_is_named_by_eight_digits_that_do_not_give_it_away() {
        assert_eq!(short("abc"), "ba7816bf");
    }
}
