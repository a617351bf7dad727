//! One attempt to connect: expand the entry, start or contact the upstream, greet it, read its list.
//!
//! Dropping the future at any point leaves nothing behind: a child is killed with its whole group when its owner drops.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::HeaderValue;
use rmcp::{
    ClientLifecycleMode, RoleClient,
    model::ProtocolVersion,
    service::{RunningService, serve_client_with_lifecycle_and_ct},
    transport::{
        StreamableHttpClientTransport, Transport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use secrecy::ExposeSecret;
use tokio::{net::unix::pipe, sync::oneshot, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    World,
    discovery::{self, RawTools},
    env_file,
    fault::{self, cause_of_init_error, may_be_legacy},
    log::Log,
    process::{Child, Command, How},
    session::{Ended, Handler, Keeper, Session, Signals},
    state::{Cause, Failure},
    transport::{CloseCause, HttpClient, MAX_FRAME, StdioTransport, TransportStats},
};
use crate::{
    builtin,
    config::{self, Auth, ExpandError, Lookup, Resolved},
    ids::ConnectorId,
    snapshot::Era,
    tools::{ParsedTools, parse_tools},
};

/// Until an upstream has answered and listed its tools, unless its entry says otherwise.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests to one server at once; more wait.
const MAX_POSTS: usize = 64;

/// After a program ended, its last lines on stderr are waited for this long.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Lines of stderr that are shown with a fault.
const SHOWN_LINES: usize = 20;

/// What to connect.
pub struct Plan {
    pub entry: Arc<config::Connector>,
    pub log: Log,
    /// What the upstream spoke last.
    pub era: Option<Era>,
}

/// A session with its list.
pub struct Opened {
    pub session: Arc<Session>,
    pub keeper: Keeper,
    pub listed: Listed,
}

/// A list read tool by tool.
pub struct Listed {
    pub tools: ParsedTools,
}

type Service = RunningService<RoleClient, Handler>;

/// Connects and lists within the entry's connect time, or until it is told to give up. Either way nothing of a failed
/// attempt is left when it returns.
///
/// # Errors
/// [`Failure`], with the upstream's last lines on stderr where there are some.
pub async fn run(world: Arc<World>, plan: Plan, give_up: CancellationToken) -> Result<Opened, Failure> {
    let time = plan.entry.timeouts.connect.unwrap_or(CONNECT_TIMEOUT);
    let begun = SystemTime::now();
    let deadline = Instant::now() + time;
    let mut keeper = None;
    let outcome = tokio::select! {
        biased;
        () = give_up.cancelled() => Err(Cause::Stopped),
        outcome = tokio::time::timeout_at(deadline, connect(&world, &plan, &mut keeper, deadline)) => {
            outcome.unwrap_or(Err(Cause::NoAnswer(time)))
        }
    };
    let cause = match (outcome, keeper) {
        (Ok((session, listed)), Some(keeper)) => {
            return Ok(Opened {
                session,
                keeper,
                listed,
            });
        }
        (Ok(_), None) => Cause::Stopped,
        (Err(cause), Some(keeper)) => {
            keeper.close().await;
            cause
        }
        (Err(cause), None) => cause,
    };
    Err(Failure {
        cause,
        detail: last_lines(&plan.log, begun),
    })
}

/// What the upstream wrote to stderr since then, as far as it is worth showing.
pub fn last_lines(log: &Log, since: SystemTime) -> Option<String> {
    let lines = log.tail(SHOWN_LINES);
    let text: Vec<&str> = lines
        .iter()
        .filter(|line| line.at >= since && !line.text.starts_with("[session]"))
        .map(|line| &*line.text)
        .collect();
    let text = once(&text);
    (!text.is_empty()).then(|| text.join("\n"))
}

/// A program that was greeted in both ways says the same twice.
fn once<'l, 't>(lines: &'l [&'t str]) -> &'l [&'t str] {
    match lines.split_at(lines.len() / 2) {
        (first, second) if first == second => first,
        _ => lines,
    }
}

/// Puts the session's owner into `kept` as soon as there is one, so that it outlives this future.
async fn connect(
    world: &Arc<World>,
    plan: &Plan,
    kept: &mut Option<Keeper>,
    deadline: Instant,
) -> Result<(Arc<Session>, Listed), Cause> {
    let (session, keeper) = match resolve(world, &plan.entry).await? {
        launch @ Resolved::Stdio { .. } => open_stdio(world, plan, launch).await?,
        launch @ Resolved::Http { .. } => open_http(plan, launch).await?,
    };
    *kept = Some(keeper);
    let listed = list_before(world, &plan.entry, &session, &plan.log, deadline).await?;
    Ok((Arc::new(session), listed))
}

/// Reads and keeps the whole list over a session that stands.
///
/// # Errors
/// The cause; the list known before stays.
pub async fn list(
    world: &Arc<World>,
    entry: &config::Connector,
    session: &Session,
    log: &Log,
) -> Result<Listed, Cause> {
    list_before(world, entry, session, log, Instant::now() + CONNECT_TIMEOUT).await
}

