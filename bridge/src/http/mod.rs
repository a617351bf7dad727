//! The loopback API: gate, routes and events over TCP and the local socket.
