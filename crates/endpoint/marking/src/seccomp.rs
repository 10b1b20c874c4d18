//! The verdict of a seccomp filter on a system call (seccomp(2)).
//!
//! A program that gives up system calls may be killed for one that the preloaded library makes in its name. So the library
//! evaluates each filter that the program installs for the calls that it would make, and leaves out those that are not
//! harmless. A filter is a program of classic BPF that loads words of `struct seccomp_data`.

/// An instruction, `struct sock_filter` of linux/filter.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// Instructions to skip where a condition holds.
    pub jt: u8,
    /// Instructions to skip where it does not hold.
    pub jf: u8,
    /// The constant.
    pub k: u32,
}

/// A system call in the form that filters read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the call.
    pub number: u32,
    /// The architecture, an `AUDIT_ARCH` value of linux/audit.h.
    pub architecture: u32,
    /// The arguments.
    pub arguments: [u64; 6],
}

/// The action, in the upper half of a filter's result.
const ACTION: u32 = 0xffff_0000;
const ALLOW: u32 = 0x7fff_0000;
const LOG: u32 = 0x7ffc_0000;
/// The call fails with the error in the lower half, and has no other effect.
const ERRNO: u32 = 0x0005_0000;

/// Length of `struct seccomp_data`, bytes.
const DATA: u32 = 64;
/// Words of memory that a filter has.
const MEMORY: usize = 16;
/// The longest filter that the kernel accepts.
const LONGEST: usize = 4096;

impl Call {
    /// Returns whether the filter lets the call happen or fail. A filter that cannot be evaluated does not.
    pub fn is_harmless(&self, filter: &[Instruction]) -> bool {
        let action = self.evaluate(filter).map(|result| result & ACTION);
        matches!(action, Some(ALLOW | LOG | ERRNO))
    }

    /// The word of `struct seccomp_data` at an offset in bytes. The instruction pointer, which is not known, is zero.
    fn word(&self, offset: u32) -> Option<u32> {
        match offset {
            0 => Some(self.number),
            4 => Some(self.architecture),
            8 | 12 => Some(0),
            _ if offset.is_multiple_of(4) => {
                let at = offset.checked_sub(16)?;
                let argument = self.arguments.get(at as usize / 8)?;
                let is_first = at.is_multiple_of(8);
                let is_low = is_first == cfg!(target_endian = "little");
                Some(if is_low { *argument as u32 } else { (*argument >> 32) as u32 })
            }
            _ => None,
        }
    }

