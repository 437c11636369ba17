package modelview_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/modelview"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// TestTheViewIsTheSurface compares the view at every prefix with what the log
// derives to.
func TestTheViewIsTheSurface(t *testing.T) {
	st, err := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sd, err := st.Read(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer sd.Close()
	s, err := outcrop.Inspect(sd.Header(), sd.Records(), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= s.Len(); n++ {
		v, err := modelview.Read(t.Context(), transcript.Stored(st, ""), modelview.Options{Before: outcrop.Seq(n)})
		if err != nil || v.Events != n {
			t.Fatalf("%v, %d events instead of %d", err, v.Events, n)
		}
		fold, err := outcrop.SurfaceAt(s.Log(), outcrop.Seq(n-1))
		if err != nil {
			t.Fatal(err)
		}
		want := outcrop.DeriveMessages(s.Log(), fold.Nodes)
		if len(want) != len(v.Nodes) {
			t.Fatalf("before %d: %d messages, %d are derived", n, len(v.Nodes), len(want))
		}
		for i, m := range want {
			if v.Nodes[i].Seq != m.Seq || !bytes.Equal(v.Nodes[i].Message.AppendJSON(nil), m.Raw) && v.Nodes[i].Message.ID != m.ID {
				t.Errorf("before %d: message %d is %s, derived is %s", n, i, v.Nodes[i].Message.AppendJSON(nil), m.Raw)
			}
		}
		h, ok := outcrop.RequestHeaderAt(s.Log(), outcrop.Seq(n-1))
		if ok != (v.Request != nil) || ok && !bytes.Equal(h.Raw, v.Request) {
			t.Errorf("before %d: another request header", n)
		}
	}
}

// ExampleRead counts what a model sees of a session.
func ExampleRead() {
	st, _ := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	v, err := modelview.Read(context.Background(), transcript.Stored(st, ""), modelview.Options{})
	cfg, _, tools := v.Config()
	fmt.Println(len(v.Nodes), cfg.Model, len(tools), err)
	// Output: 7 deepseek-chat 1 <nil>
}
