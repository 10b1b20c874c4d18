//! The list of all transports, for the macros that write their enums.

/// Calls a macro with all transports. The first ones, in braces, have no wire format here. The others are sent over a real
/// network as datagrams and implement [`crate::wire::DatagramTransport`]. The order is that of
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
        }
    };
}
