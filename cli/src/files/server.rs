//! The MCP side: answers both protocol eras, hands each call to a blocking thread, words the outcome.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use neuron_bridge::trust::scan::one_line;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};

use super::{
    edit::{self, Edit},
    look::{self, Listing, Order},
    read::{self, Lines},
    root::{Refusal, Root, quoted},
    tools::{BadCall, Call, EditFile, ReadTextFile, SortBy},
    walk::{self, GivenUp},
    write::{self, Written},
};

/// Serves one folder. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Files {
    root: Arc<Root>,
    tools: Arc<Vec<Tool>>,
    /// Held while something is changed, so that two edits of one file do not lose one another.
    changing: Arc<Mutex<()>>,
}

impl Files {
    pub(crate) fn new(root: Root, tools: Vec<Tool>) -> Self {
        Self {
            root: Arc::new(root),
            tools: Arc::new(tools),
            changing: Arc::default(),
        }
    }
}

impl ServerHandler for Files {
    fn get_info(&self) -> ServerConfig {
        let implementation =
            Implementation::new("neuron-connect-files", env!("CARGO_PKG_VERSION")).with_title("Files on this computer");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(implementation)
            .with_instructions(format!(
                "Works on the files in {}. Paths are relative to that folder; nothing outside of it can be used.",
                self.root.shown().display()
            ))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|t| t.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items((*self.tools).clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = match Call::parse(&request.name, request.arguments.unwrap_or_default()) {
            Ok(call) => call,
            Err(BadCall::Arguments(why)) => return Ok(refused(why)),
            Err(BadCall::UnknownTool) => {
                return Err(ErrorData::invalid_params(
                    Cow::from(format!(
                        "There is no tool {}: use one of tools/list.",
                        quoted(&request.name)
                    )),
                    None,
                ));
            }
        };
        let files = self.clone();
        let given_up = context.ct.clone();
        let done = tokio::task::spawn_blocking(move || files.run(call, &|| given_up.is_cancelled())).await;
        Ok(match done {
            Ok(Ok(content)) => CallToolResult::success(content).into(),
            Ok(Err(refusal)) => refused(refusal),
            Err(_panic) => refused("Something went wrong inside the files server: try again.".to_owned()),
        })
    }
}

impl Files {
    fn run(&self, call: Call, given_up: GivenUp<'_>) -> Result<Vec<ContentBlock>, Refusal> {
        let root = &*self.root;
        match call {
            Call::ReadTextFile(args) => read::text(root, &args.path, lines(&args)?).map(text),
            Call::ReadMediaFile(args) => read::media(root, &args.path).map(|block| vec![block]),
            Call::ReadMultipleFiles(args) if args.paths.is_empty() => {
                Err("paths is empty: give at least one file.".to_owned())
            }
            Call::ReadMultipleFiles(args) => read::several(root, &args.paths, given_up).map(text),
            Call::WriteFile(args) => {
                let _changing = self.change();
                let written = write::target(root, &args.path)?.write(root, &args.path, args.content.as_bytes())?;
                let what = match written {
                    Written::Created => "Created",
                    Written::Replaced => "Replaced",
                };
                let size = look::size_text(args.content.len() as u64);
                Ok(text(format!("{what} {} ({size}).", one_line(&args.path))))
            }
            Call::EditFile(args) => self.edit(&args, given_up).map(text),
            Call::CreateDirectory(args) => {
                let _changing = self.change();
                Ok(text(match write::create_directory(root, &args.path)? {
                    Written::Created => format!("Created the folder {}.", one_line(&args.path)),
                    Written::Replaced => format!("The folder {} exists already.", one_line(&args.path)),
                }))
            }
            Call::ListDirectory(args) => look::list(root, &args.path).map(listing),
            Call::ListDirectoryWithSizes(args) => {
                let order = match args.sort_by {
                    SortBy::Name => Order::Name,
                    SortBy::Size => Order::Size,
                };
                look::list_with_sizes(root, &args.path, order).map(listing)
            }
            Call::DirectoryTree(args) => walk::tree(root, &args.path, &args.exclude_patterns, given_up).map(listing),
            Call::MoveFile(args) => {
                let _changing = self.change();
                write::move_file(root, &args.source, &args.destination)?;
                Ok(text(format!(
                    "Moved {} to {}.",
                    one_line(&args.source),
                    one_line(&args.destination)
                )))
            }
            Call::SearchFiles(args) => {
                walk::search(root, &args.path, &args.pattern, &args.exclude_patterns, given_up).map(listing)
            }
            Call::GetFileInfo(args) => look::info(root, &args.path).map(text),
            Call::ListAllowedDirectories => Ok(text(format!("Allowed directories:\n{}", self.root.shown().display()))),
        }
    }

    fn edit(&self, args: &EditFile, given_up: GivenUp<'_>) -> Result<String, Refusal> {
        if args.edits.is_empty() {
            return Err("edits is empty: give at least one {\"oldText\", \"newText\"}.".to_owned());
        }
        let _changing = self.change();
        let root = &*self.root;
        let old = read::text(root, &args.path, Lines::All)?;
        let edits: Vec<Edit<'_>> = args
            .edits
            .iter()
            .map(|e| Edit {
                old: &e.old_text,
                new: &e.new_text,
            })
            .collect();
        let new = edit::apply(&old, &edits, given_up)?;
        if new == old {
            return Ok(format!(
                "Nothing to change in {}: it says all of this already.",
                one_line(&args.path)
            ));
        }
        let diff = edit::diff(&one_line(&args.path), &old, &new);
        if args.dry_run {
            return Ok(format!("{diff}\nNothing was written (dryRun)."));
        }
        write::target(root, &args.path)?.write(root, &args.path, new.as_bytes())?;
        Ok(diff)
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lines(args: &ReadTextFile) -> Result<Lines, Refusal> {
    match (args.head, args.tail) {
        (None, None) => Ok(Lines::All),
        (Some(n), None) => Ok(Lines::First(n)),
        (None, Some(n)) => Ok(Lines::Last(n)),
        (Some(_), Some(_)) => Err("head and tail cannot be used together: give one of them.".to_owned()),
    }
}

fn text(text: String) -> Vec<ContentBlock> {
    vec![ContentBlock::text(text)]
}

/// The note is a block of its own, so that a tree stays JSON.
fn listing(listing: Listing) -> Vec<ContentBlock> {
    let mut blocks = text(listing.text);
    blocks.extend(listing.note.map(ContentBlock::text));
    blocks
}

fn refused(why: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(why)]).into()
}
