//! Programs that Hob starts get no secrets, and cannot be replaced by files of the current directory.

mod children;
