//! Writing eBPF programs of a few dozen instructions: named instructions, and labels for jumps.
//!
//! The encoding is that of RFC 9669.

use super::Instruction;

/// A register (RFC 9669 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Register {
    /// Result of calls and of the program.
    R0,
    /// First argument of calls; the context when the program starts.
    R1,
    /// Second argument.
    R2,
    /// Third argument.
    R3,
    /// Fourth argument.
    R4,
    /// Fifth argument.
    R5,
    /// Kept over calls.
    R6,
    /// Kept over calls.
    R7,
    /// Kept over calls.
    R8,
    /// Kept over calls.
    R9,
    /// The end of the stack, which cannot be changed.
    R10,
}

/// The size of a value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Size {
    /// Four bytes.
    Word = 0x00,
    /// Two bytes.
    Half = 0x08,
    /// One byte.
    Byte = 0x10,
    /// Eight bytes.
    Double = 0x18,
}

/// Condition of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Condition {
    /// Equal.
    Equal = 0x10,
    /// Greater, without sign.
    Greater = 0x20,
    /// Not equal.
    NotEqual = 0x50,
}

/// A place in a program that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A program that is being written.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    /// Place of each label.
    places: Vec<Option<usize>>,
    /// Jumps, and their targets.
    jumps: Vec<(usize, Label)>,
}

/// Instruction classes, and the source bit: a register instead of a constant.
const LOAD_CONSTANT: u8 = 0x00;
const LOAD: u8 = 0x61;
const STORE_CONSTANT: u8 = 0x62;
const STORE: u8 = 0x63;
const JUMP: u8 = 0x05;
const ARITHMETIC: u8 = 0x07;
const REGISTER: u8 = 0x08;

