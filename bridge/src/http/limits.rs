//! How much of everything the loopback API takes from its clients.

use std::time::Duration;

/// Deadlines and bounds of the loopback API. The defaults are the product's; tests shorten them.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For the whole head of a request, and how long a connection may stay idle.
    pub header: Duration,
    /// For the whole body of a request.
    pub body: Duration,
    /// How long a client may leave an answer unread.
    pub write_stall: Duration,
    /// How long a client that was refused may go on sending before the connection is cut.
    pub last_words: Duration,
    /// For answers that are under way at the end.
    pub drain: Duration,
    /// Connections on the loopback port at once.
    pub connections: usize,
    /// Of these, connections of one process.
    pub connections_of_one: usize,
    /// More of them, on which only a sign-in may come back.
    pub callback_connections: usize,
    /// Connections of other users on the loopback port at once. They are only told that it is not theirs, and get
    /// places of their own so that they cannot take the person's.
    pub stranger_connections: usize,
    /// Connections on the local socket at once.
    pub socket_connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(5),
            body: Duration::from_secs(10),
            write_stall: Duration::from_secs(30),
            last_words: Duration::from_secs(1),
            drain: Duration::from_secs(1),
            connections: 512,
            connections_of_one: 256,
            callback_connections: 16,
            stranger_connections: 16,
            socket_connections: 64,
        }
    }
}
