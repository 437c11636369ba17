package portable_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/portable"
)

// A few frames of empty lines hold no text, and would be read for minutes.
func TestALogOfEmptyLinesWithoutEndIsRefused(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	log := z.EncodeAll([]byte(`{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0}`+"\n"), nil)
	blank := z.EncodeAll(bytes.Repeat([]byte{'\n'}, 64<<20), nil)
	for range 20 { // 1,280 MiB of them
		log = append(log, blank...)
	}
	const path = "sessions/1/session.jsonl.zstd"
	manifest := fmt.Sprintf(`{"format":"outcrop-portable","version":1,"sessions":[{"id":"s1","path":%q,"bytes":%d,"sha256":"%x","events":0,"digest":"sha256:%x"}],"attachments":[],"missing":[]}`,
		path, len(log), sha256.Sum256(log), sha256.Sum256(nil))
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	for _, m := range []struct {
		name string
		b    []byte
	}{{path, log}, {"manifest.json", []byte(manifest)}} {
		f, err := w.Create(m.name)
		if err == nil {
			_, err = f.Write(m.b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := portable.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(context.Background()); !errors.Is(err, outcrop.ErrDamaged) || !strings.Contains(err.Error(), "unpacks to more than") {
		t.Errorf("a package of %d bytes: %v, want that it unpacks to too much", file.Len(), err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if err := p.Verify(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
