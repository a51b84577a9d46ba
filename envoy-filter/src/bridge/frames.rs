//! gRPC's framing of messages (gRPC over HTTP/2, "Length-Prefixed-Message"): a byte that says
//! whether the message is compressed, its length in four bytes, the highest first, and the message.

/// The longest message that a limiter sends: all the calls that may wait on a stream, by their
/// scripts' texts, which are below 16 KiB.
const LONGEST: u32 = 16 << 20;

/// Bytes before each message.
const PREFIX: usize = 5;

/// The prefix of a message of so many bytes. `None` if it is too long for one.
#[must_use]
pub fn prefix(length: usize) -> Option<[u8; PREFIX]> {
    let [a, b, c, d] = u32::try_from(length).ok()?.to_be_bytes();
    Some([0, a, b, c, d])
}

/// Takes the prefixes out of a stream that comes in pieces, of any size.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// The part of a prefix that has come.
    prefix: Vec<u8>,
    /// Bytes of the message that are still to come.
    left: usize,
}

/// The stream is not one of uncompressed messages of a reasonable length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAFrame;

impl Frames {
    /// What is left of a piece without the prefixes.
    ///
    /// # Errors
    /// [`NotAFrame`] for a prefix that no limiter sends; the stream cannot be read any further.
    pub fn strip(&mut self, mut piece: &[u8]) -> Result<Vec<u8>, NotAFrame> {
        let mut stripped = Vec::with_capacity(piece.len());
        while !piece.is_empty() {
            let wanted = if self.left > 0 { self.left } else { self.missing() };
            let (taken, rest) = piece.split_at(wanted.min(piece.len()));
            piece = rest;
            if self.left > 0 {
                stripped.extend_from_slice(taken);
                self.left = self.left.saturating_sub(taken.len());
            } else {
                self.prefix.extend_from_slice(taken);
                self.begin()?;
            }
        }
        Ok(stripped)
    }

    /// Bytes of the prefix that are still to come.
    fn missing(&self) -> usize {
        PREFIX.saturating_sub(self.prefix.len())
    }

    /// Begins a message once its prefix is whole.
    fn begin(&mut self) -> Result<(), NotAFrame> {
        let Ok([compressed, length @ ..]) = <[u8; PREFIX]>::try_from(self.prefix.as_slice()) else {
            return Ok(());
        };
        let length = u32::from_be_bytes(length);
        if compressed != 0 || length > LONGEST {
            return Err(NotAFrame);
        }
        self.prefix.clear();
        self.left = usize::try_from(length).map_err(|_| NotAFrame)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
        messages.iter().flat_map(|m| [&prefix(m.len()).unwrap(), m.as_slice()].concat()).collect()
    }

    #[test]
    fn a_compressed_or_endless_message_ends_the_stream() {
        assert_eq!(Frames::default().strip(&[1, 0, 0, 0, 1, 7]), Err(NotAFrame));
        assert_eq!(Frames::default().strip(&[0, 0xff, 0, 0, 0]), Err(NotAFrame));
    }

    #[test]
    fn an_empty_message_leaves_nothing() {
        let messages = [vec![], b"a".to_vec(), vec![]];
        assert_eq!(Frames::default().strip(&framed(&messages)), Ok(b"a".to_vec()));
    }

    proptest! {
        #[test]
        fn messages_come_through_whatever_the_pieces(
            messages: Vec<Vec<u8>>,
            cuts in proptest::collection::vec(1..9_usize, 1..50),
        ) {
            let stream = framed(&messages);
            let (mut frames, mut stripped, mut rest) = (Frames::default(), Vec::new(), &stream[..]);
            for size in cuts.into_iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at(size.min(rest.len()));
                stripped.extend(frames.strip(piece).unwrap());
                rest = after;
            }
            prop_assert_eq!(stripped, messages.concat());
        }

        #[test]
        fn stripping_any_bytes_ends_and_adds_none(pieces: Vec<Vec<u8>>) {
            let mut frames = Frames::default();
            for piece in pieces {
                let Ok(stripped) = frames.strip(&piece) else { break };
                prop_assert!(stripped.len() <= piece.len());
            }
        }
    }
}
