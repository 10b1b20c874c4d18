//! Filters of packet sockets: programs of the classic Berkeley packet filter, which the kernel runs for each frame before it copies it.
#![expect(unsafe_code, reason = "SO_ATTACH_FILTER, whose value has a pointer")]

use super::LinkAddress;
use crate::sockopt::check;
use rustix::fd::{AsFd, AsRawFd as _};
use std::io;
use std::mem::size_of;
use std::ptr::from_ref;

/// Offsets that stand for places outside of the payload (`linux/filter.h`): ancillary data, and the Ethernet header.
const ANCILLARY: u32 = 0xffff_f000;
const LINK_LAYER: u32 = 0xffe0_0000;
/// Ancillary datum: whether the frame is for this host (`SKF_AD_PKTTYPE`).
const PACKET_TYPE: u32 = 4;
/// A frame for this host (`PACKET_HOST` of `linux/if_packet.h`).
const HOST: u32 = 0;
/// Place of the sender's address in the Ethernet header.
const SENDER: u32 = 6;
/// The most instructions of a program (`BPF_MAXINSNS`).
const MOST: usize = 4096;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// A property of a frame with the value that a filter compares it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameField {
    /// Two bytes of the payload, at a place from its beginning, as a number in network order.
    Half(u32, u16),
    /// The sender's address.
    Sender(LinkAddress),
}

/// A filter: a frame for this host passes if it has all of some properties, and not all of those of any exception.
#[derive(Clone, Debug, Default)]
pub struct FrameFilter {
    program: Vec<libc::sock_filter>,
}

impl FrameFilter {
    /// Returns a filter that no frame passes.
    pub fn none() -> Self {
        Self { program: vec![instruction(RETURN, 0, (0, 0))] }
    }

    /// Returns a filter that frames for this host with all of `fields` pass, unless they have all of one of `exceptions`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if there are too many exceptions.
    pub fn new<'f>(
        fields: &[FrameField],
        exceptions: impl IntoIterator<Item = &'f [FrameField]>,
    ) -> io::Result<Self> {
        let host = Test { load: LOAD_BYTE, at: ANCILLARY + PACKET_TYPE, value: HOST };
        let mut program = Vec::new();
        for test in [host].into_iter().chain(fields.iter().flat_map(|field| field.tests())) {
            test.push(&mut program, 0);
            program.push(instruction(RETURN, 0, (0, 0)));
            // If it is equal, the instruction that refuses is skipped.
            let jump = program.len() - 2;
            (program[jump].jt, program[jump].jf) = (1, 0);
        }
        for exception in exceptions {
            let tests: Vec<_> = exception.iter().flat_map(|field| field.tests()).collect();
            for (index, test) in tests.iter().enumerate() {
                // Behind the other tests of the exception, two instructions each, and the one that refuses.
                let rest = (tests.len() - 1 - index) * 2 + 1;
                test.push(&mut program, rest as u8);
            }
            program.push(instruction(RETURN, 0, (0, 0)));
        }
        program.push(instruction(RETURN, u32::MAX, (0, 0)));
        if program.len() > MOST {
            let text = format!("a filter of {} instructions: at most {MOST}", program.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self { program })
    }

    /// Attaches the filter to a packet socket, in the place of an earlier one.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn attach(&self, socket: impl AsFd) -> io::Result<()> {
        let program =
            libc::sock_fprog { len: self.program.len() as u16, filter: self.program.as_ptr().cast_mut() };
        let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: the kernel reads `length` bytes from `program`, and as many instructions as it says, which are there; it writes neither.
        let code = unsafe {
            libc::setsockopt(
                socket,
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                from_ref(&program).cast(),
                length,
            )
        };
        check(code.into()).map(drop)
    }
}

/// A comparison of bytes of a frame with a number.
struct Test {
    load: u16,
    at: u32,
    value: u32,
}

impl Test {
    /// Appends the load and the jump, which skips so many instructions if the bytes are others.
    fn push(&self, program: &mut Vec<libc::sock_filter>, otherwise: u8) {
        program.push(instruction(self.load, self.at, (0, 0)));
        program.push(instruction(JUMP_EQUAL, self.value, (0, otherwise)));
    }
}

impl FrameField {
    fn tests(self) -> Vec<Test> {
        match self {
            Self::Half(at, value) => vec![Test { load: LOAD_HALF, at, value: value.into() }],
            Self::Sender([a, b, c, d, e, f]) => vec![
                Test {
                    load: LOAD_HALF,
                    at: LINK_LAYER + SENDER + 4,
                    value: u16::from_be_bytes([e, f]).into(),
                },
                Test { load: LOAD_WORD, at: LINK_LAYER + SENDER, value: u32::from_be_bytes([a, b, c, d]) },
            ],
        }
    }
}

const fn instruction(code: u16, k: u32, (jt, jf): (u8, u8)) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_stay_in_the_program() {
        let fields = [FrameField::Half(4, 7000), FrameField::Sender([2, 0, 0, 0, 0, 1])];
        let filter = FrameFilter::new(&fields, [&fields[..], &fields[..1]]).unwrap();
        for (at, it) in filter.program.iter().enumerate().filter(|(_, it)| it.code == JUMP_EQUAL) {
            let farthest = at + 1 + usize::from(it.jt.max(it.jf));
            assert!(farthest < filter.program.len(), "{at}");
        }
        // Three instructions for each of four conditions, three tests and one, each exception with its end, and the end.
        assert_eq!(filter.program.len(), 4 * 3 + (3 * 2 + 1) + (2 + 1) + 1);
        let many = vec![&fields[..]; 600];
        assert_eq!(FrameFilter::new(&fields, many).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
