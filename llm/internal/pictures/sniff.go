package pictures

import (
	"bytes"
	"encoding/binary"
)

// Sniff finds the media type of an image, and its width and height in pixels,
// in the first bytes of its file. media is "" when it is none of the four types
// or when its beginning is broken.
func Sniff(b []byte) (media string, width, height int) {
	var ok bool
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		media = "image/png"
		// signature 8, length 4, "IHDR", width 4, height 4
		if ok = len(b) >= 24 && string(b[12:16]) == "IHDR"; ok {
			width, height = int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
		}
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		media = "image/gif"
		if ok = len(b) >= 10; ok {
			width, height = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
		}
	case bytes.HasPrefix(b, []byte("\xff\xd8")):
		media = "image/jpeg"
		width, height, ok = jpegSize(b)
	case len(b) >= 16 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		media = "image/webp"
		width, height, ok = webpSize(b[12:])
	}
	if !ok || width <= 0 || height <= 0 {
		return "", 0, 0
	}
	return media, width, height
}

// jpegSize goes from segment to segment (FF, marker, two bytes of length) to the
// one that begins a frame: precision 1, height 2, width 2. Bytes between two
// segments are passed over, as decoders do.
func jpegSize(b []byte) (width, height int, ok bool) {
	for i := 2; i+9 <= len(b); {
		marker := b[i+1]
		switch {
		case b[i] != 0xff || marker == 0xff: // padding
			i++
			continue
		case marker == 0x00 || marker == 0x01 || marker >= 0xd0 && marker <= 0xd7: // without a segment
			i += 2
			continue
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			return int(binary.BigEndian.Uint16(b[i+7:])), int(binary.BigEndian.Uint16(b[i+5:])), true
		case marker == 0xd9 || marker == 0xda: // end, or data
			return 0, 0, false
		}
		i += 2 + max(2, int(binary.BigEndian.Uint16(b[i+2:])))
	}
	return 0, 0, false
}

// webpSize reads the first chunk: four letters, four bytes of length, and then
// VP8: frame tag 3, start code 3, width 2, height 2 of 14 bits each;
// VP8L: signature 1, width and height less one of 14 bits each;
// VP8X: flags 4, width and height less one of 24 bits each.
func webpSize(b []byte) (width, height int, ok bool) {
	switch {
	case len(b) >= 18 && string(b[:4]) == "VP8 " && string(b[11:14]) == "\x9d\x01\x2a":
		return int(binary.LittleEndian.Uint16(b[14:]) & 0x3fff), int(binary.LittleEndian.Uint16(b[16:]) & 0x3fff), true
	case len(b) >= 13 && string(b[:4]) == "VP8L" && b[8] == 0x2f:
		bits := binary.LittleEndian.Uint32(b[9:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
	case len(b) >= 18 && string(b[:4]) == "VP8X":
		return int(b[12]) | int(b[13])<<8 | int(b[14])<<16 + 1, int(b[15]) | int(b[16])<<8 | int(b[17])<<16 + 1, true
	}
	return 0, 0, false
}
