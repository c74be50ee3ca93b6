//! The faults, and the number of requests that each of them may cause.

/// A kind of fault. A phase of a world has one or two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fault {
    /// No fault.
    Quiet,
    /// Connections are refused.
    Refused,
    /// Connections break, before a request, after its execution and in the middle of a body.
    Cut,
    /// The peer never responds, whether it executed the request or not.
    HalfOpen,
    /// Bodies stall in the middle, and the connection stays open.
    Stalled,
    /// Bodies arrive a few bytes at a time.
    Trickle,
    /// Bodies end too early, as if they were complete.
    Truncated,
    /// The framing of bodies is damaged.
    Corrupted,
    /// Watches and continued lists fail with 410.
    Gone,
    /// Watches begin with an error event of 410.
    GoneInStream,
    /// 429 with `Retry-After`.
    TooManyRequests,
    /// 429 without `Retry-After`.
    TooManyRequestsBare,
    /// 503 with `Retry-After`, some of them from a proxy that has forwarded the request.
    Unavailable,
    /// 503 without `Retry-After`.
    UnavailableBare,
    /// 503 with a `Retry-After` of a day.
    RetryAfterDay,
    /// 500.
    ErrorStorm,
    /// The server is killed and restarted.
    Restart,
    /// The history of the server is compacted, and connections break.
    Compaction,
    /// The client's token is replaced.
    TokenRotation,
    /// The certificates of the server and of the client are replaced. Only with the real server.
    CertificateRotation,
    /// The clock jumps, as after a suspension of the machine, and so does the clock of the server. Only embedded.
    ClockJump,
    /// Objects are written that their Rust type cannot represent.
    Poison,
    /// The definition of a custom resource is deleted and created again.
    DefinitionRemoved,
    /// Handlers are added and removed: fast, slow and panicking ones.
    HandlerChurn,
    /// Bytes between client and server are cut, delayed and stopped below TLS. Only with the real server.
    Wire,
}

/// The number of requests that one client may send during a phase: `burst`, and `per_minute`, and `per_strike` for each
/// time that the fault was inflicted by force (a cut of all connections, a restart).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) burst: u64,
    pub(crate) per_minute: u64,
    pub(crate) per_strike: u64,
}

impl Limit {
    const fn new(burst: u64, per_minute: u64, per_strike: u64) -> Self {
        Self { burst, per_minute, per_strike }
    }

    /// Returns the limit for a phase.
    pub(crate) fn of(self, seconds: f64, strikes: u64) -> u64 {
        let minutes = seconds / 60.0;
        // The product is small and positive.
        self.burst + (self.per_minute as f64 * minutes).ceil() as u64 + self.per_strike * strikes
    }
}

impl Fault {
    /// The faults that worlds on the embedded server draw from.
    pub(crate) const EMBEDDED: &'static [Self] = &[
        Self::Quiet,
        Self::Refused,
        Self::Cut,
        Self::HalfOpen,
        Self::Stalled,
        Self::Trickle,
        Self::Truncated,
        Self::Corrupted,
        Self::Gone,
        Self::GoneInStream,
        Self::TooManyRequests,
        Self::TooManyRequestsBare,
        Self::Unavailable,
        Self::UnavailableBare,
        Self::RetryAfterDay,
        Self::ErrorStorm,
        Self::Restart,
        Self::Compaction,
        Self::TokenRotation,
        Self::ClockJump,
        Self::Poison,
        Self::DefinitionRemoved,
        Self::HandlerChurn,
    ];

    /// The faults that worlds with several threads draw from. They run in real time, and so have no long outages.
    pub(crate) const THREADED: &'static [Self] =
        &[Self::Quiet, Self::Cut, Self::Gone, Self::ErrorStorm, Self::Compaction, Self::HandlerChurn, Self::Poison];

    /// The faults that worlds on the real server draw from.
    pub(crate) const REAL: &'static [Self] = &[
        Self::Quiet,
        Self::Refused,
        Self::Cut,
        Self::HalfOpen,
        Self::Trickle,
        Self::Truncated,
        Self::Corrupted,
        Self::Gone,
        Self::GoneInStream,
        Self::TooManyRequests,
        Self::TooManyRequestsBare,
        Self::Unavailable,
        Self::UnavailableBare,
        Self::ErrorStorm,
        Self::Restart,
        Self::Compaction,
        Self::TokenRotation,
        Self::CertificateRotation,
        Self::Poison,
        Self::DefinitionRemoved,
        Self::HandlerChurn,
        Self::Wire,
    ];

    /// Returns the limit of requests for one informer.
    ///
    /// Retries are paced at 0.8 s, doubled up to 30 s with jitter; the client itself repeats a failed list up to three times, or ten times
    /// if the server tells it when. A watch that works is opened again every 5 to 10 minutes.
    pub(crate) fn limit(self) -> Limit {
        match self {
            Self::Quiet | Self::Poison | Self::HandlerChurn => Limit::new(8, 2, 2),
            Self::TokenRotation => Limit::new(8, 4, 3),
            Self::ClockJump => Limit::new(8, 4, 6),
            Self::Cut | Self::Truncated | Self::Corrupted | Self::Trickle | Self::Wire => Limit::new(12, 20, 3),
            Self::HalfOpen | Self::Stalled | Self::RetryAfterDay => Limit::new(12, 10, 3),
            Self::Refused | Self::ErrorStorm | Self::TooManyRequestsBare | Self::UnavailableBare => {
                Limit::new(20, 30, 3)
            }
            // The server allows one attempt per second.
            Self::TooManyRequests | Self::Unavailable => Limit::new(12, 60, 3),
            Self::Gone | Self::GoneInStream => Limit::new(20, 30, 3),
            Self::Restart | Self::Compaction | Self::CertificateRotation => Limit::new(16, 20, 15),
            Self::DefinitionRemoved => Limit::new(16, 20, 6),
        }
    }
}
