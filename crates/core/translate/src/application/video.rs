//! Video: frames at equal intervals, each in one packet or several.
//!
//! Worked: 25 frames of 7500 B a second are 1.5 Mbit/s; in packets of 1200 B that is 25 x 7500 / 1200 = 156.25 packets/s.
//! A frame of 1280 B in packets of 1280 B is one packet, so the frame rate is the rate of messages (`NetVideo`,
//! QoSockets section IV).

use super::ApplicationTranslator;
use super::audio::of_listeners;
use crate::demand::Demand;
use cutline_params::{ParameterError, Parameters};
use cutline_quality::spec::SpecParameter;
use cutline_units::{Bytes, Duration, Rate};

/// Video in its own words.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = VideoParams::check)]
pub struct VideoParams {
    /// Frames per second.
    #[param(default = 25.0, range = (0.1, 1000.0), unit = "frames/s", source = "television")]
    pub frame_rate: f64,
    /// The mean size of a frame.
    #[param(default = Bytes::new(7500), range = (100, 100_000_000), unit = "B", source = "1.5 Mbit/s (TSQ section 2.2)")]
    pub frame_size: Bytes,
    /// The bit rate, instead of frame-size; off: frame-rate times frame-size.
    #[param(default = None, range = (1_000, 10_000_000_000), unit = "bit/s", source = "frame-size says it")]
    pub bit_rate: Option<Rate>,
    /// The lowest acceptable share of the bit rate.
    #[param(default = 25.6, range = (1.0, 100.0), unit = "%", source = "384 kbit/s, the quality 0.8 of TSQ section 2.2")]
    pub least: f64,
    /// Bit rate of a burst, such as a key frame, relative to the mean bit rate.
    #[param(default = 128.0, range = (100.0, 10_000.0), unit = "%", source = "ours")]
    pub peak: f64,
    /// The largest payload of a packet.
    #[param(default = Bytes::new(1200), range = (100, 65_000), unit = "B", source = "fits any path, IPv6's too")]
    pub packet: Bytes,
    /// The largest share of packets that the codec can do without.
    #[param(default = 1.0, range = (0.0, 100.0), unit = "%", source = "ITU-T G.1010 table I.1")]
    pub loss: f64,
    /// True if people answer each other; if not, a play-out buffer hides delay and jitter.
    #[param(default = true, source = "a conference")]
    pub interactive: bool,
}

impl VideoParams {
    fn check(&self) -> Result<(), ParameterError> {
        let rate = self.messages().0 * self.peak / 100.0;
        if rate > 1e7 {
            let allowed = "less: there would be more than 10 million packets a second";
            return Err(ParameterError::new("frame-size", self.mean_frame(), allowed));
        }
        Ok(())
    }

    /// The mean size of a frame, B.
    fn mean_frame(&self) -> f64 {
        let set = |rate: Rate| rate.as_bps() as f64 / 8.0 / self.frame_rate;
        self.bit_rate.map_or(self.frame_size.get() as f64, set)
    }

    /// Messages per second, and their largest size, B.
    fn messages(&self) -> (f64, u64) {
        let (frame, packet) = (self.mean_frame(), self.packet.get());
        if frame <= packet as f64 {
            return (self.frame_rate, (frame.ceil() as u64).max(1));
        }
        (self.frame_rate * frame / packet as f64, packet)
    }
}

impl ApplicationTranslator for VideoParams {
    const NAME: &'static str = "video";
    const TITLE: &'static str = "moving pictures, as they are taken or from a server";

    fn demands(&self) -> Vec<Demand> {
        let Self { frame_rate, least, peak, packet, loss, interactive, .. } = *self;
        let (rate, size) = self.messages();
        let frames =
            format!("{frame_rate} frames/s of {:.0} B, in packets of {packet} or less", self.mean_frame());
        let share = |percent: f64| format!("{percent} % of the mean rate");
        let mut demands = vec![
            Demand::new(SpecParameter::MinRate, rate * least / 100.0, "", share(least)),
            Demand::new(SpecParameter::MaxRate, rate, "", frames),
            Demand::new(SpecParameter::PeakRate, rate * peak / 100.0, "", share(peak)),
            Demand::new(SpecParameter::Size, Bytes::new(size), "", "a packet, or a frame that is shorter"),
        ];
        demands.extend(of_listeners(interactive, loss));
        demands.push(Demand::new(
            SpecParameter::Recovery,
            Duration::from_secs(5),
            "QoSockets section IV",
            "as long as NetVideo waits",
        ));
        demands
    }
}
