//! What was approved is a hash of what runs: the launch identity.
