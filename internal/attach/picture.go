package attach

import (
	"bytes"
	"encoding/binary"
	"errors"
	stdimage "image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
)

// picture is what the header of an image says.
type picture struct {
	mediaType     string
	width, height int
	err           error // the header cannot be read
}

// sniff tells an image by its first bytes and reads its header. ok is false when
// the bytes are no image of a kind that models take.
func sniff(b []byte) (p picture, ok bool) {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		p.mediaType = "image/png"
	case bytes.HasPrefix(b, []byte{0xff, 0xd8, 0xff}):
		p.mediaType = "image/jpeg"
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		p.mediaType = "image/gif"
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		p.mediaType = "image/webp"
		p.width, p.height, p.err = webp(b[12:])
		return p, true
	default:
		return p, false
	}
	c, _, err := stdimage.DecodeConfig(bytes.NewReader(b))
	p.width, p.height, p.err = c.Width, c.Height, err
	return p, true
}

var errWebP = errors.New("webp: no picture in its first chunk")

// webp reads the first chunk of a WebP file: VP8 (lossy), VP8L (lossless), or
// VP8X (extended). After its name and size:
//
//	VP8   3 bytes of frame tag, 9D 01 2A, then width and height in 14 bits of two bytes each
//	VP8L  2F, then width-1 and height-1 in 14 bits each
//	VP8X  4 bytes of flags, then width-1 and height-1 in 3 bytes each
func webp(b []byte) (width, height int, err error) {
	if len(b) < 8+10 {
		return 0, 0, errWebP
	}
	kind, b := string(b[:4]), b[8:]
	switch {
	case kind == "VP8 " && b[3] == 0x9d && b[4] == 0x01 && b[5] == 0x2a:
		return int(binary.LittleEndian.Uint16(b[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(b[8:]) & 0x3fff), nil
	case kind == "VP8L" && b[0] == 0x2f:
		v := binary.LittleEndian.Uint32(b[1:])
		return int(v&0x3fff) + 1, int(v>>14&0x3fff) + 1, nil
	case kind == "VP8X":
		three := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
		return three(b[4:]) + 1, three(b[7:]) + 1, nil
	}
	return 0, 0, errWebP
}