async fn list_before(
    world: &Arc<World>,
    entry: &config::Connector,
    session: &Session,
    log: &Log,
    deadline: Instant,
) -> Result<Listed, Cause> {
    let list = if session.has_tools {
        discovery::read_all(|cursor| async move { Ok(session.list_tools(cursor, deadline).await?.text) }).await?
    } else {
        RawTools {
            text: "[]".to_owned(),
            ..RawTools::default()
        }
    };
    for remark in &list.remarks {
        log.line(remark);
    }
    world.save_list(entry, session, &list).await;
    let tools = parse_tools(list.items);
    for tool in &tools.rejected {
        log.line(&format!("The tool {} cannot be offered: {}", tool.name, tool.reason));
    }
    Ok(Listed { tools })
}

/// The entry with everything filled in.
async fn resolve(world: &World, entry: &config::Connector) -> Result<Resolved, Cause> {
    // No secret can be set yet, so every one that is named is missing.
    let lookup = Lookup {
        env: &World::env,
        secret: &|_, _| None,
        home: &world.person_home,
    };
    let resolved = config::expand(entry, &lookup).map_err(|error| match error {
        ExpandError::MissingSecret { name } => Cause::MissingSecret(format!("The secret {name}")),
        ExpandError::UnsetEnv { .. } | ExpandError::Unusable { .. } => Cause::Entry(sentence(&error.to_string())),
    })?;
    match &resolved {
        Resolved::Http {
            auth: Some(Auth::Token),
            ..
        } => Err(Cause::MissingSecret("The token for this server".to_owned())),
        Resolved::Http {
            auth: Some(Auth::OAuth),
            ..
        } => Err(Cause::SignIn),
        Resolved::Http { .. } | Resolved::Stdio { .. } => Ok(resolved),
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let capital = letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect::<String>());
    match capital {
        Some(text) if text.ends_with('.') => text,
        Some(text) => format!("{text}."),
        None => "Its entry cannot be used.".to_owned(),
    }
}

/// What keeps a stdio session's process together.
struct Running {
    child: Child,
    stats: Arc<TransportStats>,
    stderr: JoinHandle<()>,
}

async fn open_stdio(world: &Arc<World>, plan: &Plan, resolved: Resolved) -> Result<(Session, Keeper), Cause> {
    let command = command(world, plan, resolved).await?;
    let signals = Arc::new(Signals::default());
    let stop = CancellationToken::new();
    let open = || start(world.clone(), command.clone(), plan.log.clone());
    match greet(plan.era, &Handler::new(signals.clone()), &stop, open).await {
        Ok((service, running)) => {
            let over = CancellationToken::new();
            let session = Session::new(&service, signals, true, over.clone());
            note_session(&plan.log, &session);
            let log = plan.log.clone();
            let (ended, told) = oneshot::channel();
            tokio::spawn(async move {
                // Closed, cancelled or broken: the process tells how it ended.
                let _ = service.waiting().await;
                over.cancel();
                let cause = end_process(running).await;
                log.line(&format!("[session] ended: {}", cause.sentence()));
                // A connector that is gone asks for no reason.
                let _ = ended.send(Ended { cause });
            });
            Ok((session, Keeper::new(stop, told)))
        }
        Err((cause, Some(running))) => {
            // A process that is ending says more than the connection it leaves.
            let ended = tokio::time::timeout(LAST_WORDS, running.child.exited()).await.is_ok();
            let how = end_process(running).await;
            Err(if ended { how } else { cause })
        }
        Err((cause, None)) => Err(cause),
    }
}

async fn start(
    world: Arc<World>,
    command: Command,
    log: Log,
) -> Result<(StdioTransport<pipe::Receiver>, Running), Cause> {
    let mut child = world
        .spawner
        .spawn(command)
        .await
        .map_err(|error| Cause::NotStarted(error.to_string()))?;
    let io = child
        .take_io()
        .map_err(|error| Cause::NotStarted(format!("Its pipes cannot be used: {error}.")))?;
    let (transport, stats) = StdioTransport::new(io.stdin, io.stdout, &child.closing(), log.clone());
    let stderr = tokio::spawn(async move { log.drain(io.stderr).await });
    Ok((transport, Running { child, stats, stderr }))
}

/// Ends what is left of the process tree and says how the program itself ended.
async fn end_process(running: Running) -> Cause {
    let exit = running.child.stop().await;
    // Its last words explain the end; a grandchild that was killed may keep the pipe for a moment.
    let _ = tokio::time::timeout(LAST_WORDS, running.stderr).await;
    match (exit.how, exit.ended) {
        (How::ByItself, Some(ended)) => Cause::Exited(ended.to_string()),
        _ => match running.stats.close_cause() {
            Some(CloseCause::Closed) | None => Cause::Stopped,
            Some(cause @ (CloseCause::Ended | CloseCause::Write(_) | CloseCause::Read(_))) => {
                Cause::Network(cause.to_string())
            }
            Some(cause @ (CloseCause::NotReading { .. } | CloseCause::Flood { .. })) => {
                Cause::Protocol(cause.to_string())
            }
        },
    }
}

