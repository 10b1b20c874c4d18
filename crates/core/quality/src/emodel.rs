//! The E-model, ITU-T G.107 (06/2015): the rating of a telephone call by mouth-to-ear delay and packet loss.
//!
//! An alternative to [`Class::Audio`](crate::Class::Audio), whose curves ignore loss.
//!
//! ```text
//! R      = (Ro - Is) - Id - Ie,eff + A                                          section 7.1
//! Id     = Idte + Idle + Idd                                                    section 7.4
//! TERV   = TELR - 40 log10((1 + T/10) / (1 + T/150)) + 6 exp(-0.3 T^2)
//! Re     = 80 + 2.5 (TERV - 14),   Roe = -1.5 (No - RLR) = 94.77
//! Idte   = ((Roe - Re)/2 + sqrt((Roe - Re)^2 / 4 + 100) - 1) (1 - exp(-T))      talker echo, 0 for T < 1 ms
//! Rle    = 10.5 (WEPL + 7) (Tr + 1)^(-1/4)
//! Idle   = (Ro - Rle)/2 + sqrt((Ro - Rle)^2 / 4 + 169)                          listener echo
//! Idd    = 0 for Ta <= 100 ms, else 25 ((1 + X^6)^(1/6) - 3 (1 + (X/3)^6)^(1/6) + 2),
//!          X = log2(Ta / 100)                                                   pure delay
//! Ie,eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl)                            section 7.5
//! MOS    = 1 + 0.035 R + R (R - 60)(100 - R) 7e-6, 1 for R < 0, 4.5 for R > 100  annex B
//! ```
//!
//! T = Ta is the one-way delay in ms and Tr = 2 T; Ppl is loss in per cent.
//!
//! | parameter | default | from |
//! | --- | --- | --- |
//! | Ro, Is | 94.77, 1.41 | G.107 with all its default values (table 3) |
//! | TELR, WEPL | 65 dB, 110 dB | G.107 table 3; STMR's corrections to TERV vanish at its default of 15 dB |
//! | A | 0 | G.107 table 3; up to 20 for more tolerant users (table 1) |
//! | `BurstR` | 1 | G.107 table 3: random loss; above 1 for bursts |
//! | Ie, Bpl | by codec | G.113 appendix I |
//!
//! Worked: a perfect network has R = 93.2 and MOS 4.41 with G.711. Ta = 400 ms takes 24.1 by Idd alone.
//! With G.729A, Ie = 11; 2 % loss gives Ie,eff = 11 + 84 * 2 / 21 = 19.
//!
//! Not modelled: the acoustics of rooms and handsets (their defaults are in Ro and Is), the advantage of low
//! delay sensitivity of the 2015 edition (sT, mT other than 1 and 100 ms), wideband (G.107.1).

use crate::Quality;
use cutline_units::{Duration, Probability};

/// A speech codec, as far as the E-model knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeechCodec {
    /// Equipment impairment without loss, Ie, 0..=95.
    pub ie: f64,
    /// Robustness against packet loss, Bpl, above 0.
    pub bpl: f64,
}

/// A call's fixed parameters; delay and loss are arguments of each call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EModel {
    /// The codec.
    pub codec: SpeechCodec,
    /// Advantage factor A, 0..=20: the tolerance of users who are mobile or far away.
    pub advantage: f64,
    /// Burst ratio, at least 1: mean length of a loss run over that of random loss.
    pub burst_ratio: f64,
    /// Talker echo loudness rating, dB; infinite where echo is cancelled perfectly.
    pub telr_db: f64,
}

/// The transmission rating factor R, at most 100; below 0 for calls that cannot be held.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rating(f64);

/// Basic signal-to-noise ratio Ro at G.107's defaults; Roe has the same value there.
const RO: f64 = 94.77;
/// Simultaneous impairments Is at G.107's defaults.
const IS: f64 = 1.41;
/// Weighted echo path loss at G.107's default, dB.
const WEPL_DB: f64 = 110.0;

impl SpeechCodec {
    /// G.711 without concealment of losses (G.113 appendix I, 10 ms packets).
    pub const G711: Self = Self { ie: 0.0, bpl: 4.3 };
    /// G.711 with the concealment of its appendix I (G.113 appendix I, 10 ms packets).
    pub const G711_PLC: Self = Self { ie: 0.0, bpl: 25.1 };
    /// G.729A with silence suppression (G.113 appendix I, 20 ms packets).
    pub const G729A: Self = Self { ie: 11.0, bpl: 19.0 };
}

impl EModel {
    /// A call with that codec and G.107's defaults.
    pub const fn new(codec: SpeechCodec) -> Self {
        Self { codec, advantage: 0.0, burst_ratio: 1.0, telr_db: 65.0 }
    }

    /// R of a one-way delay (mouth to ear: with codec and playout) and a share of packets lost.
    pub fn rating(&self, delay: Duration, loss: Probability) -> Rating {
        let t = delay.as_millis_f64();
        let id = talker_echo(t, self.telr_db) + listener_echo(2.0 * t) + pure_delay(t); // G.107 section 7.4
        let ie_eff = equipment(self.codec, loss.get() * 100.0, self.burst_ratio);
        Rating((RO - IS - id - ie_eff + self.advantage).min(100.0)) // G.107 section 7.1
    }
}

