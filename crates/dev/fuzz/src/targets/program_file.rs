//! Files of programs: `cutline_exec::Obstacle::of_file`.
//!
//! - The reason is a sentence.
//! - A dynamic program of this machine stays one, whatever follows its last byte.

use cutline_exec::Obstacle;

pub fn parse(bytes: &[u8]) -> bool {
    let Some(obstacle) = Obstacle::of_file(bytes) else {
        assert_eq!(Obstacle::of_file(&[bytes, &[0xff; 8]].concat()), None);
        return true;
    };
    assert!(obstacle.to_string().starts_with("it "), "{obstacle}");
    false
}
