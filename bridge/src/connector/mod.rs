//! Connections to upstreams: one owned task per connector.
