package llmtest

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif"  // the formats that image.DecodeConfig knows
	_ "image/jpeg" // the same
	_ "image/png"  // the same
)

// Limits of rule 12.
const (
	maxImageBytes = 5 << 20
	maxImageSide  = 8000 // pixels
	manyImages    = 20   // with more of them in one request ...
	maxManySide   = 2000 // ... none may be larger
)

// images is rule 12.
func (r Rules) images(msgs []entry) *Refusal {
	n, large := 0, -1 // large: the first message with an image over maxManySide
	for i := range msgs {
		for p := range msgs[i].all() {
			if p.kind != imagePart {
				continue
			}
			n++
			if r.TextOnly {
				return refuse(12, i, "this model takes no images")
			}
			if msgs[i].role == "tool" {
				return refuse(12, i, "an image cannot stand in a tool message")
			}
			if p.bad != "" {
				return refuse(12, i, "the image cannot be read: %s", p.bad)
			}
			if p.data == nil {
				continue // it would be fetched
			}
			if len(p.data) > maxImageBytes {
				return refuse(12, i, "the image has %d bytes, more than %d", len(p.data), maxImageBytes)
			}
			width, height, media := imageSize(p.data)
			switch {
			case media == "":
				return refuse(12, i, "the bytes are no image")
			case media != p.media:
				return refuse(12, i, "the image is said to be %s, but its bytes are %s", p.media, media)
			case max(width, height) > maxImageSide:
				return refuse(12, i, "the image has %d x %d pixels, at most %d a side are allowed", width, height, maxImageSide)
			}
			if max(width, height) > maxManySide && large < 0 {
				large = i
			}
		}
	}
	if n > manyImages && large >= 0 {
		return refuse(12, large, "with %d images in a request none may have more than %d pixels a side", n, maxManySide)
	}
	return nil
}

// imageSize reads the size from the beginning of an image; the media type is
// "" when it is none.
func imageSize(b []byte) (width, height int, media string) {
	if w, h, ok := webpSize(b); ok {
		return w, h, "image/webp"
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return 0, 0, ""
	}
	return c.Width, c.Height, "image/" + format
}

// webpSize reads the header of the first chunk of a WebP file, in each of its
// three forms (RFC 9649).
func webpSize(b []byte) (width, height int, ok bool) {
	if len(b) < 30 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0, false
	}
	data := b[20:]
	switch string(b[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(data[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[8:]) & 0x3fff), true
	case "VP8L":
		bits := binary.LittleEndian.Uint32(data[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
	case "VP8X":
		u24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
		return u24(data[4:]) + 1, u24(data[7:]) + 1, true
	}
	return 0, 0, false
}
