//! Files that are written from front to back go to the device while they are written, so that the sync at their end has
//! little to wait for.

use super::{File, PAGE_BYTES};

/// Bytes after which writing begins: enough to lie together on the device.
const STEP_BYTES: u64 = 1 << 20;

/// How far a growing file is on its way to the device.
#[derive(Debug, Default)]
pub struct WriteBehind {
    begun: u64,
}

impl WriteBehind {
    /// All of `file` before `end` has been written to, and will not be again.
    pub fn written(&mut self, file: &dyn File, end: u64) {
        // A page that is written to once more would have to go to the device again.
        let end = end - end % PAGE_BYTES;
        if end >= self.begun + STEP_BYTES {
            // Advice alone: what cannot be written, the sync tells.
            file.write_behind(self.begun, end - self.begun).ok();
            self.begun = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::fault::{Call, Fault, FaultEnv};
    use crate::env::posix::posix_env;

    #[test]
    fn whole_pages_go_once_and_a_failure_is_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let (env, faults) = FaultEnv::new(posix_env());
        let file = env.fs.create_new(&directory.path().join("file")).expect("created");
        file.set_len(3 * STEP_BYTES).expect("extended");
        let mut behind = WriteBehind::default();
        for (end, calls) in [(1, 0), (STEP_BYTES - 1, 0), (STEP_BYTES + 1, 1), (2 * STEP_BYTES - 1, 1)] {
            behind.written(&*file, end);
            assert_eq!(faults.count(Call::WriteBehind), calls, "{end}");
        }
        faults.inject(Fault::on(Call::WriteBehind));
        for (end, calls) in [(2 * STEP_BYTES, 2), (2 * STEP_BYTES, 2), (3 * STEP_BYTES, 3)] {
            behind.written(&*file, end);
            assert_eq!(faults.count(Call::WriteBehind), calls, "{end}");
        }
        assert_eq!(faults.triggered(), 1);
    }
}
