//! Buffers of sockets that carry datagrams or frames.

use super::buffer;
use crate::decision::Chosen;
use crate::stream::{Stream, true_size};
use cutline_units::{Bytes, Duration};

/// Default size of a socket's buffer (`net.core.rmem_default` and `wmem_default`), B, as the kernel counts.
const DEFAULT: u64 = 212_992;
/// The smallest buffer that the kernel gives a sender, B, as it counts.
const LEAST: u64 = 4_608;
/// Time for which other programs on the host may keep an application from reading.
const PAUSE: Duration = Duration::from_millis(100);

/// `SO_SNDBUF`: the bytes that leave within a share of the delay, at least two messages.
pub(super) fn send_buffer(send: &Stream<'_>) -> Chosen<Bytes> {
    let source = "socket(7), SO_SNDBUF";
    let Some(budget) = send.budget() else {
        return Chosen::leave(
            source,
            "no delay is demanded: the kernel's default is enough, since the sender waits when it is full",
        );
    };
    let Some(rate) = send.drain_rate() else {
        return Chosen::leave(source, "the rate is open");
    };
    let (waiting, because) = budget.in_the_sender(rate, send.path);
    let datagrams = waiting / send.longest_payload();
    let message = send.spec.size.map_or(1, |size| send.packets_of(size));
    let least = 2 * message;
    let why = format!(
        "{} of {} B, which the kernel counts as {} B each: {because}, at least two messages. The kernel doubles the value",
        datagrams.max(least),
        send.longest_payload(),
        true_size(send.longest_payload())
    );
    let counted = datagrams.max(least).saturating_mul(true_size(send.longest_payload()));
    Chosen::set(buffer(counted.max(LEAST) / 2), source, why)
}

/// `SO_RCVBUF`: the bytes that arrive while the application is kept from reading, if that is more than the default.
pub(super) fn receive_buffer(receive: &Stream<'_>) -> Chosen<Bytes> {
    let source = "QUANTA section 4.1.1";
    let (Some(rate), Some(size)) = (receive.peak_rate(), receive.spec.size) else {
        return Chosen::leave("socket(7), SO_RCVBUF", "the rate is open: the kernel's default stays");
    };
    let datagrams = (rate * PAUSE.as_secs_f64()).ceil() as u64 * receive.packets_of(size);
    let counted = datagrams.saturating_mul(true_size(receive.longest_payload()));
    if counted <= DEFAULT {
        let why = format!(
            "the default of {DEFAULT} B holds more than the {counted} B that come in {PAUSE} without a reader"
        );
        return Chosen::leave(source, why);
    }
    let why = format!(
        "{datagrams} datagrams may come in {PAUSE} without a reader, and the kernel counts {counted} B; half of that, since it \
         doubles the value, and at most net.core.rmem_max"
    );
    Chosen::set(buffer(counted / 2), source, why)
}
