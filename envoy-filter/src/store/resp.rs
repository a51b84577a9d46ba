//! RESP2, the protocol of Redis: commands out, replies in.
//!
//! A reply comes in pieces of any size, from a peer that may be broken: every length is bounded,
//! and a reply that goes on beyond the bounds ends the stream.

/// The most that an unfinished reply may fill. The replies of scripts are below 2 KiB.
const LONGEST: usize = 64 << 10;
/// Elements of an array. A script replies four numbers for each of at most 32 limits, and one.
const MOST_ELEMENTS: usize = 1_024;
/// Arrays within arrays; scripts reply flat ones.
const DEEPEST: u32 = 2;

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A line such as `+OK`.
    Line(Vec<u8>),
    /// An error such as `-NOSCRIPT No matching script.`, without the sign.
    Error(Vec<u8>),
    /// A number.
    Integer(i64),
    /// A string; `None` for the one that is none.
    Text(Option<Vec<u8>>),
    /// An array; `None` for the one that is none.
    Array(Option<Vec<Reply>>),
}

impl Reply {
    /// The number that it is, or the numbers of an array of numbers.
    #[must_use]
    pub fn integers(&self) -> Option<Vec<i64>> {
        let items = match self {
            Self::Integer(number) => return Some(vec![*number]),
            Self::Array(Some(items)) => items,
            _ => return None,
        };
        let integer = |item: &Reply| match item {
            Reply::Integer(number) => Some(*number),
            _ => None,
        };
        items.iter().map(integer).collect()
    }
}

/// Bytes that are no reply, or one out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A command: an array of strings.
pub fn command<'a>(words: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        command.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        command.extend_from_slice(word);
        command.extend_from_slice(b"\r\n");
    }
    command
}

/// Reads replies from a stream of bytes.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// How much of `bytes` has been read.
    read: usize,
}

impl Decoder {
    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read.min(self.bytes.len()));
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next reply, or nothing if it has not come whole.
    ///
    /// # Errors
    /// [`Malformed`] if there is none; the stream cannot be read any further.
    pub fn reply(&mut self) -> Result<Option<Reply>, Malformed> {
        let rest = self.bytes.get(self.read..).unwrap_or_default();
        let mut reader = Reader { rest };
        match reader.reply(0) {
            Ok(reply) => {
                let length = rest.len().saturating_sub(reader.rest.len());
                self.read = self.read.saturating_add(length);
                Ok(Some(reply))
            }
            Err(Stop::Malformed) => Err(Malformed),
            Err(Stop::Incomplete) if rest.len() > LONGEST => Err(Malformed),
            Err(Stop::Incomplete) => Ok(None),
        }
    }
}

/// Why there is no reply.
enum Stop {
    Incomplete,
    Malformed,
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn reply(&mut self, depth: u32) -> Result<Reply, Stop> {
        let (&kind, line) = self.line()?.split_first().ok_or(Stop::Malformed)?;
        Ok(match kind {
            b'+' => Reply::Line(line.to_vec()),
            b'-' => Reply::Error(line.to_vec()),
            b':' => Reply::Integer(number(line)?),
            b'$' => Reply::Text(match length(line, LONGEST)? {
                Some(length) => Some(self.text(length)?.to_vec()),
                None => None,
            }),
            b'*' if depth < DEEPEST => Reply::Array(match length(line, MOST_ELEMENTS)? {
                Some(length) => {
                    let deeper = depth.saturating_add(1);
                    Some((0..length).map(|_| self.reply(deeper)).collect::<Result<_, _>>()?)
                }
                None => None,
            }),
            _ => return Err(Stop::Malformed),
        })
    }

    /// Up to the next CR LF.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let end = self.rest.windows(2).position(|pair| pair == b"\r\n").ok_or(Stop::Incomplete)?;
        self.text(end)
    }

    /// So many bytes and the CR LF that ends them.
    fn text(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let (text, rest) = self.rest.split_at_checked(length).ok_or(Stop::Incomplete)?;
        let (end, rest) = rest.split_first_chunk::<2>().ok_or(Stop::Incomplete)?;
        if end != b"\r\n" {
            return Err(Stop::Malformed);
        }
        self.rest = rest;
        Ok(text)
    }
}

fn number(line: &[u8]) -> Result<i64, Stop> {
    let text = core::str::from_utf8(line).map_err(|_| Stop::Malformed)?;
    text.parse().map_err(|_| Stop::Malformed)
}

/// A length, or the -1 that stands for nothing.
fn length(line: &[u8], most: usize) -> Result<Option<usize>, Stop> {
    match number(line)? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= most => Ok(Some(length)),
            _ => Err(Stop::Malformed),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEVERAL: &[u8] =
        b"*4\r\n:1\r\n:9\r\n:0\r\n:1000000\r\n-NOSCRIPT No matching script.\r\n+OK\r\n$-1\r\n$3\r\na\r\n\r\n*-1\r\n*0\r\n";

    fn all(decoder: &mut Decoder) -> Vec<Reply> {
        core::iter::from_fn(|| decoder.reply().unwrap()).collect()
    }

    #[test]
    fn replies_are_read_one_after_the_other() {
        let mut decoder = Decoder::default();
        decoder.feed(SEVERAL);
        let replies = all(&mut decoder);
        assert_eq!(replies[0].integers(), Some(vec![1, 9, 0, 1_000_000]));
        assert_eq!(replies[1], Reply::Error(b"NOSCRIPT No matching script.".to_vec()));
        assert_eq!(
            replies[2..],
            [
                Reply::Line(b"OK".to_vec()),
                Reply::Text(None),
                Reply::Text(Some(b"a\r\n".to_vec())),
                Reply::Array(None),
                Reply::Array(Some(Vec::new())),
            ]
        );
    }

    #[test]
    fn a_reply_that_comes_byte_by_byte_is_the_same() {
        let (mut whole, mut piecemeal) = (Decoder::default(), Decoder::default());
        whole.feed(SEVERAL);
        let mut replies = Vec::new();
        for byte in SEVERAL {
            piecemeal.feed(&[*byte]);
            replies.extend(all(&mut piecemeal));
        }
        assert_eq!(replies, all(&mut whole));
    }

    #[test]
    fn what_is_no_reply_ends_the_stream() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\r\n",
            b":x\r\n",
            b":9223372036854775808\r\n",
            b"$-2\r\n",
            b"$99999999999\r\n",
            b"$1\r\nab\r\n",
            b"*1025\r\n",
            b"*1\r\n*1\r\n*1\r\n:1\r\n",
        ] {
            let mut decoder = Decoder::default();
            decoder.feed(bytes);
            assert_eq!(decoder.reply(), Err(Malformed), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_reply_without_an_end_is_not_kept_for_ever() {
        let mut decoder = Decoder::default();
        decoder.feed(&[b'+'; LONGEST + 1]);
        assert_eq!(decoder.reply(), Err(Malformed));
    }

    #[test]
    fn a_command_is_an_array_of_its_words() {
        let bytes = command([b"GET".as_slice(), b"a\r\n\xff"].into_iter());
        assert_eq!(bytes, b"*2\r\n$3\r\nGET\r\n$4\r\na\r\n\xff\r\n");
    }

    proptest! {
        #[test]
        fn reading_any_bytes_ends(pieces: Vec<Vec<u8>>) {
            let mut decoder = Decoder::default();
            for piece in pieces {
                decoder.feed(&piece);
                while let Ok(Some(_)) = decoder.reply() {}
            }
        }
    }
}
