//! Frames are given back as they were stored, and their room is bounded.

use super::*;
use proptest::prelude::*;

const MIB: usize = 1 << 20;

fn store(frames: &mut Frames, length: usize, fill: u8) -> Option<Slot> {
    let slot = frames.take(length)?;
    frames.fill(slot, &vec![fill; length], Headers::default(), (Hint::LEAST_DELAY, FlowSlot::NONE));
    Some(slot)
}

/// Returns the memory that has been written to: whole blocks, and the records.
fn taken(frames: &Frames) -> usize {
    frames.blocks.len() * (UNIT << frames.block_shift) + frames.places.len() * FRAME_OVERHEAD
}

#[test]
fn a_class_is_at_most_half_as_long_again_as_its_frames() {
    for largest in [60, 1518, 9018, 65_549] {
        let frames = Frames::new(largest, 4 * MIB).unwrap();
        for length in 129..=largest {
            let cell = frames.classes[frames.class_of[length.div_ceil(UNIT)] as usize].units as usize * UNIT;
            assert!((length..=length * 3 / 2 + UNIT).contains(&cell), "{length} B in {cell} B");
        }
        assert_eq!(frames.classes[frames.class_of[1] as usize].units, 1);
    }
}

/// The shortest frames are as many as their own length allows, not that of the longest.
#[test]
fn short_frames_take_little_room_at_any_largest_frame() {
    for largest in [1518, 9018, 65_549] {
        let mut frames = Frames::new(largest, 4 * MIB).unwrap();
        while store(&mut frames, 60, 1).is_some() {}
        let stored = frames.stored();
        assert!(stored > 4 * MIB / (UNIT + FRAME_OVERHEAD) * 9 / 10, "{stored} of {largest} B at most");
        assert!(taken(&frames) <= 4 * MIB);
    }
}

/// All of the room is available for frames of another length, whatever was stored before.
#[test]
fn empty_blocks_become_those_of_another_class() {
    let mut frames = Frames::new(1518, 4 * MIB).unwrap();
    let fill = |frames: &mut Frames, length| -> Vec<Slot> {
        std::iter::from_fn(|| store(frames, length, 1)).collect()
    };
    let longest = fill(&mut frames, 1518).len();
    assert!(longest > 4 * MIB / (1536 + FRAME_OVERHEAD) * 9 / 10, "{longest}");
    (0..longest as Slot).for_each(|slot| frames.release(slot));
    for length in [700, 1518, 1518, 300, 1518] {
        let slots = fill(&mut frames, length);
        assert!(slots.len() >= longest, "{} of {length} B", slots.len());
        for slot in slots {
            frames.release(slot);
        }
        assert!(taken(&frames) <= 4 * MIB);
    }
    assert_eq!(frames.stored(), 0);
}

proptest! {
    #[test]
    fn frames_come_back_as_they_were_stored(ops in prop::collection::vec((0..1519_usize, any::<u16>(), 0..5_u8), 1..3000)) {
        let mut frames = Frames::new(1518, 256 * 1024).unwrap();
        let mut stored: Vec<(Slot, usize, u8)> = Vec::new();
        for (number, (length, which, op)) in ops.into_iter().enumerate() {
            if op < 3 {
                let fill = number as u8;
                stored.extend(store(&mut frames, length, fill).map(|slot| (slot, length, fill)));
            } else if !stored.is_empty() {
                let (slot, length, fill) = stored.swap_remove(which as usize % stored.len());
                prop_assert_eq!(frames.length(slot), length);
                prop_assert!(frames.bytes(slot).iter().all(|&byte| byte == fill));
                frames.release(slot);
            }
            prop_assert_eq!(frames.stored(), stored.len());
        }
        prop_assert!(taken(&frames) <= 256 * 1024);
        for (slot, length, fill) in stored {
            prop_assert_eq!(frames.bytes(slot), vec![fill; length]);
        }
    }
}
