package mcp

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// What is mended is an answer to the same request that the SDK can read; what
// needs no mending stays to the byte.
func FuzzMend(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}`,
		`{"id":"x","result":{"content":[{"type":"hologram","x":1},{"type":"image","data":""}, null, 7]},"result":{"content":[]}}`,
		`{"id":1,"result":{"content":[{"type":"x"}],"\u0063ontent":[{"type":"\ud800"}]}}`,
		`{"id":-1,"result":` + nested(1200) + `}`, `{"id":` + nested(1001) + `}`, `{"method":"m","id":1,"params":` + nested(1001) + `}`,
		`{"id":1,"result":{"content":[{"type":"y"}]`, `[`, ``, `"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		before := bytes.Clone(msg)
		got := mend(msg)
		if !bytes.Equal(before, msg) {
			t.Fatal("the message was written into")
		}
		if bytes.Equal(got, msg) {
			return
		}
		if !json.Valid(got) || depth(got) > maxDepth+1 {
			t.Fatalf("%q became %q", msg, got)
		}
		if id := jsonwire.Get(msg, "id"); string(jsonwire.Get(got, "id")) != string(id) {
			t.Fatalf("%q became %q: the id is another one", msg, got)
		}
		if again := mend(got); !bytes.Equal(again, got) {
			t.Fatalf("%q is mended again, to %q", got, again)
		}
	})
}
