//! Who asks, in words for people.

use super::{Caller, Program, ProgramCell, Script};
use crate::snapshot::{ProgramView, WhoKind, WhoView};

impl Caller {
    /// Has its program looked for beside what it does, so that what is recorded of that can name it. Waits for nothing.
    pub fn look_for_program(&self) {
        match self {
            Self::WalkIn(program) | Self::Client { program, .. } => program.look(),
            Self::Owner => {}
        }
    }

    /// As the person is shown it. Looks for its program, if nobody did before.
    pub async fn shown(&self) -> WhoView {
        let (kind, client, program) = match self {
            Self::Owner => (WhoKind::Owner, None, None),
            Self::WalkIn(program) => (WhoKind::WalkIn, None, program_behind(program).await),
            Self::Client { pass, program } => (WhoKind::Client, Some(pass), program_behind(program).await),
        };
        let name = match (client, &program) {
            (Some(pass), _) => pass.name.clone(),
            (None, Some((label, _))) => label.clone(),
            (None, None) => String::new(),
        };
        WhoView {
            kind,
            name,
            client: client.map(|pass| pass.id.clone()),
            program: program.map(|(_, view)| view),
        }
    }
}

async fn program_behind(cell: &ProgramCell) -> Option<(String, ProgramView)> {
    let program = cell.get().await?;
    Some((program.label(), ProgramView::from(&*program)))
}

impl From<&Program> for ProgramView {
    fn from(program: &Program) -> Self {
        Self {
            name: program.name.clone(),
            path: program.path.as_ref().map(|path| path.display().to_string()),
            script: program.script.as_ref().and_then(|script| match script {
                Script::File(file) => Some(file.display().to_string()),
                Script::Module(module) => Some(module.clone()),
                Script::Inline | Script::Unclear => None,
            }),
            pid: program.pid,
        }
    }
}
