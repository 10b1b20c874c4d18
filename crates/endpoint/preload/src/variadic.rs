//! Functions with any number of arguments. These stay where they are: in registers, which are saved around the call of ours, and on the
//! stack.

use crate::libc_functions as real;
use crate::{socket, state};
use libc::{c_int, c_void};
use std::arch::naked_asm;

extern "C" fn note_dprintf(fd: c_int) -> *mut c_void {
    socket::written_by_libc(fd);
    real::dprintf()
}

extern "C" fn note_dprintf_checked(fd: c_int) -> *mut c_void {
    socket::written_by_libc(fd);
    real::dprintf_checked()
}

extern "C" fn note_execl() -> *mut c_void {
    state::sample_all(true);
    real::execl()
}

extern "C" fn note_execle() -> *mut c_void {
    state::sample_all(true);
    real::execle()
}

extern "C" fn note_execlp() -> *mut c_void {
    state::sample_all(true);
    real::execlp()
}

/// Calls `$note` with the first argument, then jumps to the function that it returns.
macro_rules! passes_on {
    ($name:ident, $note:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "sub rsp, 128",
                "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2",
                "movups [rsp + 48], xmm3", "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5",
                "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
                "call {note}",
                "mov r11, rax",
                "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]",
                "movups xmm3, [rsp + 48]", "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]",
                "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
                "add rsp, 128",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                note = sym $note
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                "stp x29, x30, [sp, #-16]!",
                "stp x0, x1, [sp, #-16]!", "stp x2, x3, [sp, #-16]!",
                "stp x4, x5, [sp, #-16]!", "stp x6, x7, [sp, #-16]!",
                "stp q0, q1, [sp, #-32]!", "stp q2, q3, [sp, #-32]!",
                "stp q4, q5, [sp, #-32]!", "stp q6, q7, [sp, #-32]!",
                "bl {note}",
                "mov x16, x0",
                "ldp q6, q7, [sp], #32", "ldp q4, q5, [sp], #32",
                "ldp q2, q3, [sp], #32", "ldp q0, q1, [sp], #32",
                "ldp x6, x7, [sp], #16", "ldp x4, x5, [sp], #16",
                "ldp x2, x3, [sp], #16", "ldp x0, x1, [sp], #16",
                "ldp x29, x30, [sp], #16",
                "br x16",
                note = sym $note
            );
        }
    };
}

// dprintf(3), and as programs call it that are built with `_FORTIFY_SOURCE`.
passes_on!(dprintf, note_dprintf);
passes_on!(__dprintf_chk, note_dprintf_checked);
// execl(3) and its siblings, which call execve(2) inside of libc.
passes_on!(execl, note_execl);
passes_on!(execle, note_execle);
passes_on!(execlp, note_execlp);
