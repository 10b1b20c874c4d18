//! What the router asks of the world: two ports, each of which gives frames and takes them.

use cutline_units::Instant;

/// An interface that frames come in by and go out by.
pub trait Port {
    /// Why a port can no longer be used. That single frames are lost is no error.
    type Error;

    /// Hands over the frames that have come in, oldest first, each with the time of its arrival on the caller's clock,
    /// which is not after `now`. May stop before all are told, so that the other port has its turn; answers how many
    /// were. Does not wait.
    ///
    /// # Errors
    /// When the port is gone.
    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, Self::Error>;

    /// Sends frames in order, and tells `each`, in the same order, of those that are settled: taken, or lost. Those of
    /// which nothing is told are still the caller's, who offers them again. Does not wait.
    ///
    /// # Errors
    /// When the port is gone.
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), Self::Error>;

    /// The time on the caller's clock, asked for after a sending to know how late it was; `None` where no time passes
    /// but that which the caller tells.
    #[inline]
    fn clock(&self) -> Option<Instant> {
        None
    }
}
