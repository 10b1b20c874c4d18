//! Serialization of values between the two ends of a measurement, for types of other crates. Numbers are whole: a decimal
//! fraction could be rounded.

use cutline_sys::tcp::TcpInfo;
use cutline_units::{Duration, Rate};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Serialization of an optional rate, bit/s.
pub(crate) mod optional_rate {
    use super::{Deserialize, Deserializer, Rate, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(rate: &Option<Rate>, to: S) -> Result<S::Ok, S::Error> {
        rate.map(Rate::as_bps).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
        Option::deserialize(from).map(|bps: Option<u64>| bps.map(Rate::from_bps))
    }
}

/// Serialization of the kernel's data about a connection.
pub(crate) mod tcp_info {
    use super::{Deserialize, Deserializer, Serialize, Serializer, TcpInfo, TcpInfoSent};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(info: &Option<TcpInfo>, to: S) -> Result<S::Ok, S::Error> {
        info.as_ref().map(TcpInfoSent::from).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TcpInfo>, D::Error> {
        Option::deserialize(from).map(|info: Option<TcpInfoSent>| info.map(TcpInfo::from))
    }
}

/// Writes the message of a `TcpInfo` and the conversions. Times are in nanoseconds, rates in bit/s.
macro_rules! tcp_info_message {
    (times: $($time:ident),+; rates: $($rate:ident),+; plain: $($plain:ident: $type:ty),+ $(,)?) => {
        #[derive(Serialize, Deserialize)]
        struct TcpInfoSent { $($time: u64,)+ $($rate: u64,)+ $($plain: $type,)+ }

        impl From<&TcpInfo> for TcpInfoSent {
            fn from(info: &TcpInfo) -> Self {
                Self {
                    $($time: info.$time.as_nanos(),)+
                    $($rate: info.$rate.as_bps(),)+
                    $($plain: info.$plain,)+
                }
            }
        }

        impl From<TcpInfoSent> for TcpInfo {
            fn from(sent: TcpInfoSent) -> Self {
                Self {
                    $($time: Duration::from_nanos(sent.$time),)+
                    $($rate: Rate::from_bps(sent.$rate),)+
                    $($plain: sent.$plain,)+
                }
            }
        }
    };
}

tcp_info_message! {
    times: rtt, rtt_deviation, min_rtt, rto, since_acknowledgement;
    rates: pacing_rate, delivery_rate;
    plain: congestion_window: u32, slow_start_threshold: u32, max_segment: u32, is_closed: bool, unacknowledged: u32,
    unanswered_probes: u8,
    data_segments: u32, retransmissions: u32, timeouts: Option<u32>, delivered: u32, delivered_ce: u32, bytes_sent: u64,
    bytes_retransmitted: u64, bytes_acked: u64, not_sent: u32, ecn: bool, sack: bool,
}
