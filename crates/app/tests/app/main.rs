//! The databases of all capabilities together.

mod copy_tables;
mod durability;
mod hostile;
mod old_databases;
