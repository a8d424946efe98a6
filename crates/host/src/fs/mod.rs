//! A file system: where pages of files lie, and in which order they become durable. It knows no time.
