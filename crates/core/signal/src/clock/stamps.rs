//! The times that messages carry, so that messages that both ends send anyway make exchanges.

use super::Exchange;
use cutline_units::Instant;

/// Number of our messages by which the peer's echo may lag behind.
const REMEMBERED: usize = 4;

/// The times in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// Time of sending, by the sender's clock.
    pub sent: Instant,
    /// The latest message that its sender has received; `None` if there was none.
    pub echo: Option<Echo>,
}

/// The times of a message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Time of sending, by the sender's clock.
    pub sent: Instant,
    /// Time of receipt, by the receiver's clock.
    pub received: Instant,
}

/// One end's part of the exchanges: it stamps messages, and reads the stamps of those that come.
#[derive(Clone, Debug, Default)]
pub struct Stamper {
    /// Times at which our latest messages were sent, by our clock; a ring.
    sent: [Option<Instant>; REMEMBERED],
    next: usize,
    heard: Option<Echo>,
}

impl Stamper {
    /// The stamps of a message that is sent now.
    pub fn stamp(&mut self, now: Instant) -> Stamps {
        self.sent[self.next] = Some(now);
        self.next = (self.next + 1) % REMEMBERED;
        Stamps { sent: now, echo: self.heard }
    }

    /// Takes the stamps of a message that has arrived, and returns the exchange that it completes. An echo of something that
    /// we have not sent recently completes none: a made-up time would make the estimate look better than it is.
    pub fn on_stamps(&mut self, arrived: Instant, stamps: &Stamps) -> Option<Exchange> {
        let is_newer = self.heard.is_none_or(|heard| stamps.sent > heard.sent);
        if is_newer {
            self.heard = Some(Echo { sent: stamps.sent, received: arrived });
        }
        let echo = stamps.echo.filter(|echo| self.sent.contains(&Some(echo.sent)))?;
        Some(Exchange { sent: echo.sent, received: echo.received, replied: stamps.sent, returned: arrived })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Duration;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn two_messages_make_an_exchange() {
        let [mut here, mut there] = [Stamper::default(), Stamper::default()];
        // The example of the clock module: the other clock is 100 ms ahead, each way takes 5 ms.
        let first = here.stamp(at(0));
        assert_eq!((first.echo, there.on_stamps(at(105), &first)), (None, None));
        let reply = there.stamp(at(106));
        let exchange = here.on_stamps(at(11), &reply).unwrap();
        assert_eq!(exchange.estimate().unwrap().offset.as_nanos(), 100_000_000);
        assert_eq!(exchange.estimate().unwrap().error, Duration::from_millis(5));
    }

    #[test]
    fn an_echo_of_what_was_not_sent_is_no_exchange() {
        let mut here = Stamper::default();
        for ms in 0..5 {
            here.stamp(at(ms));
        }
        let echo = |ms| Stamps { sent: at(50), echo: Some(Echo { sent: at(ms), received: at(40) }) };
        assert_eq!(here.on_stamps(at(60), &echo(7)), None, "never sent");
        assert_eq!(here.on_stamps(at(60), &echo(0)), None, "too long ago");
        assert!(here.on_stamps(at(60), &echo(1)).is_some());
    }

    #[test]
    fn the_latest_message_is_echoed_even_if_an_older_one_comes_after_it() {
        let mut here = Stamper::default();
        for (arrived, sent) in [(10, 5), (11, 3)] {
            here.on_stamps(at(arrived), &Stamps { sent: at(sent), echo: None });
        }
        assert_eq!(here.stamp(at(20)).echo, Some(Echo { sent: at(5), received: at(10) }));
    }
}
