//! The command line: what can be asked for, and the help that teaches it. Declarations only.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

mod activity;
mod serve;
mod trust;

pub(crate) use activity::{ActivityArgs, ExportTo};
pub(crate) use serve::{Secrets, ServeArgs};
pub(crate) use trust::{ClientsArgs, PairArgs, TrustArgs};

const EXAMPLES: &str = "\
Examples:
  neuron-connectd serve                              run the bridge in this terminal
  neuron-connectd status                             which connectors there are, and how they are
  neuron-connectd add time -- uvx mcp-server-time    add a program as a connector
  neuron-connectd add docs https://example.com/mcp   add a server on the network
  neuron-connectd tools -q read                      find tools
  neuron-connectd call mcp__filesystem__list_directory path=.
  neuron-connectd sign-in docs                       sign in where a connector needs it
  neuron-connectd doctor                             what is wrong, and what to do

Exit codes:
  0  done
  1  the request failed (its reason is on standard error)
  2  the command line cannot be used
  3  no bridge is running
  4  refused, or waiting for you (a secret, a sign-in, a review)";

/// Every MCP connection of this computer in one place, without a window.
#[derive(Debug, Parser)]
#[command(name = "neuron-connectd", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    /// Folder with connectors.json and the bridge's own files [default: ~/.neuron]
    #[arg(long, global = true, value_name = "DIR", env = "NEURON_HOME", hide_env_values = true)]
    pub(crate) home: Option<PathBuf>,

    /// Print the bridge's answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the bridge in the foreground (SIGTERM or Ctrl-C stops it, SIGHUP reads connectors.json again)
    #[command(after_help = "\
Examples:
  neuron-connectd serve
  neuron-connectd serve --home /srv/neuron --port 7772
  NEURON_SECRETS_KEY_FILE=/etc/neuron/key neuron-connectd serve --secrets file

Logs go to standard error; NEURON_LOG chooses what is logged, for example
NEURON_LOG=debug.")]
    Serve(ServeArgs),

    #[command(flatten)]
    Client(ClientCommand),

    /// Be the built-in files server: MCP over standard input and output for one folder
    #[command(after_help = "\
Example (an entry of connectors.json):
  \"files\": { \"command\": \"neuron-connectd\", \"args\": [\"files\", \"~/neuron-connectd-sandbox\"] }

Reads and changes files in DIR and nothing outside of it: no path, link or race
leads out. DIR must exist, and may neither contain nor lie in Neuron Connect's
own folder.")]
    Files(FilesArgs),

    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  neuron-connectd completions bash > ~/.local/share/bash-completion/completions/neuron-connectd
  neuron-connectd completions zsh > \"${fpath[1]}/_neuron-connectd\"")]
    Completions { shell: clap_complete::Shell },
}

/// What is asked of the running bridge.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Show the running bridge and each connector's state
    #[command(after_help = "Example:\n  neuron-connectd status --json | jq '.servers[].status'")]
    Status,

    /// List the tools that assistants see
    #[command(after_help = "\
Examples:
  neuron-connectd tools
  neuron-connectd tools -q \"read file\"
  neuron-connectd tools --server filesystem")]
    Tools(ToolsArgs),

    /// Call one tool and print what it answers
    #[command(after_help = "\
Examples:
  neuron-connectd call mcp__filesystem__read_text_file path=welcome.md head=3
  neuron-connectd call mcp__filesystem__read_multiple_files paths=a.txt paths=b.txt
  neuron-connectd call mcp__db__query 'params:=[1, 2.50]' sql='select ?'
  neuron-connectd call mcp__db__query '{\"sql\": \"select 1\"}'
  jq -n '{path: \".\"}' | neuron-connectd call mcp__filesystem__list_directory -

KEY=VALUE is typed by the tool's schema; KEY:=JSON is taken as JSON whatever the
schema says; a key that is given again adds to a list. The tool's text goes to
standard output; if the tool fails, its error goes to standard error and the
exit code is 1.")]
    Call(CallArgs),

    /// Add a connector: a program, an address, or a piece of JSON
    #[command(after_help = "\