    /// Runs a filter. Jumps only lead forward, so it ends.
    fn evaluate(&self, filter: &[Instruction]) -> Option<u32> {
        if filter.len() > LONGEST {
            return None;
        }
        let (mut a, mut x, mut memory) = (0_u32, 0_u32, [0_u32; MEMORY]);
        let mut next = 0_usize;
        loop {
            let Instruction { code, jt, jf, k } = *filter.get(next)?;
            next += 1;
            let operand = if code & 0x08 == 0 { k } else { x };
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            match code {
                // ld [k], ld #k, ld M[k], ld #len
                0x20 => a = self.word(k)?,
                0x00 => a = k,
                0x60 => a = *memory.get(k as usize)?,
                0x80 => a = DATA,
                // ldx #k, ldx M[k], ldx #len
                0x01 => x = k,
                0x61 => x = *memory.get(k as usize)?,
                0x81 => x = DATA,
                // st, stx
                0x02 => *memory.get_mut(k as usize)? = a,
                0x03 => *memory.get_mut(k as usize)? = x,
                // add, sub, mul, div, or, and, lsh, rsh, mod, xor, each with k or x; neg
                0x04 | 0x0c => a = a.wrapping_add(operand),
                0x14 | 0x1c => a = a.wrapping_sub(operand),
                0x24 | 0x2c => a = a.wrapping_mul(operand),
                0x34 | 0x3c => a = a.checked_div(operand)?,
                0x44 | 0x4c => a |= operand,
                0x54 | 0x5c => a &= operand,
                0x64 | 0x6c => a = a.checked_shl(operand)?,
                0x74 | 0x7c => a = a.checked_shr(operand)?,
                0x94 | 0x9c => a = a.checked_rem(operand)?,
                0xa4 | 0xac => a ^= operand,
                0x84 => a = a.wrapping_neg(),
                // ja, jeq, jgt, jge, jset
                0x05 => next = next.checked_add(k as usize)?,
                0x15 | 0x1d => next += jump(a == operand),
                0x25 | 0x2d => next += jump(a > operand),
                0x35 | 0x3d => next += jump(a >= operand),
                0x45 | 0x4d => next += jump(a & operand != 0),
                // ret #k, ret a
                0x06 => return Some(k),
                0x16 => return Some(a),
                // tax, txa
                0x07 => x = a,
                0x87 => a = x,
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCHITECTURE: u32 = 0xc000_003e;
    const KILL: u32 = 0x8000_0000;
    const TRAP: u32 = 0x0003_0000;

    fn statement(code: u16, k: u32) -> Instruction {
        Instruction { code, jt: 0, jf: 0, k }
    }

    fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
        Instruction { code, jt, jf, k }
    }

    fn call(number: u32, arguments: [u64; 6]) -> Call {
        Call { number, architecture: ARCHITECTURE, arguments }
    }

    /// A filter as a sandbox has it: one call leads to `action`, all others are allowed.
    fn all_but(number: u32, action: u32) -> [Instruction; 4] {
        [statement(0x20, 0), jump(0x15, number, 0, 1), statement(0x06, action), statement(0x06, ALLOW)]
    }

    #[test]
    fn a_call_is_harmless_if_it_is_allowed_or_fails() {
        let [refused, other] = [call(55, [0; 6]), call(56, [0; 6])];
        for (action, is_harmless) in
            [(KILL, false), (TRAP, false), (ERRNO | 1, true), (LOG, true), (0, false)]
        {
            let filter = all_but(55, action);
            assert_eq!((refused.is_harmless(&filter), other.is_harmless(&filter)), (is_harmless, true));
        }
    }

    #[test]
    fn arguments_and_architecture_are_seen() {
        // Allowed only with the second argument's low half 6, on this architecture.
        let filter = [
            statement(0x20, 4),
            jump(0x15, ARCHITECTURE, 1, 0),
            statement(0x06, KILL),
            statement(0x20, if cfg!(target_endian = "little") { 24 } else { 28 }),
            jump(0x15, 6, 0, 1),
            statement(0x06, ALLOW),
            statement(0x06, KILL),
        ];
        assert!(call(1, [9, 6 | 7 << 32, 0, 0, 0, 0]).is_harmless(&filter));
        assert!(!call(1, [6, 7, 0, 0, 0, 0]).is_harmless(&filter));
        assert!(!Call { architecture: 1, ..call(1, [0, 6, 0, 0, 0, 0]) }.is_harmless(&filter));
    }

    #[test]
    fn arithmetic_and_memory_work_as_in_the_kernel() {
        // ((40 + 2) << 1 ^ 0x1) stored, loaded into x, moved to a, and compared.
        let filter = [
            statement(0x00, 40),
            statement(0x04, 2),
            statement(0x64, 1),
            statement(0xa4, 1),
            statement(0x02, 3),
            statement(0x61, 3),
            statement(0x87, 0),
            jump(0x15, 85, 0, 2),
            statement(0x05, 0),
            statement(0x06, ALLOW),
            statement(0x06, KILL),
        ];
        assert!(call(0, [0; 6]).is_harmless(&filter));
    }

    #[test]
    fn a_filter_that_cannot_be_evaluated_is_not_harmless() {
        let any = call(0, [0; 6]);
        let endless = vec![statement(0x00, 0); LONGEST + 1];
        for filter in [
            &[][..],
            &[statement(0x20, 64), statement(0x06, ALLOW)],
            &[statement(0x20, 2), statement(0x06, ALLOW)],
            &[statement(0x34, 0), statement(0x06, ALLOW)],
            &[statement(0x05, u32::MAX), statement(0x06, ALLOW)],
            &[statement(0xffff, 0), statement(0x06, ALLOW)],
            &[statement(0x60, 16), statement(0x06, ALLOW)],
            &endless,
        ] {
            assert!(!any.is_harmless(filter), "{filter:?}");
        }
    }
}
