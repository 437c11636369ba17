package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// TestPicturesLeaveWithTheSession: in Markdown as a file beside it or as data, in
// HTML as data, in a package as an attachment, which import takes back.
func TestPicturesLeaveWithTheSession(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "sessions")
	st, err := jsonl.New(root, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	id, err := st.Objects().Put(t.Context(), dot.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	s, err := outcrop.New(outcrop.NewHeader("seen", 1_800_000_000_000, ""), outcrop.Options{Now: func() int64 { return 1_800_000_000_000 }, NewID: func() string { ids++; return fmt.Sprint("m", ids) }})
	if err != nil {
		t.Fatal(err)
	}
	s.Append(outcrop.TurnStart{Turn: 1})
	for _, name := range []string{"a ](b).png", "again.png"} {
		if _, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{Role: message.User, Source: message.FromUser, Content: []message.Block{
			{Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"` + id + `","mediaType":"image/png","name":"` + name + `"}`)},
		}}}, outcrop.Tail, outcrop.NoSources); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Put(context.Background(), s.Header(), func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	must := func(args ...string) string {
		t.Helper()
		code, out, errs := run(t, dir, map[string]string{"HOME": dir}, args...)
		if code != 0 {
			t.Fatalf("%v: exit %d, %s", args, code, errs)
		}
		return out
	}
	at := "jsonl:" + root
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(dot.Bytes())
	if out := must("export", "seen", "--store", at); strings.Count(out, "]("+data+")") != 2 {
		t.Errorf("Markdown on stdout has no data: %s", out)
	}
	if out := must("export", "seen", "--store", at, "--format", "html"); strings.Count(out, `src="`+data+`"`) != 2 {
		t.Errorf("the page has no data: %s", out)
	}
	doc := filepath.Join(dir, "doc.md")
	out := must("export", "seen", "--store", at, "--out", doc)
	name := strings.TrimPrefix(id, "sha256:") + ".png"
	beside := filepath.Join(dir, "doc-files", name)
	if b, err := os.ReadFile(beside); err != nil || !bytes.Equal(b, dot.Bytes()) || !strings.Contains(out, "1 file beside it") {
		t.Errorf("%v, %s", err, out)
	}
	if b, _ := os.ReadFile(doc); strings.Count(string(b), "](doc-files/"+name+")") != 2 || !strings.Contains(string(b), `![a \](b).png](`) {
		t.Errorf("the document does not show it: %s", b)
	}
	if runtime.GOOS != "windows" {
		for _, p := range []string{doc, beside} {
			if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%s may be read by others: %v, %v", p, fi.Mode(), err)
			}
		}
	}
	pack := filepath.Join(dir, "p.zip")
	must("export", "seen", "--store", at, "--out", pack)
	there := filepath.Join(dir, "there", "sessions")
	must("import", pack, "--store", "jsonl:"+there)
	back, err := jsonl.New(there, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := back.Objects().Get(t.Context(), id); err != nil || !bytes.Equal(b, dot.Bytes()) {
		t.Errorf("the attachment did not come along: %v", err)
	}
}
