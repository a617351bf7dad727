//! The greeting, in the order in which eras are tried.

use rmcp::{
    ClientLifecycleMode, RoleClient,
    model::ProtocolVersion,
    service::{RunningService, serve_client_with_lifecycle_and_ct},
    transport::Transport,
};
use tokio_util::sync::CancellationToken;

use crate::{
    connector::{
        cause::Cause,
        fault::{cause_of_init_error, may_be_legacy},
        session::{Handler, check_revision},
    },
    snapshot::Era,
};

type Service = RunningService<RoleClient, Handler>;

/// Greets over fresh transports from `open`: the newest protocol first, then the older greeting on another transport where
/// the SDK does not fall back by itself. What the upstream spoke last is tried first.
///
/// # Errors
/// The cause.
pub(super) async fn greet<T, F, O>(
    known: Option<Era>,
    handler: &Handler,
    stop: &CancellationToken,
    mut open: O,
) -> Result<Service, Cause>
where
    T: Transport<RoleClient> + Send + 'static,
    F: Future<Output = Result<T, Cause>> + Send,
    O: FnMut() -> F + Send,
{
    let newest_first = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let [first, second] = match known {
        Some(Era::Legacy) => [ClientLifecycleMode::Initialize, newest_first],
        Some(Era::Modern) | None => [newest_first, ClientLifecycleMode::Initialize],
    };
    let transport = open().await?;
    let refused = match serve_client_with_lifecycle_and_ct(handler.clone(), transport, first, stop.clone()).await {
        Ok(service) => return check_revision(&service).map(|()| service),
        Err(error) => error,
    };
    if !may_be_legacy(&refused) {
        return Err(cause_of_init_error(&refused));
    }
    let transport = open().await?;
    let service = serve_client_with_lifecycle_and_ct(handler.clone(), transport, second, stop.clone())
        .await
        .map_err(|error| cause_of_init_error(&error))?;
    check_revision(&service)?;
    Ok(service)
}
