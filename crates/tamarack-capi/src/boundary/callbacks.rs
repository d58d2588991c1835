//! Functions of a client that this library calls: the order of keys, destructors, and who is told a batch.
//!
//! They must return: a C++ exception or a `longjmp` out of one ends the process or worse, as it does in LevelDB.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::sync::Arc;

use super::arguments::{Lent, Text};

/// What a client wants to have passed to its functions.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct State(*mut c_void);

/// Called once with the state, when what it belongs to goes.
pub type Destructor = Option<unsafe extern "C" fn(State)>;
/// The order of two keys: negative, zero or positive.
pub type Compare = unsafe extern "C" fn(State, Lent, usize, Lent, usize) -> c_int;
/// The name of an order or a filter.
pub type Name = unsafe extern "C" fn(State) -> Text;
/// Told a put of a batch.
pub type OnPut = unsafe extern "C" fn(State, Lent, usize, Lent, usize);
/// Told a deletion of a batch.
pub type OnDelete = unsafe extern "C" fn(State, Lent, usize);
/// Makes a filter. It is never called.
pub type CreateFilter =
    Option<unsafe extern "C" fn(State, *const Lent, *const usize, c_int, *mut usize) -> *mut c_char>;
/// Asks a filter. It is never called.
pub type KeyMayMatch = Option<unsafe extern "C" fn(State, Lent, usize, Lent, usize) -> u8>;

/// A state with its destructor, which runs when this is dropped.
pub struct Owner {
    state: State,
    destructor: Destructor,
}

// SAFETY: LevelDB's interface asks that a state with its functions may be used and destroyed by any thread.
unsafe impl Send for Owner {}
// SAFETY: the same; and that functions may be called by several threads at once.
unsafe impl Sync for Owner {}

impl Owner {
    /// Takes over `state`.
    pub fn new(state: State, destructor: Destructor) -> Self {
        Self { state, destructor }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the client's function for its own state, called once.
            unsafe { destructor(self.state) };
        }
    }
}

/// An order of keys that a client has made.
pub struct ClientOrder {
    owner: Owner,
    compare: Compare,
    name: Name,
}

impl ClientOrder {
    /// The order of `compare`.
    pub fn new(owner: Owner, compare: Compare, name: Name) -> Self {
        Self { owner, compare, name }
    }

    /// The name that the client gives it, asked now.
    pub fn name(&self) -> Vec<u8> {
        // SAFETY: the client's function with its own state, which lives as long as `self`.
        let name = unsafe { (self.name)(self.owner.state) };
        name.bytes().to_vec()
    }
}

/// A [`ClientOrder`] under the name that a database stores.
pub struct NamedOrder {
    order: Arc<ClientOrder>,
    name: String,
}

impl NamedOrder {
    /// `order` under `name`.
    pub fn new(order: Arc<ClientOrder>, name: String) -> Self {
        Self { order, name }
    }
}

impl fmt::Debug for NamedOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedOrder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl tamarack::Comparator for NamedOrder {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let order = &*self.order;
        let (a, b) = (Lent::bytes(left), Lent::bytes(right));
        // SAFETY: the client's function with its own state, and two keys that outlive the call.
        let difference = unsafe { (order.compare)(order.owner.state, a, left.len(), b, right.len()) };
        difference.cmp(&0)
    }
}

/// Who is told the operations of a batch.
pub struct Listener {
    state: State,
    on_put: OnPut,
    on_delete: OnDelete,
}

impl Listener {
    /// The client's functions, which the caller promises to be there for the call that it passes them to.
    pub fn new(state: State, on_put: OnPut, on_delete: OnDelete) -> Self {
        Self { state, on_put, on_delete }
    }

    /// Tells a put.
    pub fn put(&self, key: &[u8], value: &[u8]) {
        let (k, v) = (Lent::bytes(key), Lent::bytes(value));
        // SAFETY: the client's function with its own state, and bytes that outlive the call.
        unsafe { (self.on_put)(self.state, k, key.len(), v, value.len()) };
    }

    /// Tells a deletion.
    pub fn delete(&self, key: &[u8]) {
        let k = Lent::bytes(key);
        // SAFETY: the client's function with its own state, and a key that outlives the call.
        unsafe { (self.on_delete)(self.state, k, key.len()) };
    }
}
