package attach_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/attach"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/memory"
)

func picture(t testing.TB, kind string, w, h int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.White, color.Black})
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp is the head of a WebP file, up to the size of the picture.
func webp(chunk, body string) []byte {
	return []byte("RIFF\x00\x00\x00\x00WEBP" + chunk + "\x00\x00\x00\x00" + body)
}

func TestAnImageIsAReferenceToAnObject(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"a.png", picture(t, "png", 3, 2), `"mediaType":"image/png","width":3,"height":2`},
		{"b.jpg", picture(t, "jpeg", 30, 20), `"mediaType":"image/jpeg","width":30,"height":20`},
		{"c.gif", picture(t, "gif", 5, 4), `"mediaType":"image/gif","width":5,"height":4`},
		{"named.png", picture(t, "jpeg", 7, 8), `"mediaType":"image/jpeg","width":7,"height":8`}, // the bytes count
		{"d.webp", webp("VP8 ", "\x00\x00\x00\x9d\x01\x2a\x40\x01\xf0\x80"), `"mediaType":"image/webp","width":320,"height":240`},
		{"e.webp", webp("VP8L", "\x2f\x3f\xc1\x3b\x00\x00\x00\x00\x00\x00"), `"mediaType":"image/webp","width":320,"height":240`},
		{"f.webp", webp("VP8X", "\x00\x00\x00\x00\x3f\x01\x00\xef\x00\x00"), `"mediaType":"image/webp","width":320,"height":240`},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := memory.New()
			dir := t.TempDir()
			path := filepath.Join(dir, c.name)
			if err := os.WriteFile(path, c.bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			blocks, err := attach.File(t.Context(), st.Objects(), path, "./"+c.name)
			if err != nil || len(blocks) != 1 {
				t.Fatalf("%v, %v", blocks, err)
			}
			id := blob.ID(c.bytes)
			want := `{"type":"image","attachment":{"attachmentId":"` + id + `",` + c.want + `,"bytes":` + string(jsonwire.AppendInt(nil, int64(len(c.bytes)))) + `,"name":"` + c.name + `"}}`
			if d := cmp.Diff(want, string(blocks[0].AppendJSON(nil))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if got, err := st.Objects().Get(t.Context(), id); err != nil || !bytes.Equal(got, c.bytes) {
				t.Errorf("%d bytes are stored, %v", len(got), err)
			}
			// A session takes the block as it is.
			s, err := outcrop.New(outcrop.NewHeader("s", 1, ""), outcrop.Options{NewID: func() string { return "m" }})
			if err != nil {
				t.Fatal(err)
			}
			ev, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{Content: blocks, Source: message.FromUser}}, outcrop.Tail, outcrop.NoSources)
			if err != nil {
				t.Fatal(err)
			}
			for named := range store.AttachmentIDs(ev.Data) {
				if named != id {
					t.Errorf("the event names %s", named)
				}
			}
		})
	}
}

func TestTextStandsInTheMessage(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"src/a.go", "package a\n", "File src/a.go:\n\npackage a\n"},
		{"näher.txt", "\ufeffä 日", "File näher.txt:\n\nä 日"},
		{"odd\nname", "x", "File odd?name:\n\nx"},
		{"image.png", "not an image at all", "File image.png:\n\nnot an image at all"},
		{"longest", strings.Repeat("x", attach.MaxText), "File longest:\n\n" + strings.Repeat("x", attach.MaxText)},
	} {
		blocks, err := attach.Bytes(t.Context(), nil, []byte(c.text), c.name)
		if err != nil || len(blocks) != 1 || blocks[0].Type != message.TextBlock || blocks[0].Text != c.want {
			t.Errorf("%q: %v, %v", c.name, blocks, err)
		}
	}
}

