//! The framing of a body (RFC 9112, sections 6 and 7): Content-Length or chunked.

use crate::refusal::{Refusal, RefusalReason};
use petstore_base::http::limits::MAX_DROPPED_BYTES;

use crate::wire::request_line::{bad_request, is_token_byte};

/// The rest of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyDecoder {
    /// This many bytes; 0 if the body is complete or absent.
    Length(usize),
    Chunked(Chunked),
}

impl BodyDecoder {
    pub fn is_whole(&self) -> bool {
        matches!(
            self,
            BodyDecoder::Length(0)
                | BodyDecoder::Chunked(Chunked {
                    state: ChunkState::Whole,
                    ..
                })
        )
    }

    /// Moves body bytes from the start of `input` to `out`, and returns the number of bytes consumed.
    ///
    /// # Errors
    /// 400 for malformed chunks, 413 for a body that is too large, and 431 for too many extensions or trailer
    /// fields.
    pub fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Refusal> {
        match self {
            BodyDecoder::Length(left) => {
                let taken = input.len().min(*left);
                out.extend_from_slice(&input[..taken]);
                *left -= taken;
                Ok(taken)
            }
            BodyDecoder::Chunked(chunked) => chunked.decode(input, out),
        }
    }
}

/// The decoder of a chunked body. Nothing but CR LF ends a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunked {
    /// The most bytes of the body.
    most: usize,
    state: ChunkState,
    /// The digits of the current chunk's size so far.
    digits: usize,
    /// The bytes of the current chunk that are still to come.
    left: usize,
    /// Bytes of the body so far.
    length: usize,
    /// Bytes of extensions and trailer fields so far.
    dropped: usize,
}

/// The state of the decoder.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ChunkState {
    /// Within a chunk's size.
    Size,
    /// In whitespace after a chunk's size.
    SizeSpace,
    /// Within a chunk's extension, which is dropped.
    Extension,
    /// After the CR of the line with the size.
    SizeEnd,
    /// Within a chunk's data.
    Data,
    /// After a chunk's data: CR is next.
    DataEnd,
    /// After that CR.
    DataEndLf,
    /// At the start of a trailer line.
    TrailerStart,
    /// Within the name of a trailer field.
    TrailerName,
    /// Within the value of a trailer field, which is dropped.
    TrailerValue,
    /// After the CR of a trailer field.
    TrailerLf,
    /// After the CR of the empty line at the end.
    LastLf,
    /// At the end.
    Whole,
}

