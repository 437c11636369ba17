package transcript

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// Picture is the bytes of an image with the media type that they have and the
// ending of a file of that type. Without bytes, why says why there are none.
func (t *Transcript) Picture(ctx context.Context, b *Block) (raw []byte, mediaType, ending, why string) {
	objects := t.Objects()
	if objects == nil || b.Image.ID == "" {
		return nil, "", "", "it is not in the store"
	}
	raw, err := objects.Get(ctx, b.Image.ID)
	if err != nil {
		return nil, "", "", "it is missing in the store"
	}
	if mediaType, ending = sniff(raw); mediaType == "" {
		return nil, "", "", fmt.Sprintf("%s bytes that are no picture", term.Count(int64(len(raw))))
	}
	return raw, mediaType, ending, ""
}

// sniff tells a picture by its first bytes, which is all that a reader goes by.
// SVG is none here: it can hold programs.
func sniff(b []byte) (mediaType, ending string) {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png", ".png"
	case bytes.HasPrefix(b, []byte{0xff, 0xd8, 0xff}):
		return "image/jpeg", ".jpg"
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "image/gif", ".gif"
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "image/webp", ".webp"
	}
	return "", ""
}

// Cut splits a text of more than most bytes: three quarters of them from its
// head, the rest from its tail, both at the ends of lines where there are some
// near, and of characters. left is how many bytes are between. A negative most
// cuts nothing.
func Cut(s string, most int) (head, tail string, left int) {
	if most < 0 || len(s) <= most {
		return s, "", 0
	}
	h, t := most*3/4, most/4
	for h > 0 && s[h]&0xc0 == 0x80 {
		h--
	}
	if i := strings.LastIndexByte(s[:h], '\n'); i > h/2 {
		h = i + 1
	}
	at := len(s) - t
	for at < len(s) && s[at]&0xc0 == 0x80 {
		at++
	}
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 && i < t/2 {
		at += i + 1
	}
	return s[:h], s[at:], at - h
}

// Part says which part of a session the options choose, "" for all of it.
func (o *Options) Part() string {
	var parts []string
	switch {
	case o.FirstTurn == 0 && o.LastTurn == 0:
	case o.LastTurn == 0:
		parts = append(parts, fmt.Sprintf("from turn %d on", o.FirstTurn))
	case o.FirstTurn == o.LastTurn:
		parts = append(parts, fmt.Sprintf("turn %d", o.FirstTurn))
	default:
		parts = append(parts, fmt.Sprintf("turns %d to %d", max(o.FirstTurn, 1), o.LastTurn))
	}
	if o.Since > 0 {
		parts = append(parts, "since "+term.Time(o.Since))
	}
	if o.From > 0 {
		parts = append(parts, fmt.Sprintf("from event %d on", o.From))
	}
	if o.Before > 0 {
		parts = append(parts, fmt.Sprintf("up to event %d", o.Before-1))
	}
	return strings.Join(parts, ", ")
}
