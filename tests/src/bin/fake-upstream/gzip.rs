//! A body that is small on the wire and large when it is unpacked (RFC 1951, 1952).

/// The letter `x`, `size` times and a few more, as gzip without its checksum: nobody should read that far.
pub(crate) fn bomb(size: usize) -> Vec<u8> {
    let mut bits = Bits {
        bytes: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff],
        free: 0,
    };
    // The last block, with the fixed codes.
    bits.push(&[1, 1, 0]);
    // The literal `x` (0x30 + 0x78), highest bit first.
    bits.push(&[1, 0, 1, 0, 1, 0, 0, 0]);
    for _ in 0..size / 258 {
        // "258 bytes", code 285, and "one back", code 0.
        bits.push(&[1, 1, 0, 0, 0, 1, 0, 1]);
        bits.push(&[0, 0, 0, 0, 0]);
    }
    bits.push(&[0, 0, 0, 0, 0, 0, 0]);
    bits.bytes
}

struct Bits {
    bytes: Vec<u8>,
    /// Unused bits of the last byte.
    free: u8,
}

impl Bits {
    fn push(&mut self, bits: &[u8]) {
        for bit in bits {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let last = self.bytes.last_mut().expect("a header is there");
            *last |= bit << (8 - self.free);
            self.free -= 1;
        }
    }
}
