//! Both directions of a router between two ports: a shaper for each.

use crate::shaper::build;
use crate::{Port, Shaper, ShaperParams};
use cutline_params::ParameterError;
use cutline_units::Instant;

/// The shapers of both directions between two ports.
#[derive(Debug)]
pub struct DuplexShaper {
    /// From the first port to the second.
    pub forward: Shaper,
    /// From the second port to the first.
    pub reverse: Shaper,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Number of frames received at both ports.
    pub received: usize,
    /// True if a port did not accept all frames. The caller should offer them again soon.
    pub stuck: bool,
}

impl DuplexShaper {
    /// Receives the frames that have arrived and sends those that are due. Does not wait; the caller may wait until
    /// [`DuplexShaper::deadline`].
    ///
    /// # Errors
    /// When a port has failed.
    pub fn round<P: Port>(&mut self, now: Instant, ports: &mut [P; 2]) -> Result<Round, P::Error> {
        let [first, second] = ports;
        let mut round = Round::default();
        pass(&mut self.forward, now, first, second, &mut round)?;
        pass(&mut self.reverse, now, second, first, &mut round)?;
        Ok(round)
    }

    /// Reconfigures both directions, forward and reverse, from the next frame on: see [`Shaper::reconfigure`].
    ///
    /// # Errors
    /// When one of the queues cannot be built or a rate is out of range; then nothing has changed in either direction.
    pub fn reconfigure(&mut self, now: Instant, params: [ShaperParams; 2]) -> Result<(), ParameterError> {
        let [forward, reverse] = params;
        build(&reverse.queue)?;
        self.forward.reconfigure(now, forward)?;
        self.reverse.reconfigure(now, reverse)
    }

    /// Returns the time at which the next frame is due.
    pub fn deadline(&self) -> Instant {
        self.forward.deadline().min(self.reverse.deadline())
    }
}

fn pass<P: Port>(
    shaper: &mut Shaper,
    now: Instant,
    from: &mut P,
    to: &mut P,
    round: &mut Round,
) -> Result<(), P::Error> {
    shaper.wake(now);
    round.received += from.receive(now, &mut |at, frame| shaper.receive(at, frame))?;
    shaper.advance(now);
    shaper.send(to)?;
    round.stuck |= shaper.departed().next().is_some();
    Ok(())
}