Examples:
  neuron-connectd add time -- uvx mcp-server-time --local-timezone Europe/Berlin
  neuron-connectd add notes -e 'NOTES_DIR=${env:HOME}/notes' -- npx -y notes-mcp@1.2.3
  neuron-connectd add docs https://example.com/mcp -H 'X-Key: ${secret:X_KEY}'
  neuron-connectd add '{\"id\": \"time\", \"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}'
  neuron-connectd add - < servers.json               an mcpServers block of another app works too

Write ${secret:NAME} instead of a secret: what you give here is written to
connectors.json as it is.")]
    Add(AddArgs),

    /// Remove a connector, with what is kept about it
    #[command(after_help = "Example:\n  neuron-connectd remove time")]
    Remove(ConnectorArg),

    /// Turn a connector on
    #[command(after_help = "Example:\n  neuron-connectd enable time")]
    Enable(ConnectorArg),

    /// Turn a connector off; it stays in connectors.json
    #[command(after_help = "Example:\n  neuron-connectd disable time")]
    Disable(ConnectorArg),

    /// Connect a connector anew and wait for the outcome
    #[command(after_help = "Example:\n  neuron-connectd reconnect time")]
    Reconnect(ConnectorArg),

    /// Give up connecting a connector: the attempt under way and those that are scheduled
    #[command(after_help = "\
Example:
  neuron-connectd stop-trying time

`status` shows which attempt comes next. A connector that is connected stays so.
It is tried again by \"neuron-connectd reconnect\", and when its tools are called.")]
    StopTrying(ConnectorArg),

    /// Sign in at a connector's server: prints the address to open, and waits for the browser to come back
    #[command(after_help = "\
Examples:
  neuron-connectd sign-in docs
  neuron-connectd sign-in docs --accept-issuer https://login.example.com

Open the address in a browser on this computer. From another computer, sign in
there and paste the address where that browser ended (it shows an error page).")]
    SignIn(SignInArgs),

    /// Sign out of a connector's server, and forget what it gave
    #[command(after_help = "Example:\n  neuron-connectd sign-out docs")]
    SignOut(ConnectorArg),

    /// Set or forget a connector's token or one of its named secrets
    #[command(
        subcommand,
        after_help = "Example:\n  neuron-connectd secret set docs X_KEY\n\nNothing shows a secret once it is set."
    )]
    Secret(SecretCommand),

    /// Show what a connector's program wrote to its standard error
    #[command(after_help = "\
Examples:
  neuron-connectd logs time
  neuron-connectd logs time -n 20 -f

Secrets are shown as [REDACTED]. With --follow it goes on when the bridge is
restarted, and ends when the connector is removed.")]
    Logs(LogsArgs),

    /// Show the questions that wait for you
    #[command(after_help = "\
Examples:
  neuron-connectd approvals
  neuron-connectd approvals --left

Servers may ask something of you while a tool runs. Without an answer within two
minutes the answer is no. With \"serve --review\", new and changed connectors wait
here until you allow them. What you denied of a connector's tools and prompts stays
blocked until it changes; --left shows it, and \"approve\" still lets it be used.")]
    Approvals(ApprovalsArgs),

    /// Answer a waiting question with yes, a form with its values
    #[command(after_help = "\
Examples:
  neuron-connectd approve 3f2a… city=Köln days=2
  neuron-connectd approve 3f2a… '{\"city\": \"Köln\"}'
  neuron-connectd approve 3f2a…
  neuron-connectd approve launch-1b… launch-9c…
  neuron-connectd approve --all
  neuron-connectd approve tools:mail:5e… --tool send
  neuron-connectd approve tools:mail:5e… --prompt summary
  neuron-connectd approve 7c1d… --until-quit

KEY=VALUE is typed by the form, and what is not given is what the form proposes.
A page is opened by you, never by Neuron Connect; approve it when you are done.")]
    Approve(ApproveArgs),

    /// Answer a waiting question with no; a launch is turned off in connectors.json
    #[command(after_help = "Example:\n  neuron-connectd deny 3f2a…\n  neuron-connectd deny 7c1d… --block")]
    Deny(DenyArgs),

    /// Show, make or withdraw rules: what may, and may not, run without asking
    #[command(after_help = "\