impl Assembler {
    /// An empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// A label that is placed later.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) -> &mut Self {
        assert!(self.places[label.0].is_none(), "a label has one place");
        self.places[label.0] = Some(self.code.len());
        self
    }

    /// `to = value`
    pub fn set(&mut self, to: Register, value: i32) -> &mut Self {
        self.push(ARITHMETIC | 0xb0, to, Register::R0, 0, value)
    }

    /// `to = value`, of 64 bits
    pub fn set_wide(&mut self, to: Register, value: u64) -> &mut Self {
        self.push(LOAD_CONSTANT | 0x18, to, Register::R0, 0, value as i32);
        self.push(0, Register::R0, Register::R0, 0, (value >> 32) as i32)
    }

    /// `to = from`
    pub fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.push(ARITHMETIC | 0xb0 | REGISTER, to, from, 0, 0)
    }

    /// `to += value`
    pub fn add(&mut self, to: Register, value: i32) -> &mut Self {
        self.push(ARITHMETIC, to, Register::R0, 0, value)
    }

    /// `to &= value`
    pub fn and(&mut self, to: Register, value: i32) -> &mut Self {
        self.push(ARITHMETIC | 0x50, to, Register::R0, 0, value)
    }

    /// `to |= value`
    pub fn or(&mut self, to: Register, value: i32) -> &mut Self {
        self.push(ARITHMETIC | 0x40, to, Register::R0, 0, value)
    }

    /// `to = *(from + offset)`
    pub fn load(&mut self, size: Size, to: Register, from: Register, offset: i16) -> &mut Self {
        self.push(LOAD | size as u8, to, from, offset, 0)
    }

    /// `*(to + offset) = from`
    pub fn store(&mut self, size: Size, to: Register, offset: i16, from: Register) -> &mut Self {
        self.push(STORE | size as u8, to, from, offset, 0)
    }

    /// `*(to + offset) = value`
    pub fn store_constant(&mut self, size: Size, to: Register, offset: i16, value: i32) -> &mut Self {
        self.push(STORE_CONSTANT | size as u8, to, Register::R0, offset, value)
    }

    /// Jumps.
    pub fn jump(&mut self, label: Label) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP, Register::R0, Register::R0, 0, 0)
    }

    /// Jumps if a register compares like this with a constant.
    pub fn jump_if(&mut self, left: Register, condition: Condition, right: i32, label: Label) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP | condition as u8, left, Register::R0, 0, right)
    }

    /// Jumps if two registers compare like this.
    pub fn jump_if_both(
        &mut self,
        left: Register,
        condition: Condition,
        right: Register,
        label: Label,
    ) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP | condition as u8 | REGISTER, left, right, 0, 0)
    }

    /// Calls a helper of the kernel by its number (bpf-helpers(7)). Registers 1 to 5 are lost.
    pub fn call(&mut self, helper: i32) -> &mut Self {
        self.push(JUMP | 0x80, Register::R0, Register::R0, 0, helper)
    }

    /// Ends the program with the value of register 0.
    pub fn exit(&mut self) -> &mut Self {
        self.push(JUMP | 0x90, Register::R0, Register::R0, 0, 0)
    }

    /// The finished program.
    ///
    /// # Panics
    /// If a jump leads to a label without a place.
    pub fn finish(mut self) -> Vec<Instruction> {
        for (from, label) in self.jumps {
            let to = self.places[label.0].expect("a label that is jumped to has a place");
            // Counted from the next instruction.
            let offset = i16::try_from(to as i64 - from as i64 - 1).expect("programs are short");
            self.code[from][2..4].copy_from_slice(&offset.to_ne_bytes());
        }
        self.code
    }

    fn push(&mut self, code: u8, to: Register, from: Register, offset: i16, value: i32) -> &mut Self {
        // The kernel's struct has the first register in the lower half of the byte on little-endian machines.
        let registers = if cfg!(target_endian = "little") {
            to as u8 | (from as u8) << 4
        } else {
            (to as u8) << 4 | from as u8
        };
        let ([o0, o1], [v0, v1, v2, v3]) = (offset.to_ne_bytes(), value.to_ne_bytes());
        self.code.push([code, registers, o0, o1, v0, v1, v2, v3]);
        self
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use Register::{R0, R1, R2, R6, R10};

    /// As RFC 9669 section 2.1 and 3 to 5 encode them.
    #[test]
    fn instructions_are_encoded() {
        let mut program = Assembler::new();
        program.copy(R6, R1).set(R0, -2).set_wide(R2, 0x1122_3344_5566_7788).add(R0, 8).and(R0, 3).or(R0, 92);
        program.load(Size::Word, R0, R6, 20).load(Size::Half, R0, R6, 0).load(Size::Byte, R0, R6, 1);
        program.load(Size::Double, R0, R6, 8).store(Size::Word, R10, -8, R0).store_constant(
            Size::Byte,
            R10,
            -1,
            5,
        );
        program.call(49).exit();
        let expected: [Instruction; 15] = [
            [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
            [0xb7, 0x00, 0, 0, 0xfe, 0xff, 0xff, 0xff],
            [0x18, 0x02, 0, 0, 0x88, 0x77, 0x66, 0x55],
            [0x00, 0x00, 0, 0, 0x44, 0x33, 0x22, 0x11],
            [0x07, 0x00, 0, 0, 8, 0, 0, 0],
            [0x57, 0x00, 0, 0, 3, 0, 0, 0],
            [0x47, 0x00, 0, 0, 92, 0, 0, 0],
            [0x61, 0x60, 20, 0, 0, 0, 0, 0],
            [0x69, 0x60, 0, 0, 0, 0, 0, 0],
            [0x71, 0x60, 1, 0, 0, 0, 0, 0],
            [0x79, 0x60, 8, 0, 0, 0, 0, 0],
            [0x63, 0x0a, 0xf8, 0xff, 0, 0, 0, 0],
            [0x72, 0x0a, 0xff, 0xff, 5, 0, 0, 0],
            [0x85, 0x00, 0, 0, 49, 0, 0, 0],
            [0x95, 0x00, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(program.finish(), expected);
    }

    #[test]
    fn jumps_are_counted_from_the_next_instruction() {
        let mut program = Assembler::new();
        let (start, end) = (program.label(), program.label());
        program.place(start).jump_if(R0, Condition::Equal, 7, end);
        program.jump_if_both(R0, Condition::Greater, R1, end);
        program.jump(start).place(end).exit();
        let code = program.finish();
        assert_eq!(code[0], [0x15, 0, 2, 0, 7, 0, 0, 0]);
        assert_eq!(code[1], [0x2d, 0x10, 1, 0, 0, 0, 0, 0]);
        assert_eq!(code[2], [0x05, 0, 0xfd, 0xff, 0, 0, 0, 0]);
    }

    #[test]
    #[should_panic(expected = "has a place")]
    fn a_jump_to_nowhere_is_refused() {
        let mut program = Assembler::new();
        let label = program.label();
        program.jump(label);
        program.finish();
    }
}
