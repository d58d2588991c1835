//! An arena skiplist with concurrent inserts.
