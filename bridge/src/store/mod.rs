//! What outlives the process besides the person's file: snapshots in SQLite, large results as files.
