package redact_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/redact"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// loaded reads a log file.
func loaded(t testing.TB, path string) (outcrop.Header, outcrop.Log, bool) {
	t.Helper()
	st, err := jsonl.File(path, jsonl.Options{})
	if err != nil {
		return outcrop.Header{}, nil, false
	}
	s, _, err := store.Inspect(context.Background(), st, "", outcrop.Options{})
	if err != nil {
		return outcrop.Header{}, nil, false
	}
	return s.Header(), s.Log(), true
}

func sample(t testing.TB) (outcrop.Header, outcrop.Log) {
	h, log, ok := loaded(t, filepath.Join("..", "cli", "testdata", "sample.jsonl"))
	if !ok {
		t.Fatal("no sample")
	}
	return h, log
}

// after stores what a plan gives and reads it again.
func after(t testing.TB, h outcrop.Header, p *redact.Plan) (outcrop.Log, string) {
	t.Helper()
	if err := p.Check(h, p.Records("why", 7)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.jsonl")
	st, err := jsonl.File(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Put(context.Background(), h, p.Records("why", 7)); err != nil {
		t.Fatal(err)
	}
	_, log, ok := loaded(t, path)
	if !ok {
		t.Fatal("it cannot be read")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return log, string(b)
}

func TestEveryEventOfTheCorpusKeepsItsPlaceWhenItIsRedacted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(conformance.Dir(), "corpus", "*", "sessions", "*", "*", "session.jsonl*"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join("..", "cli", "testdata", "sample.jsonl"))
	redacted := 0
	for _, path := range files {
		h, log, ok := loaded(t, path)
		if _, _, open := outcrop.OpenTurn(orEmpty(log)); !ok || open || log.Len() > 2000 {
			continue
		}
		step := max(1, log.Len()/60)
		for seq := outcrop.Seq(0); seq < outcrop.Seq(log.Len()); seq += outcrop.Seq(step) {
			p, err := redact.Make(log, []outcrop.Seq{seq})
			if outcrop.CodeOf(err) == "NOTHING_TO_REDACT" {
				continue
			}
			if err != nil {
				t.Fatalf("%s %d: %v", path, seq, err)
			}
			if err := p.Check(h, p.Records("", 7)); err != nil {
				t.Fatalf("%s %d: %v", path, seq, err)
			}
			redacted++
		}
	}
	if redacted < 100 {
		t.Errorf("%d events of %d files", redacted, len(files))
	}
}

func orEmpty(log outcrop.Log) outcrop.Log {
	if log == nil {
		s, _ := outcrop.New(outcrop.NewHeader("x", 1, ""), outcrop.Options{})
		return s.Log()
	}
	return log
}

func TestAPromptGoesWithItsSpliceOfTheInbox(t *testing.T) {
	h, log := sample(t)
	p, err := redact.Make(log, []outcrop.Seq{4})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]outcrop.Seq{0, 4}, p.Seqs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	is, text := after(t, h, p)
	if strings.Contains(text, "tell me what matters") && len(p.Left) == 0 {
		t.Error("the text is still there, and nothing says so")
	}
	want := "[redacted sha256:"
	for _, seq := range p.Seqs {
		if e := is.At(seq); !bytes.Contains(e.Data, []byte(want)) {
			t.Errorf("event %d: %s", seq, e.Data)
		}
	}
	last := is.At(outcrop.Seq(is.Len() - 1))
	if string(last.Data) != `{"seqs":[0,4],"reason":"why"}` || !last.Ignorable || last.Type != outcrop.TypeOutcropRedacted || last.Time != 7 {
		t.Errorf("the last event: %s", last.AppendJSON(nil))
	}
	if is.Len() != log.Len()+1 {
		t.Errorf("%d events, were %d", is.Len(), log.Len())
	}
}

// The chunks of a reply still add up to the message, and its calls say the same.
func TestAReplyGoesWithItsChunksAndItsCalls(t *testing.T) {
	h, log := sample(t)
	for seq := range outcrop.Seq(log.Len()) {
		e := log.At(seq)
		if e.Type != outcrop.TypeAssistantMessage || e.Sources.Len() == 0 {
			continue
		}
		chunk := outcrop.Seq(-1)
		for _, s := range e.Sources.Seqs() {
			if strings.Contains(string(log.At(s).Data), "-delta") {
				chunk = s
			}
		}
		if chunk < 0 {
			continue
		}
		byMessage, err := redact.Make(log, []outcrop.Seq{seq})
		if err != nil {
			t.Fatal(err)
		}
		byChunk, err := redact.Make(log, []outcrop.Seq{chunk})
		if err != nil {
			t.Fatal(err)
		}
		is, _ := after(t, h, byMessage)
		same, _ := after(t, h, byChunk)
		if outcrop.LogDigest(is) != outcrop.LogDigest(same) {
			t.Errorf("event %d: the message and its chunk give different logs", seq)
		}
		text, args := map[string]string{}, map[string]string{}
		for _, s := range e.Sources.Seqs() {
			c := jsonwire.Get(is.At(s).Data, "chunk")
			index := string(jsonwire.Get(c, "index"))
			piece, _ := jsonwire.Text(jsonwire.Get(c, "text"))
			text[index] += piece
			piece, _ = jsonwire.Text(jsonwire.Get(c, "argumentsDelta"))
			args[index] += piece
		}
		i := -1
		for b := range jsonwire.Elements(jsonwire.Get(jsonwire.Get(is.At(seq).Data, "message"), "content")) {
			i++
			index := string(jsonwire.AppendInt(nil, int64(i)))
			if want, _ := jsonwire.Text(jsonwire.Get(b, "text")); text[index] != want {
				t.Errorf("event %d, block %d: chunks add up to %q, the message has %q", seq, i, text[index], want)
			}
			want, isCall := jsonwire.Text(jsonwire.Get(b, "arguments"))
			if args[index] != want {
				t.Errorf("event %d, block %d: chunks add up to %q, the message has %q", seq, i, args[index], want)
			}
			if isCall && (jsonwire.Valid([]byte(want)) != nil || jsonwire.Kind([]byte(want)) != '{') {
				t.Errorf("event %d, block %d: arguments %s", seq, i, want)
			}
			if id, _ := jsonwire.Text(jsonwire.Get(b, "id")); isCall {
				for c := range outcrop.Events(is, 0) {
					if c.Type == outcrop.TypeToolCall && jsonwire.TextIs(jsonwire.Get(c.Data, "callId"), id) {
						if got, _ := jsonwire.Text(jsonwire.Get(c.Data, "arguments")); got != want {
							t.Errorf("the tool/call %d has %s, the message %s", c.Seq, got, want)
						}
					}
				}
			}
		}
	}
}

// make makes a log of raw events.
func logOf(t testing.TB, lines ...string) (outcrop.Header, outcrop.Log) {
	t.Helper()
	h := outcrop.NewHeader("s1", 1, "")
	s, err := outcrop.Restore(h, func(yield func(outcrop.Record, error) bool) {
		for i, l := range lines {
			e, err := outcrop.DecodeEvent([]byte(strings.Replace(l, "{", `{"seq":`+string(jsonwire.AppendInt(nil, int64(i)))+`,"time":1,`, 1)))
			if !yield(outcrop.Record{Event: e}, err) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h, outcrop.Prefix(s.Log(), len(lines))
}

const (
	turn1 = `{"type":"turn/start","data":{"turn":1}}`
	step1 = `{"type":"step/start","data":{"turn":1,"step":1}}`
	ends1 = `{"type":"step/end","data":{"turn":1,"step":1}}`
	endt1 = `{"type":"turn/end","data":{"turn":1,"reason":{"kind":"completed"}}}`
)

func user(id, text string) string {
	return `{"type":"user/message","data":{"content":[{"type":"text","text":"` + text + `"}],"source":{"kind":"user"},"role":"user","id":"` + id + `"},"surfaceOp":"append"}`
}

func result(id, call, text, meta, op string) string {
	return `{"type":"tool/result","data":{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"` + call + `"},"content":[{"type":"tool-result","toolCallId":"` + call +
		`","content":[{"type":"text","text":"` + text + `"}],"isError":false}],"role":"user","id":"` + id + `"}` + meta + `},` + op + `}`
}

func TestAResultGoesWithItsRewritesAndTheirMeta(t *testing.T) {
	h, log := logOf(t, turn1, step1, user("u1", "run it"),
		`{"type":"assistant/message","data":{"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"tool-call","id":"c1","name":"bash","arguments":"{}"}],"source":{"kind":"model","provider":"p","model":"m"},"id":"a1"}},"sourceEventSeqs":[],"surfaceOp":"append"}`,
		`{"type":"tool/call","data":{"turn":1,"step":1,"callId":"c1","name":"bash","arguments":"{}"}}`,
		result("r1", "c1", "PASSWORD=hunter22 and much more text", `,"meta":{"stdout":"PASSWORD=hunter22"}`, `"sourceEventSeqs":[4],"surfaceOp":"append"`),
		ends1,
		`{"type":"compaction/prune","data":{"shadowed":[5],"shadowedTokenCount":9}}`,
		result("r1", "c1", "PASSWORD=hunter22 [...]", `,"meta":{"stdout":"PASSWORD=hunter22"}`, `"sourceEventSeqs":[5],"surfaceOp":{"op":"replace","start":5,"end":5}`),
		endt1,
		user("u2", "the password is hunter22, use it"),
		user("u3", "nothing to see"))
	for _, named := range []outcrop.Seq{5, 8} {
		p, err := redact.Make(log, []outcrop.Seq{named})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]outcrop.Seq{5, 8}, p.Seqs); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		is, _ := after(t, h, p)
		for _, seq := range p.Seqs {
			if d := string(is.At(seq).Data); strings.Contains(d, "hunter22") || strings.Contains(d, "meta") || !strings.Contains(d, `"isError":false`) {
				t.Errorf("event %d: %s", seq, d)
			}
		}
		want := []redact.Left{{Seq: 10, Type: "user/message", Why: "has the same text"}}
		if d := cmp.Diff(want, p.Left); d != "" {
			t.Errorf("left (-want +got):\n%s", d)
		}
		if p.Finds(records(outcrop.Prefix(log, 3))) {
			t.Error("the text is found where it is not")
		}
		if !p.Finds(records(outcrop.Prefix(log, 6))) {
			t.Error("the text is not found where it is")
		}
	}
}

func records(log outcrop.Log) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r := range log.Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestWhatIsTakenOutByType(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"an image and its sections", `{"type":"context/message","data":{"content":[{"type":"image","attachment":{"attachmentId":"sha256:aa"}}],"source":{"kind":"outcrop","form":"snapshot","sections":[{"name":"n","text":"deep secret"}],"summary":"s"},"role":"user","id":"m"},"surfaceOp":"append"}`,
			`{"content":[{"type":"text","text":"T"}],"source":{"kind":"outcrop","form":"snapshot","sections":[{"name":"n","text":"T"}],"summary":"T"},"role":"user","id":"m"}`},
		{"a reply with replay state", `{"type":"assistant/message","data":{"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"reasoning","text":"hm","signature":"x"},{"type":"new","a":"b"}],"source":{"kind":"model","provider":"p","model":"m","replayState":{"a":1}},"id":"m"},"usage":{"inputTokens":1}},"sourceEventSeqs":[],"surfaceOp":"append"}`,
			`{"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"reasoning","text":"T"},{"type":"text","text":"T"}],"source":{"kind":"model","provider":"p","model":"m"},"id":"m"},"usage":{"inputTokens":1}}`},
		{"a request header", `{"type":"request/header","data":{"header":{"config":{"provider":"p","model":"m"},"system":"be nice","tools":[{"name":"read","description":"reads","parameters":{"type":"object","x":"y"}}]},"reason":"initial"}}`,
			`{"header":{"config":{"provider":"p","model":"m"},"system":"T","tools":[{"name":"read","description":"T","parameters":{"type":"object"}}]},"reason":"initial"}`},
		{"a title", `{"type":"session/title","data":{"title":"secret","messageSeqs":[0],"source":"user"}}`, `{"title":"T","messageSeqs":[0],"source":"user"}`},
		{"things to do", `{"type":"todo/write","data":{"todos":[{"content":"a","status":"pending"}]}}`, `{"todos":[{"content":"T","status":"pending"}]}`},
		{"a nested call", `{"type":"tool/code-dispatch-start","data":{"rootCallId":"c","parentCallId":"c","subCallId":"c:code:1","name":"x","arguments":{"a":"b"}}}`,
			`{"rootCallId":"c","parentCallId":"c","subCallId":"c:code:1","name":"x","arguments":{"redacted":"sha256:D"}}`},
		{"an unknown event", `{"type":"x/y","data":{"id":"1","n":1.50,"list":[{"text":"a"},"b"]},"ignorable":true}`, `{"id":"1","n":1.50,"list":[{"text":"T"},"b"]}`},
		{"a message that waits in the inbox", `{"type":"agent/inbox/spliced","data":{"target":"next-turn","start":0,"inserted":[{"content":[{"type":"text","text":"later"}],"source":{"kind":"user"},"role":"user","id":"p9"}]}}`,
			`{"target":"next-turn","start":0,"inserted":[{"content":[{"type":"text","text":"T"}],"source":{"kind":"user"},"role":"user","id":"p9"}]}`},
		{"a request for a summary", `{"type":"outcrop/summarizer-call","data":{"purpose":"compaction","call":1,"model":"p:m","prefix":0,"through":0,"mode":"whole","extra":[{"content":[{"type":"text","text":"sum up"}],"source":{"kind":"outcrop"},"role":"user","id":"e1"}],"digest":"v1:00"},"ignorable":true}`,
			`{"purpose":"compaction","call":1,"model":"p:m","prefix":0,"through":0,"mode":"whole","extra":[{"content":[{"type":"text","text":"T"}],"source":{"kind":"outcrop"},"role":"user","id":"e1"}],"digest":"v1:00"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, log := logOf(t, c.line)
			p, err := redact.Make(log, []outcrop.Seq{0})
			if err != nil {
				t.Fatal(err)
			}
			is, _ := after(t, h, p)
			got := string(is.At(0).Data)
			for _, line := range regexpTomb(got) {
				got = strings.ReplaceAll(got, "[redacted sha256:"+line+"]", "T")
				got = strings.ReplaceAll(got, line, "D")
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// regexpTomb are the digests in a text.
func regexpTomb(s string) (out []string) {
	for {
		_, rest, ok := strings.Cut(s, "sha256:")
		if !ok || len(rest) < 64 {
			return out
		}
		if s = rest; !strings.ContainsAny(s[:64], `"]`) && !slices.Contains(out, s[:64]) {
			out = append(out, s[:64])
		}
	}
}

