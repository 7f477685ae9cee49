//! What must not get out, or in, by way of the programs that Hob starts.

mod children;
