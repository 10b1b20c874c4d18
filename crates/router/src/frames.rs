//! The buffers of waiting frames. Buffers are reused: their number grows to the most frames that ever wait at a time.

use crate::headers::Headers;
use crate::traffic_class;
use cutline_units::{Dscp, Hint};

/// The index of a frame's buffer. The queue holds it instead of the frame.
pub(crate) type Slot = u32;

/// A frame with its headers and hint.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    buffer: Box<[u8]>,
    length: u32,
    pub(crate) headers: Headers,
    /// The hint with which it arrived.
    pub(crate) hint: Hint,
}

/// All frames of a shaper.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    places: Vec<Frame>,
    free: Vec<Slot>,
    largest: usize,
}

impl Frame {
    /// Returns the bytes of the frame.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length as usize]
    }

    /// Marks the frame with CE.
    pub(crate) fn set_ce(&mut self) {
        let Self { buffer, headers, .. } = self;
        let ip = headers.ip.as_mut().expect("only an IP packet says that it may be marked");
        traffic_class::set_ce(buffer, ip);
    }

    /// Sets the code point if the frame is an IP packet.
    pub(crate) fn set_dscp(&mut self, dscp: Dscp) {
        if let Some(ip) = &mut self.headers.ip {
            traffic_class::set_dscp(&mut self.buffer, ip, dscp);
        }
    }
}

impl Frames {
    /// Creates buffers for frames of up to `largest` bytes.
    pub(crate) const fn new(largest: usize) -> Self {
        Self { places: Vec::new(), free: Vec::new(), largest }
    }

    /// Takes a free buffer. Its content is that of an earlier frame.
    #[inline]
    pub(crate) fn take(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            let buffer = vec![0; self.largest].into_boxed_slice();
            self.places.push(Frame {
                buffer,
                length: 0,
                headers: Headers::default(),
                hint: Hint::LEAST_DELAY,
            });
            self.places.len() as Slot - 1
        })
    }

    /// Copies a frame into a buffer that was taken.
    #[inline]
    pub(crate) fn fill(&mut self, slot: Slot, bytes: &[u8], headers: Headers, hint: Hint) -> &mut Frame {
        let frame = &mut self.places[slot as usize];
        frame.buffer[..bytes.len()].copy_from_slice(bytes);
        frame.length = bytes.len() as u32;
        frame.headers = headers;
        frame.hint = hint;
        frame
    }

    /// Frees a buffer.
    #[inline]
    pub(crate) fn release(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &Frame {
        &self.places[slot as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Frame {
        &mut self.places[slot as usize]
    }

    /// Returns the number of buffers in use.
    pub(crate) const fn taken(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
