//! The trait of a port, which receives frames for the router and sends its frames.

use cutline_units::Instant;

/// An interface that receives and sends frames.
pub trait Port {
    /// Reason why a port can no longer be used. The loss of single frames is no error.
    type Error;

    /// Passes the frames that have arrived to `each`, oldest first, each with its arrival time on the caller's clock, which
    /// is not after `now`. May stop before the last frame, so that the other port has its turn. Returns the number of
    /// frames passed. Does not wait.
    ///
    /// # Errors
    /// When the port has failed.
    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, Self::Error>;

    /// Sends frames in order. Calls `each` in the same order for every frame that is settled, with true if the port has
    /// accepted it and false if it is lost. The caller keeps the other frames and offers them again. Does not wait.
    ///
    /// # Errors
    /// When the port has failed.
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), Self::Error>;

    /// Returns the time on the caller's clock, from which the departure error is computed after frames were sent. Returns
    /// `None` if time advances only by the caller's arguments.
    #[inline]
    fn clock(&self) -> Option<Instant> {
        None
    }
}
