//! The least that must work.

use cutline_transport::tcp::Params;
use cutline_units::{Duration, Instant};

use crate::path::{Connection, Fate};

#[test]
fn a_file_arrives_over_a_clean_path() {
    let mut connection = Connection::new(&Params::default(), Duration::from_millis(50), |_, _| Fate::Arrive);
    connection.sender.write(1_000_000);
    connection.sender.close();
    connection.run(Instant::ZERO + Duration::from_secs(60), |_| ());
    assert!(connection.sender.is_finished() && connection.receiver.is_finished());
    assert_eq!(connection.receiver.delivered(), 1_000_000);
    assert_eq!(connection.sender.stats().retransmissions, 0);
}

#[test]
fn a_file_arrives_over_a_lossy_path() {
    for sack in [false, true] {
        let params = Params { sack, ..Params::default() };
        let mut n = 0;
        let mut connection = Connection::new(&params, Duration::from_millis(50), move |_, _| {
            n += 1;
            if n % 37 == 0 { Fate::Lose } else { Fate::Arrive }
        });
        connection.sender.write(1_000_000);
        connection.sender.close();
        connection.run(Instant::ZERO + Duration::from_secs(600), |_| ());
        assert_eq!(connection.receiver.delivered(), 1_000_000);
        assert!(connection.sender.is_finished());
    }
}
