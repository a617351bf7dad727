//! How a bridge without a window is started.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Port on 127.0.0.1; 0 lets the system choose [default: 7771]
    #[arg(long, value_name = "N", env = "NEURON_CONNECTD_PORT", hide_env_values = true)]
    pub(crate) port: Option<u16>,
    /// Let nothing run before you looked at it (\"neuron-connectd approvals\", \"approve\", \"deny\")
    #[arg(long)]
    pub(crate) review: bool,
    /// Ask you about calls of programs without a token that no rule allows
    #[arg(long)]
    pub(crate) ask: bool,
    /// Serve nobody without a token over the port (\"neuron-connectd pair\")
    #[arg(long)]
    pub(crate) require_token: bool,
    /// Where tokens and secrets are kept
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Secrets::Keychain)]
    pub(crate) secrets: Secrets,
}

/// Where a bridge without a window keeps secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Secrets {
    /// In the keychain of this desktop session
    Keychain,
    /// In an encrypted file; its key comes from NEURON_SECRETS_KEY_FILE or systemd
    File,
    /// Nowhere: they are forgotten when the bridge stops
    Memory,
}
