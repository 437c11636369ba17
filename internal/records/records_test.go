package records_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// stored writes a log file and opens it for reading.
func stored(t *testing.T, name string, b []byte) store.Stored {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := jsonl.File(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sd, err := st.Read(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sd.Close() })
	return sd
}

func TestTheTextIsWhatIsStored(t *testing.T) {
	var plain, packed bytes.Buffer
	if _, err := genlog.Write(&plain, wire.Plain, true, 20_000); err != nil {
		t.Fatal(err)
	}
	if _, err := genlog.Write(&packed, wire.Zstd, true, 20_000); err != nil {
		t.Fatal(err)
	}
	odd := bytes.Replace(plain.Bytes(), []byte("\n"), []byte("\r\n\n"), 1)
	for _, c := range []struct {
		name, file string
		b, want    []byte
	}{
		{"a plain file", "a.jsonl", plain.Bytes(), plain.Bytes()},
		{"a compressed one", "a.jsonl.zstd", packed.Bytes(), plain.Bytes()},
		{"blank lines and CRLF", "a.jsonl", odd, odd},
		{"a torn tail is left out", "a.jsonl", append(bytes.Clone(plain.Bytes()), `{"type":"tur`...), plain.Bytes()},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			damage, err := records.WriteText(t.Context(), &out, stored(t, c.file, c.b))
			if damage != nil || err != nil {
				t.Fatalf("%v, %v", damage, err)
			}
			if !bytes.Equal(out.Bytes(), c.want) {
				t.Errorf("%d bytes are not the %d that are stored", out.Len(), len(c.want))
			}
		})
	}
}

func TestReadingStopsWhereItShould(t *testing.T) {
	all := func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(1, 50) {
			if !yield(r, nil) {
				return
			}
		}
	}
	last := outcrop.Seq(-1)
	for r, err := range records.Through(t.Context(), all, 7) {
		if err != nil {
			t.Fatal(err)
		}
		last = r.Last()
	}
	if last != 7 {
		t.Errorf("the last record ends with event %d", last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var end error
	for _, err := range records.Through(ctx, all, -1) {
		if n++; n == 3 {
			cancel()
		}
		end = err
	}
	if n != 4 || !errors.Is(end, context.Canceled) {
		t.Errorf("%d records, then %v", n, end)
	}
}
