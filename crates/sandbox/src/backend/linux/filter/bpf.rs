//! Small assembler for seccomp programs.
//!
//! A program is built from blocks, each of which either decides or falls through to the next. System calls are found by
//! a search tree over their numbers ([`dispatch`]): the kernel walks the program once for every call it knows when the
//! filter is installed, and a chain of seventy comparisons was a tenth of the time of a whole launch. Arguments that
//! the kernel takes as `int` are compared by their low half only, because that is all the kernel reads; 64-bit values
//! use [`Block::when_nonzero_64`].

use nono_sys::seccomp::Instruction;

const LD_ABS: u16 = 0x20;
const JEQ: u16 = 0x15;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;
const JA: u16 = 0x05;
const AND: u16 = 0x54;
const RET: u16 = 0x06;

const NR: u32 = 0;
const ARCH: u32 = 4;

/// Action of the kernel on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterAction {
    Allow,
    Errno(i32),
    Notify,
    Kill,
}

impl FilterAction {
    pub(crate) fn code(self) -> u32 {
        match self {
            FilterAction::Allow => 0x7fff_0000,
            FilterAction::Errno(errno) => 0x0005_0000 | (errno.unsigned_abs() & 0xffff),
            FilterAction::Notify => 0x7fc0_0000,
            FilterAction::Kill => 0x8000_0000,
        }
    }
}

/// Run of instructions that is entered at its start and leaves by returning or by falling off its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block(Vec<Instruction>);

/// Offset of the low half of an argument (little-endian machines only; checked where the architecture is named).
fn low(arg: u32) -> u32 {
    16 + 8 * arg
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code, jt, jf, k }
}

impl Block {
    pub(crate) fn new() -> Block {
        Block::default()
    }

    pub(crate) fn into_program(self) -> Vec<Instruction> {
        self.0
    }

    fn push(mut self, code: u16, jt: u8, jf: u8, k: u32) -> Block {
        self.0.push(instruction(code, jt, jf, k));
        self
    }

    pub(crate) fn ret(self, action: FilterAction) -> Block {
        self.push(RET, 0, 0, action.code())
    }

    /// Loads the system call number.
    pub(crate) fn load_number(self) -> Block {
        self.push(LD_ABS, 0, 0, NR)
    }

    pub(crate) fn load_arch(self) -> Block {
        self.push(LD_ABS, 0, 0, ARCH)
    }

    /// Loads the low half of an argument, masked.
    pub(crate) fn load_arg(self, arg: u32, mask: u32) -> Block {
        let block = self.push(LD_ABS, 0, 0, low(arg));
        if mask == u32::MAX { block } else { block.push(AND, 0, 0, mask) }
    }

    /// Runs `then` (which must decide on every path through it) if the loaded value equals `value`, else goes on.
    pub(crate) fn when(self, value: u32, then: Block) -> Block {
        self.branch(JEQ, value, then)
    }

    /// Runs `then` (of any length) if the loaded value is at least `value`, else goes on.
    pub(crate) fn when_at_least(mut self, value: u32, then: Block) -> Block {
        // One instruction less, where the jump is short enough.
        if u8::try_from(then.0.len()).is_ok() {
            return self.branch(JGE, value, then);
        }
        self.0.push(instruction(JGE, 1, 0, value));
        self.0.push(instruction(JA, 0, 0, u32::try_from(then.0.len()).unwrap_or(u32::MAX)));
        self.then(then)
    }

    /// Runs `then` if the loaded value has any of `bits`, else goes on.
    pub(crate) fn when_any(self, bits: u32, then: Block) -> Block {
        self.branch(JSET, bits, then)
    }

    /// Decides unless the loaded value equals `value`.
    pub(crate) fn unless(mut self, value: u32, action: FilterAction) -> Block {
        self.0.push(instruction(JEQ, 1, 0, value));
        self.ret(action)
    }

    /// Decides if the 64-bit argument is not zero.
    pub(crate) fn when_nonzero_64(self, arg: u32, action: FilterAction) -> Block {
        self.push(LD_ABS, 0, 0, low(arg)).unless(0, action).push(LD_ABS, 0, 0, low(arg) + 4).unless(0, action)
    }

    fn branch(mut self, code: u16, value: u32, then: Block) -> Block {
        // A block too long for a short jump is a bug in the table; the tests assemble every table there is.
        let skip = u8::try_from(then.0.len()).unwrap_or(u8::MAX);
        debug_assert!(usize::from(skip) == then.0.len(), "block too long");
        self.0.push(instruction(code, 0, skip, value));
        self.0.extend(then.0);
        self
    }

    /// Appends another block.
    pub(crate) fn then(mut self, other: Block) -> Block {
        self.0.extend(other.0);
        self
    }
}

/// Decides by the loaded number: the block of its rule, else allow. Rules are sorted and their numbers differ.
pub(crate) fn dispatch(rules: &[(u32, Block)]) -> Block {
    match rules {
        [] => Block::new().ret(FilterAction::Allow),
        [(number, then)] => Block::new().when(*number, then.clone()).ret(FilterAction::Allow),
        _ => {
            let (left, right) = rules.split_at(rules.len() / 2);
            Block::new().when_at_least(right[0].0, dispatch(right)).then(dispatch(left))
        }
    }
}

/// Call as a filter sees it; used by the tests' interpreter.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilteredCall {
    pub(crate) arch: u32,
    pub(crate) nr: u32,
    pub(crate) args: [u64; 6],
}

/// Runs a program as the kernel would, and returns the action word.
#[cfg(test)]
pub(crate) fn interpret(program: &[Instruction], call: FilteredCall) -> u32 {
    let load = |offset: u32| -> u32 {
        match offset {
            NR => call.nr,
            ARCH => call.arch,
            o => {
                let arg = call.args[((o - 16) / 8) as usize];
                let word = if (o - 16).is_multiple_of(8) { arg } else { arg >> 32 };
                u32::try_from(word & 0xffff_ffff).unwrap()
            }
        }
    };
    let (mut pc, mut acc) = (0usize, 0u32);
    loop {
        let i = program[pc];
        pc += 1;
        let jump = |taken: bool| usize::from(if taken { i.jt } else { i.jf });
        match i.code {
            LD_ABS => acc = load(i.k),
            AND => acc &= i.k,
            JA => pc += usize::try_from(i.k).unwrap(),
            JEQ => pc += jump(acc == i.k),
            JGE => pc += jump(acc >= i.k),
            JSET => pc += jump(acc & i.k != 0),
            RET => return i.k,
            other => panic!("unknown instruction {other:#x}"),
        }
    }
}
