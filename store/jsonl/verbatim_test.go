package jsonl

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

func TestBytesAreTakenAsTheyAre(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		var file bytes.Buffer
		if _, err := genlog.Write(&file, enc, true, 200_000); err != nil {
			t.Fatal(err)
		}
		r, err := wire.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), enc)
		if err != nil {
			t.Fatal(err)
		}
		var d store.Digest
		for rec, err := range r.Records() {
			if err != nil {
				t.Fatal(err)
			}
			d.Add(rec)
		}
		st, err := New(filepath.Join(t.TempDir(), "sessions"), Options{Plain: enc == wire.Plain})
		if err != nil {
			t.Fatal(err)
		}
		h := r.Header()
		other := map[wire.Encoding]wire.Encoding{wire.Plain: wire.Zstd, wire.Zstd: wire.Plain}[enc]
		if taken, err := st.PutBytes(t.Context(), h, string(other), bytes.NewReader(nil), d.Sum()); taken || err != nil {
			t.Errorf("another encoding: %v, %v", taken, err)
		}
		for _, bad := range [][]byte{file.Bytes()[:file.Len()-7], nil, []byte("x\n"), append(bytes.Clone(file.Bytes()), 'x')} {
			if taken, err := st.PutBytes(t.Context(), h, string(enc), bytes.NewReader(bad), d.Sum()); !taken || err == nil {
				t.Errorf("%d bytes were taken", len(bad))
			}
			if _, err := st.Read(t.Context(), h.ID); !errors.Is(err, outcrop.ErrNotFound) {
				t.Errorf("something is there: %v", err)
			}
		}
		if _, err := st.PutBytes(t.Context(), h, string(enc), bytes.NewReader(file.Bytes()), "00"); !errors.Is(err, outcrop.ErrDamaged) {
			t.Errorf("another digest: %v", err)
		}
		if taken, err := st.PutBytes(t.Context(), h, string(enc), bytes.NewReader(file.Bytes()), d.Sum()); !taken || err != nil {
			t.Fatal(taken, err)
		}
		sd, err := st.Read(t.Context(), h.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer sd.Close()
		if b, _ := os.ReadFile(sd.Path()); !bytes.Equal(b, file.Bytes()) {
			t.Error("the file has other bytes")
		}
		if _, err := st.PutBytes(t.Context(), h, string(enc), bytes.NewReader(file.Bytes()), d.Sum()); !errors.Is(err, store.ErrExists) {
			t.Errorf("twice: %v", err)
		}
	}
}
