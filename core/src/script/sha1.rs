//! SHA-1 (FIPS 180-4), by which Redis names a script, evaluated by the compiler.
//!
//! Redis knows no other name for a cached script. Nothing rests on the function being hard to
//! collide: the texts are our own.

/// Where in the last block the length of the text stands.
const LENGTH_AT: usize = 64_usize.saturating_sub(size_of::<usize>());

/// The digest of a text in lower-case hexadecimal, as `EVALSHA` takes it.
pub(super) const fn hex(text: &str) -> [u8; 40] {
    let mut hash = Sha1::NEW;
    let mut bytes = text.as_bytes();
    while let Some((byte, rest)) = bytes.split_first() {
        hash = hash.push(*byte);
        bytes = rest;
    }
    let length = text.len().wrapping_mul(8).to_be_bytes();
    let mut length = length.as_slice();
    hash = hash.push(0x80);
    while hash.filled != LENGTH_AT {
        hash = hash.push(0);
    }
    while let Some((byte, rest)) = length.split_first() {
        hash = hash.push(*byte);
        length = rest;
    }
    hash.digits()
}

#[derive(Clone, Copy)]
struct Sha1 {
    state: [u32; 5],
    /// The last sixteen words of the text, of which those of this block count.
    words: [u32; 16],
    /// The last four bytes of the text.
    word: u32,
    /// Bytes of this block, from 0 to 63.
    filled: usize,
}

impl Sha1 {
    const NEW: Self = Self {
        state: [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0],
        words: [0; 16],
        word: 0,
        filled: 0,
    };

    const fn push(mut self, byte: u8) -> Self {
        // Widening: u8 to u32; `From` is not const.
        self.word = self.word << 8 | byte as u32;
        self.filled = self.filled.wrapping_add(1) % 64;
        if self.filled.is_multiple_of(4) {
            self.words = shifted(self.words, self.word);
        }
        if self.filled == 0 { self.compressed() } else { self }
    }

    const fn compressed(mut self) -> Self {
        let mut words = self.words;
        let [mut a, mut b, mut c, mut d, mut e] = self.state;
        let mut round = 0_u8;
        while round < 80 {
            let (mix, constant) = match round {
                0..20 => (b & c | !b & d, 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let [word, _, w2, _, _, _, _, _, w8, _, _, _, _, w13, ..] = words;
            let sum = a.rotate_left(5).wrapping_add(mix).wrapping_add(e);
            let sum = sum.wrapping_add(constant).wrapping_add(word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
            words = shifted(words, (w13 ^ w8 ^ w2 ^ word).rotate_left(1));
            round = round.wrapping_add(1);
        }
        let [h0, h1, h2, h3, h4] = self.state;
        self.state = [
            h0.wrapping_add(a),
            h1.wrapping_add(b),
            h2.wrapping_add(c),
            h3.wrapping_add(d),
            h4.wrapping_add(e),
        ];
        self
    }

    const fn digits(self) -> [u8; 40] {
        let mut digits = [0; 40];
        let mut rest = digits.as_mut_slice();
        let mut words = self.state.as_slice();
        while let Some((word, later)) = words.split_first() {
            let mut shift = 32_u32;
            while shift > 0 {
                shift = shift.wrapping_sub(4);
                let Some((digit, after)) = { rest }.split_first_mut() else { return digits };
                *digit = match (*word >> shift & 0xf) as u8 {
                    value @ 0..10 => b'0'.wrapping_add(value),
                    value => b'a'.wrapping_add(value).wrapping_sub(10),
                };
                rest = after;
            }
            words = later;
        }
        digits
    }
}

/// The words without the first and with one more.
const fn shifted(words: [u32; 16], last: u32) -> [u32; 16] {
    let [_, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = words;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, last]
}

#[cfg(test)]
mod tests {
    use super::hex;
    use sha1::{Digest, Sha1};
    use std::prelude::rust_2024::*;

    #[test]
    fn the_digest_of_nothing_is_known_to_the_compiler() {
        const EMPTY: [u8; 40] = hex("");
        assert_eq!(&EMPTY, b"da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }

    #[test]
    fn a_second_implementation_agrees_at_every_length_of_a_block() {
        for length in 0..200 {
            let text = "weir and water ".chars().cycle().take(length).collect::<String>();
            let digest = Sha1::digest(&text);
            let digits: String = digest.iter().map(|byte| std::format!("{byte:02x}")).collect();
            assert_eq!(hex(&text), digits.as_bytes(), "{length}");
        }
    }
}
