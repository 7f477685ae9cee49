//! A job that passed every check.

use std::time::Duration;

use crate::job::Job;
use crate::mounts::AllowedMount;

#[derive(Debug, Clone, Copy)]
pub struct CheckedJob<'a> {
    pub job: &'a Job,
    pub mounts: &'a [AllowedMount],
    pub timeout: Duration,
}
