package lines_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop/exchange/lines"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// stored is a log file.
func stored(t testing.TB, name string, b []byte) transcript.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := jsonl.File(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return transcript.Stored(st, "")
}

func TestTheTextIsThatOfTheLog(t *testing.T) {
	var plain, packed bytes.Buffer
	if _, err := genlog.Write(&plain, wire.Plain, true, 100_000); err != nil {
		t.Fatal(err)
	}
	if _, err := genlog.Write(&packed, wire.Zstd, true, 100_000); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []bool{true, false} {
		for name, b := range map[string][]byte{"a.jsonl": plain.Bytes(), "a.jsonl.zstd": packed.Bytes()} {
			var out bytes.Buffer
			rep, err := lines.Write(t.Context(), &out, stored(t, name, b), lines.Options{Raw: raw})
			if err != nil || rep.Damage != nil || rep.Masked != 0 || !bytes.Equal(out.Bytes(), plain.Bytes()) {
				t.Errorf("%s, raw %v: %v, %v, %d masked, %d bytes are not the %d of the log", name, raw, err, rep.Damage, rep.Masked, out.Len(), plain.Len())
			}
		}
	}
	var out bytes.Buffer
	rep, err := lines.Write(t.Context(), &out, stored(t, "a.jsonl", plain.Bytes()), lines.Options{Raw: true, Before: 11})
	if err != nil || rep.Events != 11 {
		t.Errorf("%v, %d events", err, rep.Events)
	}
	again, err := lines.Write(t.Context(), &out, stored(t, "a.jsonl", bytes.Clone(out.Bytes())), lines.Options{})
	if err != nil || again.Events != 11 || again.Damage != nil {
		t.Errorf("the prefix is no log: %v, %+v", err, again)
	}
}

// ExampleWrite masks a log for somebody else.
func ExampleWrite() {
	st, _ := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	var out bytes.Buffer
	rep, err := lines.Write(context.Background(), &out, transcript.Stored(st, ""), lines.Options{})
	fmt.Println(rep.Header.ID, rep.Events, rep.Masked, err)
	// Output: sample 79 0 <nil>
}
