//! The program that directs the frames of an interface to the sockets of its receive queues.
//!
//! It is attached by a link (`BPF_LINK_CREATE`, Linux 5.9 or later), which ends with its last file descriptor: when the
//! process is killed, the interface's frames go to the host again.

use cutline_sys::bpf::{Instruction, ProgramType, SocketMap, XdpMode, attach_xdp, load_program};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use std::io;

/// An attached program, and the sockets that it knows.
pub(crate) struct Program {
    sockets: SocketMap,
    mode: XdpMode,
    /// Attached for as long as this is open.
    _link: OwnedFd,
}

impl Program {
    /// Attaches to an interface: in the driver if it can, else in the kernel. All frames pass to the host until
    /// [`Program::redirect`] is called.
    ///
    /// # Errors
    /// When the process may not, or there is a program already (`EBUSY`, `EEXIST`).
    pub(crate) fn attach(interface: u32, queues: u32) -> io::Result<Self> {
        let sockets = SocketMap::new(queues)?;
        let program = load_program(ProgramType::Xdp, &code(sockets.as_fd().as_raw_fd()))?;
        let (link, mode) = match attach_xdp(&program, interface, XdpMode::Driver) {
            Ok(link) => (link, XdpMode::Driver),
            Err(error) if is_final(&error) => return Err(error),
            Err(_) => (attach_xdp(&program, interface, XdpMode::Generic)?, XdpMode::Generic),
        };
        Ok(Self { sockets, mode, _link: link })
    }

    /// Directs the frames of a receive queue to this socket.
    ///
    /// # Errors
    /// When the kernel refuses the socket.
    pub(crate) fn redirect(&self, queue: u32, socket: impl AsFd) -> io::Result<()> {
        self.sockets.put(queue, socket)
    }

    /// Returns the mode in which the program runs.
    pub(crate) const fn mode(&self) -> XdpMode {
        self.mode
    }
}

/// Returns whether the kernel would refuse the other mode as well.
fn is_final(error: &io::Error) -> bool {
    use Errno as E;
    matches!(Errno::from_io_error(error), Some(E::PERM | E::ACCESS | E::BUSY | E::EXIST | E::NODEV))
}

/// `return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS)`: without a socket for its queue, a frame
/// passes to the host. `sockets` is the map's file descriptor, which the kernel replaces by the map's address.
fn code(sockets: i32) -> [Instruction; 6] {
    /// `BPF_PSEUDO_MAP_FD`, in the place of a source register.
    const MAP: u8 = 1;
    /// `offsetof(struct xdp_md, rx_queue_index)`.
    const QUEUE: i16 = 16;
    const PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    [
        instruction(0x61, 2, 1, QUEUE, 0), // r2 = *(u32 *)(r1 + 16): which queue; r1 is the context
        instruction(0x18, 1, MAP, 0, sockets), // r1 = the map, as an instruction of twice the length
        instruction(0, 0, 0, 0, 0),        // its second half
        instruction(0xb7, 3, 0, 0, PASS),  // r3 = the result if the map has no such entry
        instruction(0x85, 0, 0, 0, REDIRECT_MAP), // r0 = bpf_redirect_map(r1, r2, r3)
        instruction(0x95, 0, 0, 0, 0),     // return r0
    ]
}

/// `struct bpf_insn`: the registers are bit fields of a byte, whose order is that of the machine's bytes.
const fn instruction(code: u8, destination: u8, source: u8, offset: i16, constant: i32) -> Instruction {
    let registers =
        if cfg!(target_endian = "little") { source << 4 | destination } else { destination << 4 | source };
    let ([o0, o1], [c0, c1, c2, c3]) = (offset.to_ne_bytes(), constant.to_ne_bytes());
    [code, registers, o0, o1, c0, c1, c2, c3]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that `llvm-mc -triple bpfel` makes of the source in the comments.
    #[test]
    #[cfg(target_endian = "little")]
    fn the_program_is_encoded_as_the_kernel_reads_it() {
        assert_eq!(
            code(0x0102).as_flattened(),
            [
                0x61, 0x12, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, //
                0x18, 0x11, 0x00, 0x00, 0x02, 0x01, 0x00, 0x00, //
                0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, //
                0xb7, 0x03, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, //
                0x85, 0x00, 0x00, 0x00, 0x33, 0x00, 0x00, 0x00, //
                0x95, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            ]
        );
    }

    #[test]
    fn the_kernel_runs_it_only_where_a_driver_cannot() {
        for (errno, refused) in [(Errno::BUSY, true), (Errno::PERM, true), (Errno::OPNOTSUPP, false)] {
            assert_eq!(is_final(&errno.into()), refused, "{errno}");
        }
    }
}
