package exchange_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/claudecode"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// A file in a program's folder, with a name as the program gives it, is never
// passed over in silence: it is imported or it is named.
func TestABrokenFileIsNamedAndNotPassedOver(t *testing.T) {
	const (
		uuid    = "11111111-2222-4333-8444-555555555555"
		rollout = "rollout-2026-03-01T10-00-00-" + uuid
		claude  = `{"parentUuid":null,"sessionId":"` + uuid + `","type":"user","message":{"role":"user","content":"hi"},"uuid":"` + uuid + `","timestamp":"2026-03-01T10:00:01.000Z","cwd":"/a"}` + "\n"
		meta    = `{"timestamp":"2026-03-01T10:00:01.000Z","type":"session_meta","payload":{"id":"` + uuid + `","cwd":"/a"}}` + "\n"
		prompt  = `{"timestamp":"2026-03-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}` + "\n"
		mark    = "\xef\xbb\xbf"
	)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := string(z.EncodeAll([]byte(meta+prompt), nil))
	for _, c := range []struct {
		name, file, content string
		good                bool
	}{
		{"cut in its first line", uuid + ".jsonl", `{"type":"user","x`, false},
		{"zero bytes", uuid + ".jsonl", strings.Repeat("\x00", 5000), false},
		{"many zero bytes", uuid + ".jsonl", strings.Repeat("\x00", 100_000), false},
		{"no text", uuid + ".jsonl", "\xff\xfe{}", false},
		{"an agent's", "agent-1.jsonl", `{"a":`, false},
		{"byte order mark", uuid + ".jsonl", mark + claude, true},
		{"rollout, byte order mark", rollout + ".jsonl", mark + meta + prompt, true},
		{"rollout, cut", rollout + ".jsonl", meta[:20], false},
		{"rollout, packed and cut", rollout + ".jsonl.zst", packed[:len(packed)-10], false},
		{"rollout, packed and changed", rollout + ".jsonl.zst", "\x28\xb5\x2f\xfd" + strings.Repeat("\xff", 50), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			found := 0
			for src, err := range exchange.Find(context.Background(), []exchange.Format{claudecode.Format(), codex.Format()}, dir, "") {
				if err != nil {
					t.Fatal(err)
				}
				found++
				r, err := (&exchange.Importer{Store: memory.New()}).Import(context.Background(), src)
				if err != nil {
					t.Fatal(err)
				}
				if good := r.Err == nil && len(r.Sessions) == 1 && r.Total(exchange.Dropped) == 0; good != c.good {
					t.Errorf("imported without a loss: %v, want %v: %v, %+v", good, c.good, r.Err, r.Sessions)
				}
				if !c.good && r.Err == nil {
					t.Error("no error says what is wrong with the file")
				}
			}
			if found != 1 {
				t.Fatalf("%d sources, want 1", found)
			}
		})
	}
}

// Whatever is neither a file nor a folder is refused at once: reading a pipe
// would wait for somebody who writes.
func TestADeviceIsNoSource(t *testing.T) {
	if fi, err := os.Stat(os.DevNull); err != nil || fi.Mode().IsRegular() {
		t.Skip("there is no device with a path here")
	}
	for _, from := range []string{"", codex.Name} {
		for _, err := range exchange.Find(context.Background(), []exchange.Format{claudecode.Format(), codex.Format()}, os.DevNull, from) {
			if !errors.Is(err, outcrop.ErrUnsupported) {
				t.Errorf("from %q: %v, want ErrUnsupported", from, err)
			}
		}
	}
}
