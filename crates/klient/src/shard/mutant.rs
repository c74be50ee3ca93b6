//! Rules that tests break on purpose: the simulation has to notice each of them.

/// A rule of the protocol that is not followed. Outside of tests, all rules are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]

pub(super) enum Mutant {
    /// A silent member counts as finished without a write to its Lease.
    NoFence,
    /// A member counts as silent at once.
    NoWait,
    /// A member's silence is judged by another machine's clock, which is ahead.
    WallClock,
    /// A member acknowledges a table while its work still runs.
    AcknowledgeEarly,
    /// Work may run for as long as the lease lasts.
    WorkUntilTheEnd,
    /// A slot gets another owner in one step.
    NoHandover,
    /// A member whose Lease was fenced writes itself into it again.
    ReuseLease,
    /// After the table was lost, slots get owners at once.
    NoVacancy,
    /// The new owner begins before its cache shows the writes of the old one.
    NoCatchUp,
}
