//! The steps of a renewal.
//!
//! Invariant: the bundle in each registration trusts every certificate that any replica may serve. So the new authority is announced
//! first, and the certificate is switched only when all registrations show it and API servers had time to notice; the old
//! authority is removed when all replicas had time to switch.

use std::time::{Duration, SystemTime};

use super::{Pair, State};

/// The facts that decide the next step.
pub(in crate::webhook) struct Facts<'a> {
    pub(in crate::webhook) now: SystemTime,
    /// The name that API servers verify.
    pub(in crate::webhook) name: &'a str,
    pub(in crate::webhook) lifetime: Duration,
    pub(in crate::webhook) settle: Duration,
    /// Whether all registrations show the bundle of the state.
    pub(in crate::webhook) is_shown: bool,
}

/// The next step.
#[derive(Debug)]
pub(in crate::webhook) enum Step {
    /// Nothing changes for this time.
    Wait(Duration),
    /// A new state is stored.
    Store(Box<State>, &'static str),
}

impl Step {
    /// Returns the next step from a state, or from none if the Secret is missing or unusable. `create` returns a new pair.
    pub(in crate::webhook) fn next<E>(
        state: Option<&State>,
        facts: &Facts<'_>,
        create: impl FnOnce() -> Result<Pair, E>,
    ) -> Result<Self, E> {
        let &Facts { now, name, lifetime, settle, is_shown } = facts;
        let usable = state.filter(|state| state.current.problem(&state.bundle, name, now).is_none());
        let Some(state) = usable else {
            // A pair that was announced before the certificate became unusable is served at once.
            if let Some(state) = state
                && let Some(next) = state.next.clone().filter(|next| next.problem(&state.bundle, name, now).is_none())
            {
                let bundle = state.bundle.clone();
                let switched = State { bundle, current: next, next: None, since: now };
                return Ok(Self::Store(Box::new(switched), "switched, because the certificate is unusable"));
            }
            let current = create()?;
            let created = State { bundle: current.authority.clone(), current, next: None, since: now };
            return Ok(Self::Store(Box::new(created), "created"));
        };
        let age = now.duration_since(state.since).unwrap_or_default();
        let left = settle.saturating_sub(age);
        if let Some(next) = &state.next {
            if next.problem(&state.bundle, name, now).is_some() {
                // A half-written or edited announcement is taken back.
                let bundle = state.current.authority.clone();
                let undone = State { bundle, next: None, since: now, ..state.clone() };
                return Ok(Self::Store(Box::new(undone), "undone"));
            }
            if !is_shown || !left.is_zero() {
                return Ok(Self::Wait(left.max(PAUSE)));
            }
            let switched = State { bundle: state.bundle.clone(), current: next.clone(), next: None, since: now };
            return Ok(Self::Store(Box::new(switched), "switched"));
        }
        if state.bundle != state.current.authority {
            if !left.is_zero() {
                return Ok(Self::Wait(left.max(PAUSE)));
            }
            let retired = State { bundle: state.current.authority.clone(), since: now, ..state.clone() };
            return Ok(Self::Store(Box::new(retired), "retired"));
        }
        // A certificate that lives for less than the lifetime is renewed at the same distance from its end.
        if state.current.problem(&state.bundle, name, now + lifetime / 3).is_some() {
            let next = create()?;
            let bundle = format!("{}{}", state.current.authority, next.authority);
            let announced = State { bundle, next: Some(next), since: now, ..state.clone() };
            return Ok(Self::Store(Box::new(announced), "announced"));
        }
        Ok(Self::Wait((lifetime / 10).clamp(PAUSE, LONGEST)))
    }
}

/// The shortest time between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest time between two looks.
const LONGEST: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(900);
    const SETTLE: Duration = Duration::from_secs(60);
    const NAME: &str = "s.ns.svc";

    fn pair(now: SystemTime) -> Pair {
        Pair::create("t", &[NAME.to_owned()], now, LIFETIME).unwrap()
    }

    fn step(state: Option<&State>, now: SystemTime, is_shown: bool) -> Step {
        let facts = Facts { now, name: NAME, lifetime: LIFETIME, settle: SETTLE, is_shown };
        Step::next::<std::convert::Infallible>(state, &facts, || Ok(pair(now))).unwrap()
    }

    fn stored(step: Step) -> (State, &'static str) {
        match step {
            Step::Store(state, what) => (*state, what),
            Step::Wait(time) => panic!("it waits for {time:?}"),
        }
    }

    fn waits(step: &Step) -> bool {
        matches!(step, Step::Wait(_))
    }

    #[test]
    fn renewal_announces_then_switches_then_retires() {
        let start = SystemTime::now();
        let (first, what) = stored(step(None, start, false));
        assert_eq!(what, "created");
        assert!(waits(&step(Some(&first), start + LIFETIME / 2, true)));
        let due = start + LIFETIME / 3 * 2 + Duration::from_secs(1);
        let (announced, what) = stored(step(Some(&first), due, true));
        assert_eq!((what, &announced.current), ("announced", &first.current));
        let next = announced.next.clone().unwrap();
        for pair in [&first.current, &next] {
            assert_eq!(pair.problem(&announced.bundle, NAME, due), None);
        }
        assert!(waits(&step(Some(&announced), due + SETTLE, false)), "not before all registrations show it");
        assert!(waits(&step(Some(&announced), due + SETTLE / 2, true)), "not before the settle time");
        let (switched, what) = stored(step(Some(&announced), due + SETTLE, true));
        assert_eq!((what, &switched.current, &switched.bundle), ("switched", &next, &announced.bundle));
        assert!(waits(&step(Some(&switched), due + SETTLE * 2 - Duration::from_secs(1), true)));
        let (retired, what) = stored(step(Some(&switched), due + SETTLE * 2, true));
        assert_eq!((what, &retired.bundle), ("retired", &next.authority));
        assert!(waits(&step(Some(&retired), due + SETTLE * 3, true)));
    }

    #[test]
    fn unusable_certificate_is_replaced_at_once() {
        let start = SystemTime::now();
        let (state, _) = stored(step(None, start, false));
        let expired = stored(step(Some(&state), start + LIFETIME * 2, true));
        assert_eq!(expired.1, "created");
        let mixed = State { current: Pair { key: pair(start).key, ..state.current.clone() }, ..state.clone() };
        assert_eq!(stored(step(Some(&mixed), start, true)).1, "created");
        let (other, _) = stored(step(None, start, false));
        let foreign = State { bundle: other.bundle, ..state };
        assert_eq!(stored(step(Some(&foreign), start, true)).1, "created");
    }

    #[test]
    fn spoilt_announcement_is_taken_back() {
        let start = SystemTime::now();
        let (state, _) = stored(step(None, start, false));
        let next = Pair { key: "junk".to_owned(), ..pair(start) };
        let spoilt = State { bundle: format!("{}{}", state.bundle, next.authority), next: Some(next), ..state.clone() };
        let (undone, what) = stored(step(Some(&spoilt), start, true));
        assert_eq!((what, undone.bundle, undone.next), ("undone", state.bundle, None));
    }
}
