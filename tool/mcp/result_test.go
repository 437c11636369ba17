package mcp

import (
	"bytes"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

// webp is the beginning of an image of a kind, with the bytes from 20 on.
func webp(kind, from20 string) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WEBP" + kind + "\x00\x00\x00\x00" + from20)
	return append(b, make([]byte, 20)...)
}

func TestWhatAnImageIsItsBytesSay(t *testing.T) {
	var j bytes.Buffer
	if err := jpeg.Encode(&j, image.NewGray(image.Rect(0, 0, 4, 5)), nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data []byte
		want string // part of the attachment, or of the note
	}{
		{"PNG", picture(3, 2), `"mediaType":"image/png","width":3,"height":2,`},
		{"JPEG", j.Bytes(), `"mediaType":"image/jpeg","width":4,"height":5,`},
		{"lossy WebP", webp("VP8 ", "\x00\x00\x00\x9d\x01\x2a\x40\x01\xf0\x00"), `"mediaType":"image/webp","width":320,"height":240,`},
		{"lossless WebP", webp("VP8L", "\x2f\x3f\xc1\x3b\x00"), `"mediaType":"image/webp","width":320,"height":240,`},
		{"extended WebP", webp("VP8X", "\x00\x00\x00\x00\x3f\x01\x00\xef\x00\x00"), `"mediaType":"image/webp","width":320,"height":240,`},
		{"WebP without a start", webp("VP8 ", "\x00\x00\x00\x00\x01\x2a\x40\x01\xf0\x00"), `not shown: it is no PNG, JPEG, GIF or WebP`},
		{"WebP that is cut", webp("VP8X", "")[:25], `not shown: it is no PNG, JPEG, GIF or WebP`},
		{"WebP of another kind", webp("VP9 ", ""), `not shown: it is no PNG, JPEG, GIF or WebP`},
		{"nothing", nil, `[image, image/said, 0 bytes, not shown: it is no PNG, JPEG, GIF or WebP]`},
		{"too wide", picture(8001, 1), `[image, image/png, 8001 x 1, not shown: a side has 1 to 8000 pixels]`},
		{"too long", make([]byte, maxImage+1), `[image, image/said, 5000001 bytes, not shown: over 5000000 bytes]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &keeper{}
			s := newServer(Server{Name: "x"}, Options{Objects: k})
			b := s.image(t.Context(), c.data, "image/said")
			kept := b.Type == message.ImageBlock
			if kept != (len(k.kept) == 1) || !strings.Contains(b.Text+string(b.Attachment), c.want) {
				t.Errorf("%+v, kept %d", b, len(k.kept))
			}
		})
	}
}