impl Chunked {
    /// A body of at most this many bytes.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            state: ChunkState::Size,
            digits: 0,
            left: 0,
            length: 0,
            dropped: 0,
        }
    }

    fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Refusal> {
        let mut at = 0;
        while at < input.len() && self.state != ChunkState::Whole {
            if self.state == ChunkState::Data {
                let taken = (input.len() - at).min(self.left);
                out.extend_from_slice(&input[at..at + taken]);
                at += taken;
                self.left -= taken;
                if self.left == 0 {
                    self.state = ChunkState::DataEnd;
                }
            } else {
                self.state = self.next(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// The state after a byte that is not a chunk's data.
    fn next(&mut self, byte: u8) -> Result<ChunkState, Refusal> {
        let has_size = self.state != ChunkState::Size || self.digits > 0;
        Ok(match (self.state, byte) {
            (ChunkState::Size, _) if byte.is_ascii_hexdigit() => self.add_digit(byte)?,
            (ChunkState::Size | ChunkState::SizeSpace | ChunkState::Extension, b'\r')
                if has_size =>
            {
                ChunkState::SizeEnd
            }
            (ChunkState::Size | ChunkState::SizeSpace, b';') if has_size => ChunkState::Extension,
            (ChunkState::Size, b' ' | b'\t') if has_size => ChunkState::SizeSpace,
            (ChunkState::SizeSpace, b' ' | b'\t') => self.drop_byte(ChunkState::SizeSpace)?,
            (ChunkState::Extension, _) if is_text(byte) => self.drop_byte(ChunkState::Extension)?,
            (ChunkState::SizeEnd, b'\n') if self.left == 0 => ChunkState::TrailerStart,
            (ChunkState::SizeEnd, b'\n') => self.begin_data()?,
            (ChunkState::DataEnd, b'\r') => ChunkState::DataEndLf,
            (ChunkState::DataEndLf, b'\n') => {
                self.digits = 0;
                ChunkState::Size
            }
            (ChunkState::TrailerStart, b'\r') => ChunkState::LastLf,
            (ChunkState::TrailerStart | ChunkState::TrailerName, _) if is_token_byte(byte) => {
                self.drop_byte(ChunkState::TrailerName)?
            }
            (ChunkState::TrailerName, b':') => self.drop_byte(ChunkState::TrailerValue)?,
            (ChunkState::TrailerValue, b'\r') => ChunkState::TrailerLf,
            (ChunkState::TrailerValue, _) if is_text(byte) => {
                self.drop_byte(ChunkState::TrailerValue)?
            }
            (ChunkState::TrailerLf, b'\n') => ChunkState::TrailerStart,
            (ChunkState::LastLf, b'\n') => ChunkState::Whole,
            _ => return Err(bad_request("The chunked body is not well-formed.")),
        })
    }

    fn add_digit(&mut self, byte: u8) -> Result<ChunkState, Refusal> {
        self.digits += 1;
        self.left = self.left * 16 + char::from(byte).to_digit(16).unwrap_or(0) as usize;
        // Sixteen digits: leading zeros are allowed, and nothing overflows.
        if self.digits > 16 || self.left > self.most {
            return Err(Refusal::new(RefusalReason::ContentTooLarge));
        }
        Ok(ChunkState::Size)
    }

    fn begin_data(&mut self) -> Result<ChunkState, Refusal> {
        self.length += self.left;
        if self.length > self.most {
            return Err(Refusal::new(RefusalReason::ContentTooLarge));
        }
        Ok(ChunkState::Data)
    }

    fn drop_byte(&mut self, next: ChunkState) -> Result<ChunkState, Refusal> {
        self.dropped += 1;
        if self.dropped > MAX_DROPPED_BYTES {
            let message = format!(
                "The chunk extensions and trailer fields are larger than {MAX_DROPPED_BYTES} bytes."
            );
            return Err(Refusal::because(RefusalReason::HeadersTooLarge, message));
        }
        Ok(next)
    }
}

/// Returns whether a byte is neither a control character nor a line end.
pub fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::http::limits::MAX_BODY_BYTES;

    /// Decodes in small pieces and in one, which must agree; returns the body and what follows it.
    fn decode(input: &[u8]) -> Result<(String, String), RefusalReason> {
        let whole = decode_pieces(input, input.len().max(1));
        for size in 1..8 {
            assert_eq!(
                whole,
                decode_pieces(input, size),
                "{size}: {:?}",
                String::from_utf8_lossy(input)
            );
        }
        whole
    }

    fn decode_pieces(input: &[u8], size: usize) -> Result<(String, String), RefusalReason> {
        let mut body = BodyDecoder::Chunked(Chunked::new(MAX_BODY_BYTES));
        let (mut out, mut rest) = (Vec::new(), Vec::new());
        for piece in input.chunks(size) {
            let taken = body.decode(piece, &mut out).map_err(|error| error.reason)?;
            rest.extend_from_slice(&piece[taken..]);
        }
        assert!(body.is_whole(), "unfinished");
        Ok((
            String::from_utf8(out).unwrap(),
            String::from_utf8(rest).unwrap(),
        ))
    }

    #[test]
    fn chunks_are_joined() {
        let decoded = |body: &str, rest: &str| Ok((body.to_owned(), rest.to_owned()));
        assert_eq!(decode(b"0\r\n\r\nGET"), decoded("", "GET"));
        assert_eq!(
            decode(b"3\r\nabc\r\n0A\r\n0123456789\r\n000\r\n\r\n"),
            decoded("abc0123456789", "")
        );
        assert_eq!(
            decode(b"1 \t;a=b;c=\"d\"\r\nx\r\n0 \r\nTrailer: x y\r\nMore:\r\n\r\n"),
            decoded("x", "")
        );
    }

    #[test]
    fn broken_chunks_are_rejected() {
        for input in [
            "\r\n",
            ";x\r\n",
            " \r\n",
            " 5\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            "1\nx\r\n",
            "1\rx",
            "1\r\nxy\r\n",
            "1\r\nx\n0\r\n\r\n",
            "1;a\nb\r\n",
            "1;a\0b\r\n",
            "0\r\n\n",
            "0\r\nTrailer: x\n\r\n",
            "0 0\r\n\r\n",
            "37 5\r\n",
            "1 x\r\n",
            "1\t;a\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\nname\r\n\r\n",
            "0\r\n: x\r\n\r\n",
            "0\r\nname : x\r\n\r\n",
            "0\r\nname: x\r\n folded\r\n\r\n",
        ] {
            assert_eq!(
                decode(input.as_bytes()),
                Err(RefusalReason::BadRequest),
                "{input:?}"
            );
        }
    }

    #[test]
    fn large_bodies_are_413() {
        let fits = format!(
            "8000\r\n{0}\r\n8000\r\n{0}\r\n0\r\n\r\n",
            "x".repeat(0x8000)
        );
        assert_eq!(decode(fits.as_bytes()).unwrap().0.len(), MAX_BODY_BYTES);
        for size in [MAX_BODY_BYTES, 0x8fff] {
            let fits = format!("{size:016x}\r\n{}\r\n0\r\n\r\n", "x".repeat(size));
            assert_eq!(decode(fits.as_bytes()).unwrap().0.len(), size);
        }
        let beyond = format!("8000\r\n{0}\r\n8001\r\n", "x".repeat(0x8000));
        for input in ["10001", "fffff", "00000000000000001", &beyond] {
            assert_eq!(
                decode(input.as_bytes()),
                Err(RefusalReason::ContentTooLarge),
                "{input:.20}"
            );
        }
    }

    #[test]
    fn long_trailers_and_extensions_are_431() {
        let endless = format!("0\r\n{}", "x: y\r\n".repeat(MAX_DROPPED_BYTES / 4 + 1));
        assert_eq!(
            decode(endless.as_bytes()),
            Err(RefusalReason::HeadersTooLarge)
        );
        let most = "x".repeat(MAX_DROPPED_BYTES);
        assert!(decode(format!("0\r\n{}:\r\n\r\n", &most[1..]).as_bytes()).is_ok());
        assert!(decode(format!("0\r\nx:{}\r\n\r\n", &most[2..]).as_bytes()).is_ok());
        assert!(decode(format!("0;{most}\r\n\r\n").as_bytes()).is_ok());
        assert_eq!(
            decode(format!("0\r\n{most}:").as_bytes()),
            Err(RefusalReason::HeadersTooLarge)
        );
        assert_eq!(
            decode(format!("0\r\nx:{most}").as_bytes()),
            Err(RefusalReason::HeadersTooLarge)
        );
        assert_eq!(
            decode(format!("0 {most} ").as_bytes()),
            Err(RefusalReason::BadRequest)
        );
        assert_eq!(
            decode(format!("0{} ", " ".repeat(MAX_DROPPED_BYTES + 1)).as_bytes()),
            Err(RefusalReason::HeadersTooLarge)
        );
        assert_eq!(
            decode(format!("0;x{most}").as_bytes()),
            Err(RefusalReason::HeadersTooLarge)
        );
    }
}
