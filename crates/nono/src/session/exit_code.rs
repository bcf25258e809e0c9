//! Exit code of a command that ended.

use nono_sys::wait::Ended;

pub(super) fn exit_code(ended: Ended) -> i32 {
    match ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}
