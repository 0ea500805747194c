//! How long anything may take: nothing waits for ever.

use std::time::Duration;

/// From the stop signal to the end by force, where the container gives none.
pub(super) const STOP: Duration = Duration::from_secs(10);
/// Least that a container may take until its check passes, where its own check gives less.
pub(super) const HEALTH_LEAST: Duration = Duration::from_secs(10);
/// How long a container without a check must run before it counts as running: one that exits at once does so
/// within the start of its program.
pub(super) const SETTLE: Duration = Duration::from_secs(2);
/// Between two looks at a container that is starting.
pub(super) const POLL: Duration = Duration::from_millis(100);
/// One request of a probe or a check over HTTP.
pub(super) const PROBE: Duration = Duration::from_secs(5);
/// Until a probe must have been answered as it demands: a proxy re-reads its routes and resolves names first.
pub(super) const PROBED: Duration = Duration::from_secs(20);
/// How long what an agent that died had asked the runtime for may still be under way.
pub(super) const UNDER_WAY: Duration = Duration::from_secs(3);
/// Modules worked on at once.
pub(super) const MODULES: usize = 8;
