//! Opening a session with a server at an address.

use std::{collections::HashMap, sync::Arc};

use http::HeaderValue;
use rmcp::transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig};
use secrecy::ExposeSecret;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Plan, greet::greet, note_session};
use crate::{
    config::Resolved,
    connector::{
        session::{End, Ended, Handler, Keeper, Session, Signals},
        state::Cause,
        transport::{HttpClient, MAX_FRAME},
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
    if sse {
        return Err(Cause::Entry(
            "The old \"sse\" transport cannot be used yet; many servers also speak \"http\" at another address."
                .to_owned(),
        ));
    }
    let client = HttpClient::new(url.expose()).map_err(|error| Cause::Entry(format!("{error}.")))?;
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value.expose_secret())
            .map_err(|_| Cause::Entry(format!("The header {name} holds characters that no header may hold.")))?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url.expose().as_str())
        .custom_headers(custom)
        .max_concurrent_requests(MAX_POSTS)
        .max_json_response_size(MAX_FRAME)
        .max_sse_event_size(MAX_FRAME);
    let signals = Arc::new(Signals::default());
    let stop = CancellationToken::new();
    let open = || {
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config.clone());
        std::future::ready(Ok((transport, ())))
    };
    let (service, ()) = greet(plan.era, &Handler::new(signals.clone()), &stop, open)
        .await
        .map_err(|(cause, _)| cause)?;
    let end = Arc::new(End::default());
    let session = Session::new(&service, signals, false, end.clone());
    note_session(plan, &session);
    let (log, name) = (plan.log.clone(), session.name.clone());
    let (ended, told) = oneshot::channel();
    tokio::spawn(async move {
        let _ = service.waiting().await;
        end.over();
        log.line(&format!("[session] {name} ended"));
        let cause = Cause::Network("the server closed the connection".to_owned());
        end.because(cause.clone());
        // A connector that is gone asks for no reason.
        let _ = ended.send(Ended { cause });
    });
    Ok((session, Keeper::new(stop, told)))
}