impl Rating {
    /// The number R.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Mean opinion score, 1..=4.5 (G.107 annex B).
    ///
    /// The cubic dips below 1 for R under 6.5; a MOS does not, so 1 is the least.
    pub fn mos(self) -> f64 {
        let r = self.0.clamp(0.0, 100.0);
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }

    /// The MOS as a quality, for comparison with TSQ's: MOS 1 is 0, 3 is 0.5, 5 would be 1.
    pub fn quality(self) -> Quality {
        Quality::clamped((self.mos() - 1.0) / 4.0)
    }
}

/// Idte of a one-way delay in ms (G.107 section 7.4).
fn talker_echo(t: f64, telr_db: f64) -> f64 {
    if t < 1.0 || telr_db.is_infinite() {
        return 0.0;
    }
    let terv = telr_db - 40.0 * ((1.0 + t / 10.0) / (1.0 + t / 150.0)).log10() + 6.0 * (-0.3 * t * t).exp();
    let re = 80.0 + 2.5 * (terv - 14.0);
    let half = (RO - re) / 2.0;
    (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-t).exp())
}

/// Idle of a round trip in ms (G.107 section 7.4).
fn listener_echo(tr: f64) -> f64 {
    let rle = 10.5 * (WEPL_DB + 7.0) * (tr + 1.0).powf(-0.25);
    let half = (RO - rle) / 2.0;
    half + (half * half + 169.0).sqrt()
}

/// Idd of a one-way delay in ms (G.107 section 7.4).
fn pure_delay(ta: f64) -> f64 {
    if ta <= 100.0 {
        return 0.0;
    }
    let x = (ta / 100.0).log2();
    let sixth = |y: f64| (1.0 + y.powi(6)).powf(1.0 / 6.0);
    25.0 * (sixth(x) - 3.0 * sixth(x / 3.0) + 2.0)
}

/// Ie,eff of a loss in per cent (G.107 section 7.5).
fn equipment(codec: SpeechCodec, ppl: f64, burst_ratio: f64) -> f64 {
    codec.ie + (95.0 - codec.ie) * ppl / (ppl / burst_ratio + codec.bpl)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rating(codec: SpeechCodec, ms: u64, percent: f64) -> f64 {
        let loss = Probability::new(percent / 100.0).unwrap();
        EModel::new(codec).rating(Duration::from_millis(ms), loss).get()
    }

    #[test]
    fn a_perfect_network_is_rated_93_2() {
        // G.107 section 7.1.
        let r = EModel::new(SpeechCodec::G711).rating(Duration::ZERO, Probability::ZERO);
        assert!((r.get() - 93.2).abs() < 0.05, "{r:?}");
        assert!((r.mos() - 4.41).abs() < 0.005, "{}", r.mos());
        assert!((rating(SpeechCodec::G729A, 0, 0.0) - 82.2).abs() < 0.05);
    }

    #[test]
    fn pure_delay_counts_from_100_ms() {
        // G.107 section 7.4.
        assert_eq!([0.0, 50.0, 100.0].map(pure_delay), [0.0; 3]);
        for (ms, idd) in [(150.0, 0.165), (200.0, 3.04), (400.0, 24.07)] {
            assert!((pure_delay(ms) - idd).abs() < 0.01, "{ms} ms gives {}", pure_delay(ms));
        }
    }

    /// Cole and Rosenbluth (2001) fit the model with all delay terms by `0.024 d` up to 177 ms; a fit within a point.
    #[test]
    fn delay_agrees_with_a_published_fit() {
        for ms in [20, 50, 100, 150, 175] {
            let lost = rating(SpeechCodec::G711, 0, 0.0) - rating(SpeechCodec::G711, ms, 0.0);
            assert!((lost - 0.024 * ms as f64).abs() < 1.0, "{ms} ms takes {lost}");
        }
    }

    #[test]
    fn loss_by_codec() {
        // G.107 section 7.5.
        assert!((equipment(SpeechCodec::G729A, 2.0, 1.0) - 19.0).abs() < 1e-12);
        assert!((equipment(SpeechCodec::G711_PLC, 2.0, 1.0) - 190.0 / 27.1).abs() < 1e-12);
        assert!((equipment(SpeechCodec::G711, 4.3, 1.0) - 47.5).abs() < 1e-12);
        assert!(
            equipment(SpeechCodec::G711, 2.0, 2.0) > equipment(SpeechCodec::G711, 2.0, 1.0),
            "bursts are worse"
        );
    }

    #[test]
    fn echo_cancelling_helps_and_advantage_counts() {
        let usual = EModel::new(SpeechCodec::G711);
        let at = |model: EModel| model.rating(Duration::from_millis(200), Probability::ZERO).get();
        assert!(at(EModel { telr_db: f64::INFINITY, ..usual }) > at(usual) + 2.0);
        assert!((at(EModel { advantage: 10.0, ..usual }) - at(usual) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn opinion_scores_have_bounds() {
        // G.107 annex B.
        let mos = |r| Rating(r).mos();
        assert_eq!([-5.0, 0.0, 3.0, 60.0, 100.0].map(mos), [1.0, 1.0, 1.0, 3.1, 4.5]);
        assert_eq!(Rating(-5.0).quality(), Quality::WORST);
        assert!((Rating(60.0).quality().get() - 0.525).abs() < 1e-12);
    }
}
