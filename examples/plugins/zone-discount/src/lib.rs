//! Example scoring plugin: a discount for one zone.