func TestASummaryGoesWithItsCheckpointAndACheckpointOverSomethingIsListed(t *testing.T) {
	h, log := logOf(t, user("u1", "a first long prompt"), user("u2", "a second long prompt"),
		`{"type":"compaction/start","data":{"compactionId":"k1"}}`,
		`{"type":"compaction/summary","data":{"compactionId":"k1","summary":[{"type":"text","text":"they talked at length"}],"shadowed":[0,1],"shadowedTokenCount":9,"provider":"p","model":"m"}}`,
		`{"type":"user/message","data":{"content":[{"type":"text","text":"Summary: they talked at length"}],"source":{"kind":"plugin","plugin":"compact","compactionId":"k1"},"role":"user","id":"k"},"sourceEventSeqs":[0,1,3],"surfaceOp":{"op":"replace","start":0,"end":1}}`,
		`{"type":"compaction/end","data":{"compactionId":"k1"}}`)
	for _, seq := range []outcrop.Seq{3, 4} {
		p, err := redact.Make(log, []outcrop.Seq{seq})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]outcrop.Seq{3, 4}, p.Seqs); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if _, text := after(t, h, p); strings.Contains(text, "at length") {
			t.Error("the summary is still there")
		}
	}
	p, err := redact.Make(log, []outcrop.Seq{1})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]redact.Left{{Seq: 4, Type: "user/message", Why: "was made from it"}}, p.Left); d != "" {
		t.Errorf("left (-want +got):\n%s", d)
	}
}

