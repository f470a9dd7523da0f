//! Why the counts leave a pod nothing.