func TestWhatCannotBeAttachedIsRefusedAndNotStored(t *testing.T) {
	wide := picture(t, "png", attach.MaxPixels+1, 1)
	head := []byte("IHDR\x00\x00\x75\x30\x00\x00\x75\x30\x08\x02\x00\x00\x00")
	bomb := binary.BigEndian.AppendUint32(append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\r"), head...), crc32.ChecksumIEEE(head))
	for _, c := range []struct {
		name  string
		bytes []byte
		code  outcrop.Code
		msg   string
	}{
		{"a picture that is too wide", wide, attach.CodeSize, "8,001 by 1 pixels, a side may have 8,000 (ATTACHMENT_SIZE): make it smaller"},
		{"a picture with too many bytes", append(picture(t, "png", 1, 1), make([]byte, attach.MaxImage)...), attach.CodeSize, "more than the 5,000,000 bytes"},
		{"a picture that decodes to very much", bomb, attach.CodeSize, "30,000 by 30,000"},
		{"half a header", picture(t, "png", 3, 2)[:20], attach.CodeInvalid, "begins like an image (image/png) and is none"},
		{"a JPEG without a picture", []byte{0xff, 0xd8, 0xff, 0xd9}, attach.CodeInvalid, "image/jpeg"},
		{"a GIF without pixels", []byte("GIF89a\x00\x00\x00\x00\x00\x00\x00\x2c"), attach.CodeInvalid, "no pixels"},
		{"a WebP without a picture", webp("JUNK", "0123456789"), attach.CodeInvalid, "no picture"},
		{"a WebP that is cut off", webp("VP8L", "\x2f"), attach.CodeInvalid, "no picture"},
		{"a PDF", []byte("%PDF-1.7\x00\xff"), attach.CodeKind, "a PDF document cannot be attached"},
		{"a program", []byte("\x7fELF\x00\x01"), attach.CodeKind, "a binary file cannot be attached"},
		{"an archive", []byte("PK\x03\x04\xff\x00"), attach.CodeKind, "a file of type application/zip"},
		{"text with a zero byte", []byte("a\x00b"), attach.CodeKind, "a binary file"},
		{"text that is no UTF-8", []byte("caf\xe9"), attach.CodeKind, "a binary file"},
		{"a text that is too long", []byte(strings.Repeat("ä", attach.MaxText)), attach.CodeSize, "more than the 131,072 bytes"},
		{"a long text, cut inside a character", []byte("x" + strings.Repeat("ä", attach.MaxText)), attach.CodeSize, "more than the 131,072 bytes"},
		{"nothing", nil, attach.CodeKind, "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects := &counting{Objects: memory.New().Objects()}
			_, err := attach.Bytes(t.Context(), objects, c.bytes, "x")
			if !errors.Is(err, outcrop.ErrRefused) || outcrop.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.msg) {
				t.Errorf("code %s: %v", outcrop.CodeOf(err), err)
			}
			if objects.puts > 0 {
				t.Error("it was stored")
			}
		})
	}
	if _, err := attach.Bytes(t.Context(), nil, picture(t, "png", 1, 1), "x"); outcrop.CodeOf(err) != attach.CodeKind {
		t.Errorf("without a place for objects: %v", err)
	}
}

type counting struct {
	store.Objects
	puts int
}

func (c *counting) Put(ctx context.Context, b []byte) (string, error) {
	c.puts++
	return c.Objects.Put(ctx, b)
}

func TestAFileThatCannotBeReadIsSaidByTheNameThatWasGiven(t *testing.T) {
	dir := t.TempDir()
	if _, err := attach.File(t.Context(), nil, filepath.Join(dir, "none"), "none"); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "attach: none: ") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := attach.File(t.Context(), nil, dir, "."); outcrop.CodeOf(err) != attach.CodeKind {
		t.Errorf("a folder: %v", err)
	}
	if _, err := attach.File(t.Context(), nil, os.DevNull, "null"); outcrop.CodeOf(err) != attach.CodeKind {
		t.Errorf("a device: %v", err)
	}
	full := errors.New("disk full")
	if _, err := attach.Bytes(t.Context(), failing{full}, picture(t, "png", 1, 1), "x"); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Get(context.Context, string) ([]byte, error) { return nil, f.err }
func (f failing) Put(context.Context, []byte) (string, error) { return "", f.err }

func FuzzBytes(f *testing.F) {
	for _, kind := range []string{"png", "jpeg", "gif"} {
		f.Add(picture(f, kind, 3, 2))
	}
	f.Add(webp("VP8 ", "\x00\x00\x00\x9d\x01\x2a\x40\x01\xf0\x00"))
	f.Add([]byte("text"))
	f.Fuzz(func(t *testing.T, b []byte) {
		objects := memory.New().Objects()
		blocks, err := attach.Bytes(context.Background(), objects, b, "x")
		if err != nil {
			if !errors.Is(err, outcrop.ErrRefused) {
				t.Fatal(err)
			}
			return
		}
		for i := range blocks {
			text := blocks[i].AppendJSON(nil)
			if err := jsonwire.Strict(text); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if blocks[i].Type == message.ImageBlock {
				id, _ := jsonwire.Text(jsonwire.Get(blocks[i].Attachment, "attachmentId"))
				if got, err := objects.Get(context.Background(), id); err != nil || !bytes.Equal(got, b) {
					t.Fatalf("%s is not stored: %v", id, err)
				}
			}
		}
	})
}
