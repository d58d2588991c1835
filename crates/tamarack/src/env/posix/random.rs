//! The kernel's random numbers.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

use crate::env::Rng;

/// `getrandom(2)`.
#[derive(Debug)]
pub struct PosixRng;

impl Rng for PosixRng {
    fn random_u64(&self) -> io::Result<u64> {
        let mut bytes = [0_u8; 8];
        // The kernel never cuts a request of up to 256 bytes short, but a signal may interrupt the wait for the
        // pool to be seeded after boot.
        let filled = rustix::io::retry_on_intr(|| getrandom(&mut bytes, GetRandomFlags::empty()))?;
        if filled < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(u64::from_le_bytes(bytes))
    }
}
