package pictures

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"testing"

	"github.com/outcrop-dev/outcrop/llm/internal/drawn"
)

func jpegOf(width, height int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func gifOf(width, height int) []byte {
	var b bytes.Buffer
	if err := gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black}), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// riff is a WebP file with one chunk.
func riff(chunk string) []byte { return []byte("RIFF\x40\x00\x00\x00WEBP" + chunk) }

func TestSniff(t *testing.T) {
	jpg := jpegOf(300, 20)
	tests := []struct {
		name          string
		in            []byte
		media         string
		width, height int
	}{
		{"PNG", drawn.PNG(300, 20), "image/png", 300, 20},
		{"JPEG", jpg, "image/jpeg", 300, 20},
		{"JPEG with padding and a comment before its frame", append([]byte("\xff\xd8\xff\xfe\x00\x04hi\xff\xff\xff\x01"), jpg[2:]...), "image/jpeg", 300, 20},
		{"JPEG with bytes between its segments", []byte("\xff\xd8x\xff\x00\xff\xc0\x00\x0b\x08\x00\x14\x01\x2c\x01"), "image/jpeg", 300, 20},
		{"GIF", gifOf(300, 20), "image/gif", 300, 20},
		{"WebP, lossy", riff("VP8 \x10\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x2c\x41\x14\x00"), "image/webp", 300, 20},
		{"WebP, lossless", riff("VP8L\x10\x00\x00\x00\x2f\x2b\xc1\x04\x00"), "image/webp", 300, 20},
		{"WebP, extended", riff("VP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x2b\x01\x00\x13\x00\x01"), "image/webp", 300, 65556},
		{"WebP of another form", riff("ABCD\x0a\x00\x00\x00\x00\x00\x00\x00\x2b\x01\x00\x13\x00\x01"), "", 0, 0},
		{"a PNG that is cut", drawn.PNG(3, 2)[:20], "", 0, 0},
		{"a JPEG that is cut", jpg[:20], "", 0, 0},
		{"a JPEG without a frame", []byte("\xff\xd8\xff\xd9\x00\x00\x00\x00\x00\x00\x00"), "", 0, 0},
		{"a JPEG whose segments have no length", []byte("\xff\xd8\xff\xfe\x00\x00\xff\xfe\x00\x00\x00\x00"), "", 0, 0},
		{"a GIF that is cut", []byte("GIF89a\x01"), "", 0, 0},
		{"no pixels", []byte("GIF89a\x00\x00\x01\x00"), "", 0, 0},
		{"text", []byte("<svg>"), "", 0, 0},
		{"nothing", nil, "", 0, 0},
	}
	for _, tt := range tests {
		if media, width, height := Sniff(tt.in); media != tt.media || width != tt.width || height != tt.height {
			t.Errorf("%s: %q, %d x %d, want %q, %d x %d", tt.name, media, width, height, tt.media, tt.width, tt.height)
		}
	}
}

// What the standard library can decode is found, with the same size.
func FuzzSniff(f *testing.F) {
	f.Add(drawn.PNG(3, 2))
	f.Add(jpegOf(3, 2))
	f.Add(gifOf(3, 2))
	f.Add(riff("VP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x2b\x01\x00\x13\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		media, width, height := Sniff(b)
		if (media == "") != (width == 0 && height == 0) || width < 0 || height < 0 {
			t.Fatalf("%q, %d x %d", media, width, height)
		}
		c, format, err := image.DecodeConfig(bytes.NewReader(b))
		if err == nil && c.Width > 0 && c.Height > 0 && (media != "image/"+format || width != c.Width || height != c.Height) {
			t.Fatalf("%q, %d x %d, but it is a %s, %d x %d", media, width, height, format, c.Width, c.Height)
		}
	})
}
