#!/usr/bin/env bash
# the scheduler: what a poll costs among 1,000, 10,000 and 100,000 tasks, idle and with ten due, and what a run costs in the database
#
#   ./dev bench scheduler            all three sizes, under a minute
#   ./dev bench scheduler 1000000    other sizes
set -euo pipefail

# With optimisation: times are what this is about.
exec cargo run --quiet --profile measure -p hob-tasks --example scheduler_bench -- "$@"