func TestWhatCannotBeRedactedIsRefused(t *testing.T) {
	_, log := logOf(t, user("u1", "x"), turn1)
	if _, err := redact.Make(log, []outcrop.Seq{0}); outcrop.CodeOf(err) != "OPEN_TURN" {
		t.Errorf("an open turn: %v", err)
	}
	_, log = logOf(t, user("u1", "x"), turn1, endt1)
	for seq, code := range map[outcrop.Seq]outcrop.Code{1: "NOTHING_TO_REDACT", 2: "NOTHING_TO_REDACT", 3: outcrop.CodeInvalidBoundary, -1: outcrop.CodeInvalidBoundary} {
		if _, err := redact.Make(log, []outcrop.Seq{0, seq}); outcrop.CodeOf(err) != code || !errors.Is(err, outcrop.ErrRefused) {
			t.Errorf("event %d: %v, want %s", seq, err, code)
		}
	}
}

func TestAttachmentsThatNobodyNamesAnyMoreAreNamed(t *testing.T) {
	image := func(id, att string) string {
		return `{"type":"user/message","data":{"content":[{"type":"image","attachment":{"attachmentId":"` + att + `"}}],"source":{"kind":"user"},"role":"user","id":"` + id + `"},"surfaceOp":"append"}`
	}
	_, log := logOf(t, image("u1", "sha256:aa"), image("u2", "sha256:bb"), image("u3", "sha256:bb"))
	for seq, want := range map[outcrop.Seq][]string{0: {"sha256:aa"}, 1: nil} {
		p, err := redact.Make(log, []outcrop.Seq{seq})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, p.Objects); d != "" {
			t.Errorf("event %d (-want +got):\n%s", seq, d)
		}
	}
}

func TestPathsOfOutputsAreFound(t *testing.T) {
	_, log := logOf(t, user("u1", "cut; the whole is in /state/output/s1/bash-c1.txt. And (/state/output/s1/b.txt)"))
	p, err := redact.Make(log, []outcrop.Seq{0})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/state/output/s1/bash-c1.txt", "/state/output/s1/b.txt"}, p.Paths("/state/output/s1/")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestARedactionExplainsRequestsBeforeItAlone(t *testing.T) {
	for _, c := range []struct {
		at, request, prefix outcrop.Seq
		want                bool
	}{{90, 20, 19, true}, {90, 20, 9, false}, {90, 95, 94, false}} {
		if got := redact.Explains(c.at, []outcrop.Seq{40, 10}, c.request, c.prefix); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	e, err := outcrop.DecodeEvent([]byte(`{"type":"outcrop/redacted","seq":0,"time":0,"data":{"seqs":[3,"x",-1,5]},"ignorable":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if seqs, ok := redact.Named(&e); !ok || !slices.Equal(seqs, []outcrop.Seq{3, 5}) {
		t.Errorf("%v, %v", seqs, ok)
	}
}
