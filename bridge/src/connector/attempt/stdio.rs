//! Opening a session with a program: what it is started with, and how its end is told.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use secrecy::ExposeSecret;
use tokio::{net::unix::pipe, sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{Admitted, Plan, greet::greet, note_session, patience::Patience};
use crate::{
    builtin,
    config::{self, Resolved},
    connector::{
        World,
        cause::Cause,
        log::Log,
        process::{Child, Command, How},
        session::{Desk, End, Ended, Handler, Keeper, Session, Signals},
        transport::{CloseCause, StdioTransport, TransportStats},
    },
    ids::ConnectorId,
    secrets::held_by_variables,
    snapshot::LaunchShown,
};

/// After a program ended, its last lines on stderr are waited for this long.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What keeps a stdio session's process together.
struct Running {
    child: Child,
    stats: Arc<TransportStats>,
    stderr: JoinHandle<()>,
}

/// Where a program is kept until its session stands, so that giving up in between asks it to end before it is killed.
#[derive(Default)]
pub(super) struct Cradle(Mutex<Option<Running>>);

impl Cradle {
    fn put(&self, running: Running) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    }

    fn take(&self) -> Option<Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends what is in it and waits until its process tree is gone.
    pub async fn empty(&self) {
        if let Some(running) = self.take() {
            end_process(running).await;
        }
    }
}

/// Starts the program and greets it.
///
/// # Errors
/// The cause. What was started may still be in the cradle, also when the future is dropped.
pub(super) async fn open(
    world: &Arc<World>,
    plan: &Plan,
    patience: &Patience,
    cradle: &Cradle,
    desk: Arc<Desk>,
    launch: Admitted,
) -> Result<(Session, Keeper), Cause> {
    let identity = launch.identity;
    let command = command(world, plan, launch).await?;
    let signals = Arc::new(Signals::default());
    let stop = CancellationToken::new();
    let open = || start(world, command.clone(), &plan.log, patience, cradle);
    let greeted = greet(plan.era, &Handler::new(signals.clone(), desk.clone()), &stop, open).await;
    match (greeted, cradle.take()) {
        (Ok(service), Some(running)) => {
            let end = Arc::new(End::default());
            let session = Session::new(&service, signals, true, end.clone(), desk, identity);
            note_session(plan, &session);
            let (log, name) = (plan.log.clone(), session.name.clone());
            let (ended, told) = oneshot::channel();
            tokio::spawn(async move {
                // Closed, cancelled or broken: the process tells how it ended.
                let _ = service.waiting().await;
                end.over();
                let stats = running.stats.clone();
                let cause = end_process(running).await;
                log.line(&format!("[session] {name} ended: {}", cause.sentence()));
                if let Some(oddities) = stats.counts().sentence() {
                    log.line(&format!("[session] {name} {oddities}"));
                }
                end.because(cause.clone());
                // A connector that is gone asks for no reason.
                let _ = ended.send(Ended { cause });
            });
            Ok((session, Keeper::new(stop, told)))
        }
        (Ok(_), None) => Err(Cause::Stopped),
        (Err(cause @ Cause::Network(_)), Some(running)) => {
            // A program that is ending says more than the connection it leaves.
            let ended = tokio::time::timeout(LAST_WORDS, running.child.exited()).await.is_ok();
            let how = end_process(running).await;
            Err(if ended { how } else { cause })
        }
        (Err(cause), Some(running)) => {
            end_process(running).await;
            Err(cause)
        }
        (Err(cause), None) => Err(cause),
    }
}

async fn start(
    world: &World,
    command: Command,
    log: &Log,
    patience: &Patience,
    cradle: &Cradle,
) -> Result<StdioTransport<pipe::Receiver>, Cause> {
    // The one that was greeted in the other way is gone before another one starts.
    cradle.empty().await;
    let mut child = world
        .spawner
        .spawn(command)
        .await
        .map_err(|error| Cause::NotStarted(error.to_string()))?;
    let io = child
        .take_io()
        .map_err(|error| Cause::NotStarted(format!("Its pipes cannot be used: {error}.")))?;
    let (transport, stats) = StdioTransport::new(io.stdin, io.stdout, &child.closing(), log.clone());
    let (log, stderr) = (log.clone(), patience.listen_to(io.stderr));
    let stderr = tokio::spawn(async move { log.drain(stderr).await });
    cradle.put(Running { child, stats, stderr });
    Ok(transport)
}

/// Ends what is left of the process tree and says how the program itself ended.
async fn end_process(running: Running) -> Cause {
    if matches!(
        running.stats.close_cause(),
        Some(CloseCause::Ended | CloseCause::Write(_))
    ) {
        // Most programs close their output by exiting; how they did is known a moment later.
        let _ = tokio::time::timeout(LAST_WORDS, running.child.exited()).await;
    }
    let exit = running.child.stop().await;
    // Its last words explain the end; a grandchild that was killed may keep the pipe for a moment.
    let mut stderr = running.stderr;
    if tokio::time::timeout(LAST_WORDS, &mut stderr).await.is_err() {
        stderr.abort();
    }
    match (exit.how, exit.ended) {
        (How::ByItself, Some(ended)) => Cause::Exited(ended.to_string()),
        _ => match running.stats.close_cause() {
            Some(CloseCause::Closed) | None => Cause::Stopped,
            Some(
                cause
                @ (CloseCause::Ended | CloseCause::Write(_) | CloseCause::Read(_) | CloseCause::NotReading { .. }),
            ) => Cause::Network(cause.to_string()),
            Some(cause @ CloseCause::Flood { .. }) => Cause::Protocol(cause.to_string()),
        },
    }
}

async fn command(world: &World, plan: &Plan, launch: Admitted) -> Result<Command, Cause> {
    let Resolved::Stdio {
        command,
        args,
        env,
        cwd,
        env_file,
    } = launch.resolved
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
    note_move(world, plan, &program);
    let mut environment = programs.base_environment(std::env::vars_os().collect::<Vec<_>>());
    if let (Some(path), Some(content)) = (env_file, launch.env_file) {
        let from_file = from_file(&path, content)?;
        plan.log.redactor().hold(held_by_variables(&from_file));
        environment.extend(from_file.into_iter().map(|(name, value)| (name.into(), value.into())));
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

/// The same command may mean another file after an update of its maker: worth a line, not a question.
fn note_move(world: &World, plan: &Plan, program: &Path) {
    let approved = world.admission.approved(&plan.entry.id);
    if let Some(approved) = approved
        && let LaunchShown::Run {
            program: Some(before), ..
        } = &approved.shown
        && Path::new(before) != program
    {
        plan.log.line(&format!(
            "[session] its program lies at {} now; when it was approved it lay at {before}",
            program.display()
        ));
    }
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

fn from_file(path: &Path, content: Vec<u8>) -> Result<Vec<(String, String)>, Cause> {
    let unusable = |why: String| Cause::Entry(format!("The \"envFile\" {} cannot be used: {why}.", path.display()));
    let text = String::from_utf8(content).map_err(|_| unusable("it is not UTF-8 text".to_owned()))?;
    config::parse_env_file(&text).map_err(|error| unusable(error.to_string()))
}