Examples:
  neuron-connectd rules
  neuron-connectd rules allow files read_file list_directory
  neuron-connectd rules deny mail 'send*'
  neuron-connectd rules withdraw 3f2a…

A rule that allows is bound to the tools as they are now; one that denies wins.")]
    Rules {
        #[command(subcommand)]
        command: Option<RulesCommand>,
    },

    /// Let an assistant pair itself: it shows six digits, you type them
    #[command(after_help = "\
Examples:
  neuron-connectd pair
  neuron-connectd pair --scope read --scope call --server files

Open for two minutes and for one assistant, which then has a token of its own.
Beside the tray app, its window does this.")]
    Pair(PairArgs),

    /// Show the paired assistants, or let one go
    #[command(after_help = "\
Examples:
  neuron-connectd clients
  neuron-connectd clients --revoke 3f2a…")]
    Clients(ClientsArgs),

    /// Show or change what holds for all programs: who needs a token, and whose calls wait for you
    #[command(after_help = "\
Examples:
  neuron-connectd trust
  neuron-connectd trust --api token
  neuron-connectd trust --walk-in ask
  neuron-connectd trust --pause
  neuron-connectd trust --allow-page https://app.example.com

No web page may use the API unless you allow it. One that may counts as a program
without a token. Browsers hand it answers only where its own server passes its
requests on, as development servers do.")]
    Trust(TrustArgs),

    /// Show what happened: calls, questions, sign-ins and changes, who did it and how it ended
    #[command(after_help = "\
Examples:
  neuron-connectd activity
  neuron-connectd activity --server files --outcome failed --since 12h
  neuron-connectd activity -f
  neuron-connectd activity --since 7d --export csv activity.csv

Of arguments the names, types and sizes are kept, unless settings.json says
\"activity\": {\"arguments\": \"full\"}; secrets never are. --export writes a new file,
or with - to standard output, and takes no -n.")]
    Activity(ActivityArgs),

    /// Check this computer and every connector, and say what to do
    #[command(after_help = "Example:\n  neuron-connectd doctor")]
    Doctor,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Only tools that match these words
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) query: Option<String>,
    /// Only tools of this connector
    #[arg(long, value_name = "ID")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool's name as `tools` lists it
    pub(crate) tool: String,
    /// KEY=VALUE…, KEY:=JSON…, one JSON object, or - to read one from standard input
    #[arg(value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
    /// Longest wait for the tool [default: the connector's]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The connector's id, a JSON object, or - to read one from standard input
    #[arg(value_name = "NAME|JSON|-")]
    pub(crate) name: String,
    /// The server's address, or its entry as JSON
    #[arg(value_name = "URL|JSON", conflicts_with = "command")]
    pub(crate) source: Option<String>,
    /// The program and its arguments, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// An environment variable of the program
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of every request to the server
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// How to speak to the server at URL; "sse" is the deprecated HTTP+SSE
    #[arg(long, value_parser = ["http", "sse"])]
    pub(crate) transport: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectorArg {
    /// The connector's id, as `status` shows it
    pub(crate) id: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Set it: typed at a prompt that does not show it, or read from standard input
    #[command(after_help = "\
Examples:
  neuron-connectd secret set docs X_KEY              for an entry with ${secret:X_KEY}
  neuron-connectd secret set tracker                 the token of an entry with \"auth\": \"token\"
  pass show docs/key | neuron-connectd secret set docs X_KEY

It goes into the keychain, for this connector's present address or command
alone, and cannot be read back.")]
    Set(SecretArg),
    /// Remove it from the keychain
    #[command(after_help = "Example:\n  neuron-connectd secret forget docs X_KEY")]
    Forget(SecretArg),
}

