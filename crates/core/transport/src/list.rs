//! The list of all transports, for the macros that write their enums.

/// Calls a macro with all transports, in three groups. Those of the second group are sent over a real network as datagrams and implement
/// [`crate::wire::DatagramTransport`]. The others have no wire format here; those of the last group are only simulated. The order is that of
/// [`crate::endpoint::TransportParams::NAMES`].
macro_rules! with_transports {
    ($macro:ident) => {
        $macro! {
            {
                /// TCP: reliable, in order.
                Tcp(crate::tcp::Tcp),
            }
            {
                /// TCP-friendly rate control over datagrams.
                Tfrc(crate::tfrc::Tfrc),
                /// Datagrams that leave as the application writes them.
                Udp(crate::udp::Udp),
                /// Interactive media whose encoder follows the network.
                Nada(crate::nada::Nada),
            }
            {
                /// A source of ATM whose cell rate follows the indications of switches.
                Abr(crate::abr::Abr),
            }
        }
    };
}
