package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/view"
)

func TestAMessageIsWhoSpeaksAndWhat(t *testing.T) {
	for _, c := range []struct {
		name string
		typ  outcrop.Type
		data string
		want string
	}{
		{"a prompt", outcrop.TypeUserMessage, `{"content":[{"type":"text","text":"one\ntwo\u001b"}],"source":{"kind":"user"},"role":"user","id":"m"}`, "user [3]\n  one\n  two\\e\n"},
		{"nothing was said", outcrop.TypeAssistantMessage, `{"message":{"content":[],"source":{"kind":"model"},"role":"assistant","id":"m"},"interrupted":true}`, "assistant [3] interrupted (empty)\n"},
		{"a call", outcrop.TypeAssistantMessage, `{"message":{"content":[{"type":"tool-call","id":"c","name":"read","arguments":"{\"path\":\"a\"}"}],"source":{"kind":"model"},"role":"assistant","id":"m"}}`, "assistant [3]\n  read a\n"},
		{"a long result", outcrop.TypeToolResult, fmt.Sprintf(`{"message":{"content":[{"type":"tool-result","toolCallId":"c","isError":false,"content":[{"type":"text","text":%q}]}],"source":{"kind":"tool","callId":"c"},"role":"user","id":"m"}}`, strings.Repeat("x\n", 20)),
			"result [3]\n" + strings.Repeat("  x\n", 8) + "  (12 more lines; all of it: show TARGET --log --json, event 3)\n"},
		{"an image", outcrop.TypeUserMessage, `{"content":[{"type":"image","attachment":{"attachmentId":"sha256:0123456789abcdef0123456789abcdef","mediaType":"image/png","width":640,"height":480,"bytes":9,"name":"a\u001b.png"}},{"type":"image","attachment":{"attachmentId":"x"}},{"type":"image"}],"source":{"kind":"user"},"role":"user","id":"m"}`,
			"user [3]\n  [image a\\e.png 640x480 sha256:0123456789ab…]\n  [image x]\n  [image]\n"},
		{"no result", outcrop.TypeToolResult, `{"message":{"content":[{"type":"tool-result","toolCallId":"c","isError":false,"content":[]}],"source":{"kind":"tool","callId":"c"},"role":"user","id":"m"}}`, "result [3]\n  (no output)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			view.Printer{W: &out}.Message(outcrop.Event{Type: c.typ, Seq: 3, Data: []byte(c.data)})
			if out.String() != c.want {
				t.Errorf("got  %q\nwant %q", out.String(), c.want)
			}
		})
	}
}

func TestALongStratumShowsBothEnds(t *testing.T) {
	s, err := outcrop.Inspect(genlog.Header(1), func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(1, 400) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := s.Surface().Nodes()
	under := map[outcrop.Seq]outcrop.Replacement{
		nodes[20]: {Seq: nodes[20], Shadowed: nodes[:20]},
		nodes[0]:  {Seq: nodes[0], Shadowed: nodes[21:22]},
	}
	var out strings.Builder
	p := view.Printer{W: &out}
	p.Node(s.Log(), nodes[20], 4)
	p.Covered(s.Log(), under, nodes[20], 4)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 1+6+1+3+1 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	if !strings.HasPrefix(lines[2], "    └ ") || !strings.Contains(lines[8], "… 11 more nodes") {
		t.Errorf("the deeper stratum or what is left out is missing:\n%s", out.String())
	}
	for _, l := range lines {
		if term.Columns(l) > term.Width {
			t.Errorf("too wide: %s", l)
		}
	}
}
