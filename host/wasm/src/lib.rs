//! The policy host: runs policies as sandboxed components, with native twins as fallback.
