// Package attach takes a file that a person names into a message.
//
// What a file is its bytes say, not its name:
//
//	PNG, JPEG, GIF, WebP   an image block; the bytes go to the store's attachments
//	UTF-8 text             a text block, the name of the file above its text
//	anything else          refused, with what it seems to be
//
// An image block is what dsh writes:
//
//	{"type":"image","attachment":{"attachmentId":"sha256:…","mediaType":"image/png","width":640,"height":480,"bytes":20480,"name":"shot.png"}}
//
// Limits are checked here, before anything is stored, because what is in a
// session stays in every later request: MaxImage bytes, MaxPixels on each side,
// MaxText bytes of text. Of an image only the header is decoded.
package attach

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

const (
	// MaxImage is the largest image, in bytes.
	MaxImage = 5_000_000
	// MaxPixels is the longest side of an image.
	MaxPixels = 8000
	// MaxText is the longest text, in bytes.
	MaxText = 128 << 10
)

// Codes of refusals.
const (
	CodeKind    outcrop.Code = "ATTACHMENT_KIND"
	CodeSize    outcrop.Code = "ATTACHMENT_SIZE"
	CodeInvalid outcrop.Code = "INVALID_IMAGE"
)

// File makes message blocks of the file at path, which a person called name. An
// image is durable in objects when File returns. The errors wrap fs.ErrNotExist
// and the like for a file that cannot be read, and outcrop.ErrRefused, with a
// code, for one that cannot be attached.
func File(ctx context.Context, objects store.Objects, path, name string) ([]message.Block, error) {
	b, err := read(path, name)
	if err != nil {
		return nil, err
	}
	return Bytes(ctx, objects, b, name)
}

// Bytes is File for bytes that were read already.
func Bytes(ctx context.Context, objects store.Objects, b []byte, name string) ([]message.Block, error) {
	if img, ok := sniff(b); ok {
		block, err := image(ctx, objects, b, name, img)
		if err != nil {
			return nil, err
		}
		return []message.Block{block}, nil
	}
	block, err := text(b, name)
	if err != nil {
		return nil, err
	}
	return []message.Block{block}, nil
}

// problem is an error about the file that a person called name.
func problem(name string, code outcrop.Code, err error, msg, hint string) error {
	return &outcrop.Error{Op: "attach", Path: name, Code: code, Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint}
}

func refuse(name string, code outcrop.Code, msg, hint string) error {
	return problem(name, code, outcrop.ErrRefused, msg, hint)
}

// read reads a file. What is no regular file is not opened: a pipe would be
// waited for.
func read(path, name string) ([]byte, error) {
	unreadable := func(err error) error {
		msg := err.Error()
		if pe, ok := err.(*fs.PathError); ok {
			msg = pe.Err.Error()
		}
		return problem(name, "", err, msg, "")
	}
	fi, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(err)
	}
	switch {
	case fi.IsDir():
		return nil, refuse(name, CodeKind, "it is a folder", "name a file")
	case !fi.Mode().IsRegular():
		return nil, refuse(name, CodeKind, "it is not a regular file", "name a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxImage+1))
	if err != nil {
		return nil, unreadable(err)
	}
	return b, nil
}

// image checks and stores an image.
func image(ctx context.Context, objects store.Objects, b []byte, name string, img picture) (message.Block, error) {
	smaller := "make it smaller"
	switch {
	case len(b) > MaxImage:
		return message.Block{}, refuse(name, CodeSize, fmt.Sprintf("the image has more than the %s bytes that an image may have", term.Count(MaxImage)), smaller)
	case img.err != nil:
		return message.Block{}, refuse(name, CodeInvalid, fmt.Sprintf("it begins like an image (%s) and is none: %v", img.mediaType, img.err), "")
	case img.width < 1 || img.height < 1:
		return message.Block{}, refuse(name, CodeInvalid, "the image has no pixels", "")
	case img.width > MaxPixels || img.height > MaxPixels:
		return message.Block{}, refuse(name, CodeSize, fmt.Sprintf("the image has %s by %s pixels, a side may have %s", term.Count(int64(img.width)), term.Count(int64(img.height)), term.Count(MaxPixels)), smaller)
	case objects == nil:
		return message.Block{}, refuse(name, CodeKind, "this store keeps no attachments", "use another store, or attach text")
	}
	id, err := objects.Put(ctx, b)
	if err != nil {
		return message.Block{}, err
	}
	a := jsonwire.AppendStringMember([]byte{'{'}, "attachmentId", id)
	a = jsonwire.AppendStringMember(a, "mediaType", img.mediaType)
	a = jsonwire.AppendIntMember(a, "width", int64(img.width))
	a = jsonwire.AppendIntMember(a, "height", int64(img.height))
	a = jsonwire.AppendIntMember(a, "bytes", int64(len(b)))
	if base := shown(filepath.Base(name)); base != "" && base != "." {
		a = jsonwire.AppendStringMember(a, "name", base)
	}
	return message.Block{Type: message.ImageBlock, Attachment: append(a, '}')}, nil
}

// text makes a text block.
func text(b []byte, name string) (message.Block, error) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	// Where the bytes were cut a character may be.
	whole := b
	if len(b) > MaxText {
		whole = b[:MaxText]
		for n := 0; n < utf8.UTFMax && len(whole) > 0 && !utf8.Valid(whole); n++ {
			whole = whole[:len(whole)-1]
		}
	}
	if !utf8.Valid(whole) || bytes.IndexByte(whole, 0) >= 0 {
		return message.Block{}, refuse(name, CodeKind, kind(b)+" cannot be attached", "images (png, jpeg, gif, webp) and text can; convert it, or name its path so that a tool reads it")
	}
	if len(b) > MaxText {
		return message.Block{}, refuse(name, CodeSize, fmt.Sprintf("the text has more than the %s bytes that an attached text may have", term.Count(MaxText)), "name its path in the prompt, so that a tool reads the part that counts")
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return message.Block{}, refuse(name, CodeKind, "the file is empty", "")
	}
	return message.Text("File " + shown(name) + ":\n\n" + string(b)), nil
}

// kind says what bytes seem to be that are neither an image nor text.
func kind(b []byte) string {
	what, _, _ := strings.Cut(http.DetectContentType(b), ";")
	switch what {
	case "application/octet-stream", "text/plain":
		return "a binary file"
	case "application/pdf":
		return "a PDF document"
	}
	return "a file of type " + what
}

// shown is a name that stands in one line of text.
func shown(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, name)
}
