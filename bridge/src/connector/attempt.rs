//! One attempt to connect: expand the entry, start or contact the upstream, greet it, read its list.
//!
//! Dropping the future at any point leaves nothing behind: a child is killed with its whole group when its owner drops.

mod greet;
mod http;
mod keys;
mod patience;
mod stdio;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwapOption;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

pub(super) use self::http::custom_headers;
use self::{patience::Patience, stdio::Cradle};
use super::{
    Prepared, World,
    cause::Cause,
    discovery::{self, RawOffers},
    fault,
    log::Log,
    session::{Desk, Keeper, Session, SessionName},
    state::Failure,
};
use crate::{
    config::{self, ExpandError, Lookup, Resolved},
    oauth::Bearer,
    secrets::held_by,
    snapshot::Era,
    tools::{Arguments, ParsedTools, parse_tools},
    trust::LaunchIdentity,
};

/// Until an upstream has answered and listed its tools, unless its entry says otherwise.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Lines of stderr that are shown with a fault.
const SHOWN_LINES: usize = 20;

/// What to connect.
pub struct Plan {
    pub entry: Arc<config::Connector>,
    pub log: Log,
    /// What the upstream spoke last.
    pub era: Option<Era>,
    /// The session before, where something of it may be missed.
    pub earlier: Option<SessionName>,
    /// Where the sign-in that is used is shown.
    pub bearer: Arc<ArcSwapOption<Bearer>>,
    /// Told why it takes long.
    pub progress: watch::Sender<Option<String>>,
}

/// A session with its list.
pub struct Opened {
    pub session: Arc<Session>,
    pub keeper: Keeper,
    pub listed: Listed,
}

/// What was listed, tool by tool.
pub struct Listed {
    pub tools: ParsedTools,
    pub offers: RawOffers,
}

/// Connects and lists within the entry's connect time, or until it is told to give up. Either way nothing of a failed
/// attempt is left when it returns.
///
/// # Errors
/// [`Failure`], with the upstream's last lines on stderr where there are some.
pub async fn run(world: Arc<World>, plan: Plan, give_up: CancellationToken) -> Result<Opened, Failure> {
    let time = plan.entry.timeouts.connect.unwrap_or(CONNECT_TIMEOUT);
    let begun = SystemTime::now();
    let patience = Patience::new(&plan.entry, time);
    let cradle = Cradle::default();
    let mut keeper = None;
    let outcome = tokio::select! {
        biased;
        () = give_up.cancelled() => Err(Cause::Stopped),
        outcome = connect(&world, &plan, &patience, &cradle, &mut keeper) => outcome,
        () = patience.ends(&plan.progress) => Err(Cause::NoAnswer(patience.spent().max(time))),
    };
    let cause = match (outcome, keeper) {
        (Ok((session, listed)), Some(keeper)) => {
            return Ok(Opened {
                session,
                keeper,
                listed,
            });
        }
        // A session has its keeper.
        (Ok(_), None) => Cause::Stopped,
        (Err(cause), Some(keeper)) => {
            keeper.close().await;
            cause
        }
        (Err(cause), None) => cause,
    };
    cradle.empty().await;
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
    text.iter().any(|line| !line.trim().is_empty()).then(|| text.join("\n"))
}

/// A program that was greeted in both ways says the same twice.
fn once<'l, 't>(lines: &'l [&'t str]) -> &'l [&'t str] {
    match lines.split_at(lines.len() / 2) {
        (first, second) if first == second => first,
        _ => lines,
    }
}

fn note_session(plan: &Plan, session: &Session) {
    let server = session.server.as_deref().unwrap_or("a server that gives no name");
    plan.log.line(&format!(
        "[session] {} connected to {} over protocol {}",
        session.name,
        fault::short(server),
        session.facts.protocol
    ));
    if let Some(earlier) = &plan.earlier {
        plan.log.line(&format!(
            "[session] {} replaces {earlier}; what belonged to the earlier one is gone",
            session.name
        ));
    }
}

/// Puts the session's owner into `kept` as soon as there is one, so that it outlives this future.
async fn connect(
    world: &Arc<World>,
    plan: &Plan,
    patience: &Patience,
    cradle: &Cradle,
    kept: &mut Option<Keeper>,
) -> Result<(Arc<Session>, Listed), Cause> {
    let desk = Arc::new(Desk::new(world.approvals.clone(), &plan.entry, plan.log.clone()));
    let launch = admit(world, &plan.entry, &plan.log).await?;
    let (session, keeper) = match launch.resolved {
        Resolved::Stdio { .. } => stdio::open(world, plan, patience, cradle, desk, launch).await?,
        Resolved::Http { .. } => http::open(world, plan, desk, launch).await?,
    };
    *kept = Some(keeper);
    let listed = list_before(world, &plan.entry, &session, &plan.log, patience.at_most()).await?;
    Ok((Arc::new(session), listed))
}

/// Reads and keeps all lists over a session that stands.
///
/// # Errors
/// The cause; what was known before stays.
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
    let lists = discovery::read_lists(session, log, deadline).await?;
    // Kept and shown without the secrets that the upstream may repeat in them.
    let lists = lists.without_secrets(log.redactor())?;
    world.save_lists(entry, session, &lists).await;
    let arguments = Arguments::of(entry.launch.transport(), Some(session.facts.era));
    let tools = parse_tools(lists.tools.items, arguments);
    for tool in &tools.rejected {
        log.line(&format!("The tool {} cannot be offered: {}", tool.name, tool.reason));
    }
    Ok(Listed {
        tools,
        offers: lists.offers,
    })
}

/// A launch that may be made.
pub(super) struct Admitted {
    /// The entry with everything filled in.
    pub resolved: Resolved,
    pub identity: LaunchIdentity,
    /// The content of its `envFile`, where it has one.
    pub env_file: Option<Vec<u8>>,
}

/// The one way to a launch: what would be run or contacted is compared with what may, before any secret is read, and
/// filled in from the same bytes.
///
/// # Errors
/// The cause; nothing was started, contacted or sent.
pub(super) async fn admit(world: &World, entry: &config::Connector, log: &Log) -> Result<Admitted, Cause> {
    let Prepared { identity, env_file } = world.admit(entry).await?;
    let resolved = resolve(world, entry, identity, log).await?;
    Ok(Admitted {
        resolved,
        identity,
        env_file: env_file.transpose().map_err(Cause::Entry)?,
    })
}

async fn resolve(
    world: &World,
    entry: &config::Connector,
    identity: LaunchIdentity,
    log: &Log,
) -> Result<Resolved, Cause> {
    let keys = keys::read(world, entry, identity, log).await?;
    let lookup = Lookup {
        env: &World::env,
        secret: &|_, name| keys.secret(name),
        home: &world.person_home,
    };
    let mut resolved = config::expand(entry, &lookup).map_err(|error| match error {
        ExpandError::MissingSecret { .. } => Cause::MissingSecret(sentence(&error.to_string())),
        ExpandError::UnsetEnv { .. } | ExpandError::Unusable { .. } => Cause::Entry(sentence(&error.to_string())),
    })?;
    log.redactor().hold(held_by(&resolved));
    keys.authorize(&mut resolved);
    Ok(resolved)
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
