//! The page cache: which pages of files are in memory, clean or dirty, and which leave. It knows no time.
