package masking_test

import (
	"bytes"
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/masking"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/secret"
)

// key looks like one, and is none.
const key = "sk-proj-Zq8vT3mN7xK2pL9wR4yB6cD1fG5hJ0sA" + "QeUiOoPa"

func records(events []outcrop.Event) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for _, ev := range events {
			if !yield(outcrop.Record{Event: ev}, nil) {
				return
			}
		}
	}
}

func lines(t testing.TB, recs iter.Seq2[outcrop.Record, error]) []byte {
	t.Helper()
	var out []byte
	for r, err := range recs {
		if err != nil {
			t.Fatal(err)
		}
		if r.Run != nil {
			out = append(r.Run.AppendLine(out), '\n')
		} else {
			out = append(r.AppendJSON(out), '\n')
		}
	}
	return out
}

func TestALogWithoutSecretsPassesToTheByte(t *testing.T) {
	var events []outcrop.Event
	for e := range genlog.Events(3, 2000) {
		events = append(events, e)
	}
	var m masking.Masker
	if !bytes.Equal(lines(t, m.Log(records(events))), lines(t, records(events))) || m.Found != 0 {
		t.Errorf("%d places were masked in a log that has none", m.Found)
	}
}

// TestAKeyIsFoundHoweverItWasStreamed cuts a text that holds a key into chunks
// at any places.
func TestAKeyIsFoundHoweverItWasStreamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z ]{0,20}`).Draw(t, "before") + " " + key + " " + rapid.StringMatching(`[a-z ]{0,20}`).Draw(t, "behind")
		call := rapid.Bool().Draw(t, "call")
		if call {
			text = `{"command":"curl -H 'x: ` + strings.TrimSpace(text) + `'"}`
		}
		var events []outcrop.Event
		add := func(data string) {
			events = append(events, outcrop.Event{Type: outcrop.TypeAssistantChunk, Seq: outcrop.Seq(len(events)), Time: 7, Data: []byte(data)})
		}
		chunk := func(c message.Chunk) { add(`{"turn":1,"step":1,"chunk":` + string(c.AppendJSON(nil)) + `}`) }
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(12, len(rest))).Draw(t, "piece")
			c := message.Chunk{Type: message.TextDelta, Text: rest[:n]}
			if call {
				c.Type, c.ID, c.Name = message.ToolCallDelta, "call_1", "shell"
			}
			chunk(c)
			rest = rest[n:]
			if rapid.IntRange(0, 9).Draw(t, "between") == 0 {
				events = append(events, outcrop.Event{Type: outcrop.TypeInboxSpliced, Seq: outcrop.Seq(len(events)), Data: []byte(`{}`)})
			}
		}
		chunk(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Stop}})
		var m masking.Masker
		joined := ""
		n := outcrop.Seq(0)
		for r, err := range m.Log(records(events)) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Seq != n {
				t.Fatalf("event %d comes as %d", n, r.Seq)
			}
			n++
			c, _ := message.ParseChunk(jsonwire.Get(r.Data, "chunk"))
			joined += c.Text
		}
		if int(n) != len(events) || m.Found == 0 || strings.Contains(joined, key[:12]) || len(secret.Find(joined)) > 0 {
			t.Fatalf("%d of %d events, %d found: %s", n, len(events), m.Found, joined)
		}
		if call && jsonwire.Valid([]byte(joined)) != nil {
			t.Fatalf("the arguments are no JSON any more: %s", joined)
		}
	})
}

func TestIDsStayAndArgumentsStayObjects(t *testing.T) {
	var m masking.Masker
	msg := m.Message(message.Message{ID: key, Role: message.Assistant,
		Content: []message.Block{
			message.Reasoning("the key is " + key),
			message.ToolCall(key, "shell", `{"env":{"API_KEY":"hunter2hunter2"},"n":1.0,"command":"echo \"`+key+`\""}`),
		},
		Source: message.Source{Kind: "model", Provider: "p", Model: "m", ReplayState: []byte(`{"signature":"x"}`)}})
	call := msg.Content[1]
	if msg.ID != key || call.ID != key {
		t.Error("an id was masked")
	}
	if msg.Source.ReplayState != nil {
		t.Error("a signature is kept over a text that changed")
	}
	if want := `{"env":{"API_KEY":"[masked:secret]"},"n":1.0,"command":"echo \"[masked:api-key]\""}`; call.Arguments != want {
		t.Errorf("got  %s\nwant %s", call.Arguments, want)
	}
	if m.Found != 3 {
		t.Errorf("%d places", m.Found)
	}
	raw := masking.Masker{Raw: true}
	if got := raw.Text(key); got != key || raw.Found != 0 {
		t.Error("raw text was masked")
	}
}

func TestANameThatIsAKeyIsMasked(t *testing.T) {
	var m masking.Masker
	other := strings.ToUpper(key[:len(key)-8]) // no key: it stays
	in := `{"a":{"` + key + `":{"` + key + `x":1},"b":[2],"` + key + `y":"z"},"` + other[:8] + `":3}`
	want := `{"a":{"[masked:api-key]":{"[masked:api-key]":1},"b":[2],"[masked:api-key] 2":"z"},"` + other[:8] + `":3}`
	if got := string(m.JSON([]byte(in))); got != want || m.Found != 3 {
		t.Errorf("%d places\ngot  %s\nwant %s", m.Found, got, want)
	}
	if got := m.Arguments(in); got != want {
		t.Errorf("arguments: %s", got)
	}
}

func TestAMaskedLogIsStillALog(t *testing.T) {
	var events []outcrop.Event
	for e := range genlog.Events(5, 600) {
		if data := bytes.Replace(e.Data, []byte(`"text":"`), []byte(`"text":"`+key+" "), 1); e.Type.Surface() {
			e = e.Upgraded(e.Type, data).Current()
		}
		events = append(events, e)
	}
	var m masking.Masker
	s, err := outcrop.Inspect(m.Header(genlog.Header(5)), m.Log(records(events)), outcrop.Options{})
	if err != nil || s.Len() != len(events) || m.Found == 0 {
		t.Fatalf("%v, %d of %d events, %d found", err, s.Len(), len(events), m.Found)
	}
	if bytes.Contains(lines(t, func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}), []byte(key)) {
		t.Error("a key is left")
	}
}

// FuzzJSON: what was JSON is JSON, with the same names in the same order, but for
// those that are secret themselves.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"password":"` + key + `"}`, `{"a":[{"arguments":"{\"token\":\"` + key + `\"}"}]}`, `["` + key + `",1.0,{"id":"` + key + `"}]`, `"` + key + `"`,
		`{"` + key + `":{"` + key + `":1,"a":2}}`, `{"arguments":"not JSON ` + key + `"}`, `{"API_KEY":{"a":"` + key + `"},"\u0061":null}`} {
		f.Add([]byte(s))
	}
	names := func(b []byte) (out []string) {
		var walk func(v []byte, depth int)
		walk = func(v []byte, depth int) {
			if depth > 50 {
				return
			}
			for k, m := range jsonwire.Members(v) {
				out = append(out, string(k))
				walk(m, depth+1)
			}
			for e := range jsonwire.Elements(v) {
				walk(e, depth+1)
			}
		}
		walk(b, 0)
		return out
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if jsonwire.Strict(b) != nil {
			return
		}
		var m masking.Masker
		out := m.JSON(b)
		if err := jsonwire.Strict(out); err != nil {
			t.Fatalf("%q became %q: %v", b, out, err)
		}
		got, want := names(out), names(b)
		if len(got) != len(want) {
			t.Fatalf("%q became %q", b, out)
		}
		for i, name := range want {
			plain := jsonwire.Key([]byte(name))
			if secret := (&masking.Masker{}).Text(plain) != plain; secret != (got[i] != name) {
				t.Fatalf("%q became %q: the name %q", b, out, name)
			}
		}
		if m.Found == 0 && !bytes.Equal(b, out) {
			t.Fatalf("nothing was found in %q, and it became %q", b, out)
		}
	})
}
