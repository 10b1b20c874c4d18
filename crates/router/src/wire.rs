//! A bump in the wire: two ports, and a shaper for each direction.

use crate::frames::Slot;
use crate::{Port, Shaper, ShaperParams};
use cutline_params::ParameterError;
use cutline_units::Instant;

/// Both directions between two ports.
#[derive(Clone, Debug)]
pub struct Wire {
    /// From the first port to the second.
    pub forward: Shaper,
    /// From the second port to the first.
    pub reverse: Shaper,
}

/// What a round has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Frames that came in, at both ports.
    pub received: usize,
    /// Whether a port has left frames with the router: they should be offered again soon.
    pub stuck: bool,
}

impl Wire {
    /// Takes what has come in, and sends what is due. Does not wait; [`Wire::deadline`] says how long one may.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn round<P: Port>(&mut self, now: Instant, ports: &mut [P; 2]) -> Result<Round, P::Error> {
        let [first, second] = ports;
        let mut round = Round::default();
        pass(&mut self.forward, now, first, second, &mut round)?;
        pass(&mut self.reverse, now, second, first, &mut round)?;
        Ok(round)
    }

    /// Works as these say from the next frame on, forward and reverse: [`Shaper::reconfigure`].
    ///
    /// # Errors
    /// When one of the queues cannot be built; then nothing has changed in either direction.
    pub fn reconfigure(&mut self, now: Instant, params: [ShaperParams; 2]) -> Result<(), ParameterError> {
        let [forward, reverse] = params;
        reverse.queue.build::<Slot>()?;
        self.forward.reconfigure(now, forward)?;
        self.reverse.reconfigure(now, reverse)
    }

    /// When a frame is due next.
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
