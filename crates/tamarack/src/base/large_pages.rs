//! Large pages of memory for what is looked at all over: with small ones most looks wait for the address to be translated, too.

/// Bytes of a large page, which begins at a multiple of them.
pub const LARGE_PAGE_BYTES: u64 = 2 << 20;

/// Asks the system for large pages where one lies wholly in `bytes` bytes from `address` on, of memory that is the caller's and was
/// not touched yet: what is there already stays as it is. Advice: no byte changes, and a system without large pages goes on without.
#[cfg_attr(not(miri), expect(unsafe_code, reason = "the system's call"))]
pub fn prefer_large_pages<T>(address: *const T, bytes: usize) {
    let page = LARGE_PAGE_BYTES as usize;
    let before = address.cast::<u8>().align_offset(page).min(bytes);
    let large = (bytes - before) / page * page;
    if large == 0 {
        return;
    }
    #[cfg(not(miri))]
    {
        use rustix::mm::{Advice, madvise};
        let start = address.cast::<u8>().wrapping_add(before).cast_mut().cast();
        // SAFETY: this advice changes no byte, whatever is there.
        let advised = unsafe { madvise(start, large, Advice::LinuxHugepage) };
        let _advice_only = advised.is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_changes_nothing() {
        let large = if cfg!(miri) { 100 } else { 5 * LARGE_PAGE_BYTES as usize + 1 };
        for bytes in [0, 1, large] {
            let memory = vec![7_u8; bytes];
            prefer_large_pages(memory.as_ptr(), memory.len());
            assert!(memory.iter().all(|&byte| byte == 7));
        }
    }
}