#[derive(Debug, Args)]
pub(crate) struct SecretArg {
    /// The connector's id, as `status` shows it
    pub(crate) id: String,
    /// The name in ${secret:NAME}; left out: the token
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SignInArgs {
    /// The connector's id, as `status` shows it
    pub(crate) id: String,
    /// Sign in at this server although it is not where the access goes, or another one than before
    #[arg(long, value_name = "ISSUER")]
    pub(crate) accept_issuer: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// Show instead the tools and prompts that you left as they are
    #[arg(long)]
    pub(crate) left: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The question's id, or those of launches, as `approvals` shows them
    #[arg(required_unless_present = "all")]
    pub(crate) id: Option<String>,
    /// Every launch that waits
    #[arg(long, conflicts_with = "id")]
    pub(crate) all: bool,
    /// Just this tool of those that wait, also where something stands out about it; may be given again
    #[arg(long = "tool", value_name = "NAME", requires = "id")]
    pub(crate) tools: Vec<String>,
    /// Just this prompt of those that wait; something stands out about each; may be given again
    #[arg(long = "prompt", value_name = "NAME", requires = "id")]
    pub(crate) prompts: Vec<String>,
    /// To a call: and allow this program this tool until the bridge stops
    #[arg(long, requires = "id", conflicts_with_all = ["always", "same"])]
    pub(crate) until_quit: bool,
    /// To a call: and make a rule for this program, this tool and these arguments
    #[arg(long, requires = "id", conflicts_with = "same")]
    pub(crate) always: bool,
    /// To a call: and allow those that ask for exactly the same now
    #[arg(long, requires = "id")]
    pub(crate) same: bool,
    /// Just what the server tells assistants about itself
    #[arg(long, requires = "id")]
    pub(crate) instructions: bool,
    /// KEY=VALUE…, KEY:=JSON…, one JSON object, or - to read one from standard input
    #[arg(value_name = "VALUE")]
    pub(crate) values: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// The question's id, as `approvals` shows it
    pub(crate) id: String,
    /// To a call: and never let this program use this tool
    #[arg(long)]
    pub(crate) block: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Show them
    List,
    /// Withdraw one
    Withdraw(RuleArg),
    /// Let tools run without asking, whatever the arguments
    Allow(RuleArgs),
    /// Never let tools run
    Deny(RuleArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RuleArg {
    /// The rule's id, as `rules` shows it
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct RuleArgs {
    /// The connector's id, as `status` shows it
    pub(crate) server: String,
    /// Names of its tools; * is any run of characters, ? exactly one
    #[arg(required = true)]
    pub(crate) tools: Vec<String>,
    /// Only for this program, by its whole path
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The connector's id, as `status` shows it
    pub(crate) id: String,
    /// Go on showing new lines until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How many of the last lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) lines: u32,
}

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// The folder that may be used
    #[arg(value_name = "DIR", required_unless_present = "print_tools")]
    pub(crate) folder: Option<PathBuf>,
    /// A folder that DIR may neither contain nor lie in, besides Neuron Connect's own
    #[arg(long, value_name = "DIR")]
    pub(crate) private_dir: Vec<PathBuf>,
    /// Print the tool list that is compiled into the bridge
    #[arg(long, hide = true)]
    pub(crate) print_tools: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_explains_itself_with_an_example() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name}");
            let help = command.get_after_help().unwrap().to_string();
            assert!(
                help.contains(&format!("neuron-connectd {name}")) || name == "files",
                "{name}: {help}"
            );
        }
    }

    #[test]
    fn a_command_after_the_dashes_keeps_its_own_options() {
        let cli = Cli::parse_from([
            "neuron-connectd",
            "add",
            "t",
            "-e",
            "A=b",
            "--",
            "npx",
            "-y",
            "x",
            "--json",
        ]);
        assert!(!cli.json);
        match cli.command {
            Command::Client(ClientCommand::Add(add)) => assert_eq!(add.command, ["npx", "-y", "x", "--json"]),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn json_may_be_given_with_the_flag_before_it() {
        let cli = Cli::parse_from(["neuron-connectd", "add", "--json", "{}"]);
        assert!(cli.json);
        assert!(matches!(cli.command, Command::Client(ClientCommand::Add(add)) if add.name == "{}"));
    }
}
