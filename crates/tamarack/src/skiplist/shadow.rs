//! What loom watches in place of an arena's memory.
//!
//! Loom sees the accesses to its own types alone, and those are larger than words. So under `--cfg loom` the links of a list lie
//! here and not in the arena; and each access to a node's other words, which stay where they are, is one to a cell here as
//! well, so that loom finds a race for them. In other builds nothing is here, and every function is what it stands for.

pub(super) use self::imp::{Link, Shadow};

#[cfg(not(loom))]
mod imp {
    #![expect(unsafe_code, reason = "links are laid out by hand in the arena")]

    use crate::base::sync::PlainAtomicU64;

    /// A link where it lies in the arena.
    pub type Link = PlainAtomicU64;

    /// Nothing.
    #[derive(Debug)]
    pub struct Shadow;

    impl Shadow {
        /// The shadow of an arena of so many words.
        pub fn new(_words: usize) -> Self {
            Self
        }

        /// The link in `word`, which is at `address`.
        ///
        /// # Safety
        /// The arena has that word, and it is accessed only as an atomic as long as the shadow is borrowed.
        #[inline(always)]
        pub unsafe fn link(&self, _word: u32, address: *mut u64) -> &Link {
            // SAFETY: eight bytes, aligned as all words of an arena are; the rest is the caller's promise.
            unsafe { Link::from_ptr(address) }
        }

        /// The caller writes lengths, key and payload of the node at `place`.
        #[inline(always)]
        pub fn write(&self, _place: u32) {}

        /// The caller reads them.
        #[inline(always)]
        pub fn read(&self, _place: u32) {}
    }
}

#[cfg(loom)]
mod imp {
    #![expect(unsafe_code, reason = "has the interface of the other builds")]

    use loom::cell::UnsafeCell;

    use crate::base::sync::AtomicU64;

    /// A link beside the arena.
    pub type Link = AtomicU64;

    /// For each word of an arena what it is if it is a link, and what it is if it is a node's place.
    #[derive(Debug)]
    pub struct Shadow {
        links: Box<[Link]>,
        nodes: Box<[UnsafeCell<()>]>,
    }

    impl Shadow {
        /// The shadow of an arena of so many words.
        pub fn new(words: usize) -> Self {
            let links = (0..words).map(|_| Link::new(0)).collect();
            Self { links, nodes: (0..words).map(|_| UnsafeCell::new(())).collect() }
        }

        /// The link that stands for `word`.
        ///
        /// # Safety
        /// None is needed in this build.
        pub unsafe fn link(&self, word: u32, _address: *mut u64) -> &Link {
            &self.links[word as usize]
        }

        /// The caller writes lengths, key and payload of the node at `place`.
        pub fn write(&self, place: u32) {
            self.nodes[place as usize].with_mut(|_| ());
        }

        /// The caller reads them.
        pub fn read(&self, place: u32) {
            self.nodes[place as usize].with(|_| ());
        }
    }
}
