//! `neuron-connectd`: the bridge without a window, the commands that talk to a running one, the built-in files server.
//!
//! `args` declares the command line; `commands` are the client's; `serve` and `files` are programs of their own.

mod args;
mod arguments;
mod client;
mod commands;
mod entry;
mod exit;
mod files;
mod screen;
mod serve;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{CommandFactory as _, Parser as _};
use tokio::runtime::{Builder, Runtime};

use args::{Cli, Command, FilesArgs};
use commands::{Context, Output};
use exit::Failure;
use screen::Screen;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = if cli.json { Output::Json } else { Output::Text };
    match run(cli, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if output == Output::Json && !failure.body.is_null() {
                screen::print_json(&failure.body);
            } else if !failure.message.is_empty() {
                screen::complain(&failure.message);
            }
            failure.code()
        }
    }
}

fn run(cli: Cli, output: Output) -> Result<(), Failure> {
    let person = std::env::home_dir();
    match cli.command {
        Command::Files(args) if args.print_tools => {
            screen::print(&files::tools_json()?);
            Ok(())
        }
        Command::Files(args) => {
            let settings = files_settings(args, cli.home, person);
            let runtime = small_runtime()?;
            let served = runtime.block_on(files::run(settings));
            // A write under way is finished; a search is not worth waiting for.
            runtime.shutdown_timeout(Duration::from_millis(400));
            served
        }
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "neuron-connectd", &mut std::io::stdout());
            Ok(())
        }
        Command::Serve(args) => {
            let home = app_home(cli.home, person.as_deref())?;
            let runtime = Builder::new_multi_thread().enable_all().build().map_err(no_runtime)?;
            let served = runtime.block_on(serve::run(&home, &args));
            // What is still running was given its time.
            runtime.shutdown_background();
            served
        }
        Command::Client(command) => {
            let context = Context {
                home: app_home(cli.home, person.as_deref())?,
                screen: Screen::detect(),
                output,
            };
            small_runtime()?.block_on(commands::run(&context, &command))
        }
    }
}

/// The app's own folder: as given, else `~/.neuron`; absolute.
fn app_home(given: Option<PathBuf>, person: Option<&Path>) -> Result<PathBuf, Failure> {
    let home = given
        .filter(|home| !home.as_os_str().is_empty())
        .or_else(|| person.map(|p| p.join(".neuron")))
        .ok_or_else(|| Failure::usage("There is no home folder (HOME is not set): give one with --home."))?;
    std::path::absolute(&home)
        .map_err(|e| Failure::usage(format!("The home \"{}\" cannot be used: {e}.", home.display())))
}

/// The app's home is private whether the bridge names it, the environment does, or nobody.
fn files_settings(args: FilesArgs, home: Option<PathBuf>, person: Option<PathBuf>) -> files::Settings {
    let mut private = args.private_dir;
    private.extend(
        std::env::var_os(files::HOME_VARIABLE)
            .filter(|h| !h.is_empty())
            .map(PathBuf::from),
    );
    private.extend(home.filter(|h| !h.as_os_str().is_empty()));
    private.extend(person.as_deref().map(|p| p.join(".neuron")));
    files::Settings {
        folder: args.folder.unwrap_or_default(),
        private,
        home: person,
    }
}

fn small_runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(no_runtime)
}

fn no_runtime(error: std::io::Error) -> Failure {
    Failure::failed(format!("The system does not allow what every command needs: {error}."))
}