async fn command(world: &World, plan: &Plan, resolved: Resolved) -> Result<Command, Cause> {
    let Resolved::Stdio {
        command,
        args,
        env,
        cwd,
        env_file,
    } = resolved
    else {
        return Err(Cause::Entry("Its entry names no program.".to_owned()));
    };
    let cwd = match cwd {
        Some(cwd) => cwd,
        None => private_folder(world, &plan.entry.id).await?,
    };
    let own = builtin::is_files_server(&plan.entry.launch);
    let own_programs;
    let programs = if own {
        own_programs = world.own_programs();
        &own_programs
    } else {
        world.programs().await
    };
    let program = programs
        .find(&command, &cwd)
        .map_err(|error| Cause::ProgramNotFound(error.to_string()))?;
    let mut environment = programs.base_environment(std::env::vars_os().collect::<Vec<_>>());
    if let Some(path) = env_file {
        environment.extend(
            from_file(&path)
                .await?
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
    }
    environment.extend(
        env.iter()
            .map(|(name, value)| (name.into(), value.expose_secret().into())),
    );
    if own {
        // The files server refuses folders that contain or lie in the app's own.
        environment.insert("NEURON_CONNECT_HOME".into(), world.home.root().into());
    }
    let args = args.iter().map(|arg| arg.expose_secret().into()).collect();
    Ok(Command {
        program,
        args,
        env: environment,
        cwd,
    })
}

async fn private_folder(world: &World, id: &ConnectorId) -> Result<PathBuf, Cause> {
    let folder = world.home.run_folder_of(id);
    let made = tokio::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .await;
    made.map(|()| folder.clone()).map_err(|error| {
        Cause::NotStarted(format!(
            "Its working folder {} could not be made: {error}.",
            folder.display()
        ))
    })
}

async fn from_file(path: &Path) -> Result<Vec<(String, String)>, Cause> {
    let unusable = |why: String| Cause::Entry(format!("The \"envFile\" {} cannot be used: {why}.", path.display()));
    let bytes = env_file::read(path)
        .await
        .map_err(|error| unusable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unusable("it is not UTF-8 text".to_owned()))?;
    config::parse_env_file(&text).map_err(|error| unusable(error.to_string()))
}

async fn open_http(plan: &Plan, resolved: Resolved) -> Result<(Session, Keeper), Cause> {
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
    let over = CancellationToken::new();
    let session = Session::new(&service, signals, false, over.clone());
    note_session(&plan.log, &session);
    let log = plan.log.clone();
    let (ended, told) = oneshot::channel();
    tokio::spawn(async move {
        let _ = service.waiting().await;
        over.cancel();
        log.line("[session] ended");
        let _ = ended.send(Ended {
            cause: Cause::Network("the server closed the connection".to_owned()),
        });
    });
    Ok((session, Keeper::new(stop, told)))
}

fn note_session(log: &Log, session: &Session) {
    let server = session.server.as_deref().unwrap_or("a server that gives no name");
    log.line(&format!(
        "[session] connected to {} over protocol {}",
        fault::short(server),
        session.facts.protocol
    ));
}

/// Greets over fresh transports from `open`: the newest protocol first, then the older greeting on another transport where
/// the SDK does not fall back by itself. What the upstream spoke last is tried first.
///
/// # Errors
/// The cause, with what the last transport stood on.
async fn greet<T, E, F, O>(
    known: Option<Era>,
    handler: &Handler,
    stop: &CancellationToken,
    mut open: O,
) -> Result<(Service, E), (Cause, Option<E>)>
where
    T: Transport<RoleClient> + Send + 'static,
    E: Send,
    F: Future<Output = Result<(T, E), Cause>> + Send,
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
    let (transport, extra) = open().await.map_err(|cause| (cause, None))?;
    let refused = match serve_client_with_lifecycle_and_ct(handler.clone(), transport, first, stop.clone()).await {
        Ok(service) => return Ok((service, extra)),
        Err(error) => error,
    };
    if !may_be_legacy(&refused) {
        return Err((cause_of_init_error(&refused), Some(extra)));
    }
    drop(extra);
    let (transport, extra) = open().await.map_err(|cause| (cause, None))?;
    match serve_client_with_lifecycle_and_ct(handler.clone(), transport, second, stop.clone()).await {
        Ok(service) => Ok((service, extra)),
        Err(error) => Err((cause_of_init_error(&error), Some(extra))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_at_both_greetings_is_shown_once() {
        assert_eq!(once(&["no key", "bye", "no key", "bye"]), ["no key", "bye"]);
        assert_eq!(once(&["no key", "bye"]), ["no key", "bye"]);
        assert_eq!(once(&["a", "b", "a"]), ["a", "b", "a"]);
        assert!(once(&[]).is_empty());
    }
}
