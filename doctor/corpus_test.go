package doctor_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// logFile is one log of the corpus and what dsh reads from it.
type logFile struct {
	name     string // CASE/sessions or CASE/before-sessions, and the session
	bytes    []byte
	enc      wire.Encoding
	expected []byte
}

func corpus(t *testing.T) (out []logFile) {
	t.Helper()
	root := filepath.Join(conformance.Dir(), "corpus")
	for _, kind := range []string{"sessions", "before-sessions"} {
		files, err := filepath.Glob(filepath.Join(root, "*", kind, "*", "*", "session.jsonl*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			enc, ok := wire.EncodingOf(f)
			if !ok {
				t.Fatalf("%s: which encoding?", f)
			}
			session := filepath.Base(filepath.Dir(f))
			c := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(f))))
			l := logFile{name: filepath.Base(c) + "/" + kind + "/" + session, enc: enc}
			if l.bytes, err = os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
			if l.expected, err = os.ReadFile(filepath.Join(c, "expected", kind, session+".json")); err != nil {
				t.Fatal(err)
			}
			out = append(out, l)
		}
	}
	if len(out) < 40 {
		t.Fatalf("only %d logs in %s", len(out), root)
	}
	return out
}

// damaged are the logs of the corpus that were damaged by hand, and what is to
// be said of them.
var damaged = map[string]struct {
	ok, session bool
	dsh         doctor.Verdict
	class       string
}{
	"torn-plain-midline/before-sessions":            {ok: true, session: true, dsh: doctor.DSHCut},
	"torn-plain-garbage/before-sessions":            {ok: true, session: true, dsh: doctor.DSHCut},
	"torn-plain-nul/before-sessions":                {ok: true, session: true, dsh: doctor.DSHCut},
	"torn-plain-nonewline/before-sessions":          {ok: true, session: true, dsh: doctor.DSHCut},
	"torn-plain-badlast-terminated/before-sessions": {ok: true, session: true, dsh: doctor.DSHCut},
	"corrupt-plain-committed/before-sessions":       {ok: false, session: true, dsh: doctor.DSHRefused, class: "file-event-json"},
	"corrupt-plain-committed/sessions":              {ok: false, session: true, dsh: doctor.DSHRefused, class: "file-event-json"},
	"corrupt-plain-header/before-sessions":          {ok: false, session: false, dsh: doctor.DSHRefused, class: "file-no-header"},
	"corrupt-plain-header/sessions":                 {ok: false, session: false, dsh: doctor.DSHRefused, class: "file-no-header"},
}

func TestVerifyCorpus(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range corpus(t) {
		t.Run(l.name, func(t *testing.T) {
			found, sum := verify(t, memory(l.bytes, l.enc), doctor.Options{})
			key := l.name[:strings.LastIndexByte(l.name, '/')]
			want, isDamaged := damaged[key]
			if !isDamaged {
				if !sum.OK || sum.DSH != doctor.DSHOK || sum.TruncatedAt != nil {
					t.Errorf("a healthy log: %s\n%v", sum.AppendJSON(nil), found)
				}
				for _, f := range found {
					// A log that was killed ends in an open turn, maybe in a
					// compaction; dsh prunes between turns, which its own
					// invariant forbids; and one model was made to cut off the
					// arguments of a call. Nothing else is wrong with what it
					// wrote.
					expected := f.Code == "TURN_OPEN" ||
						f.Code == "COMPACTION_OPEN" && strings.Contains(l.name, "mid-compaction") ||
						f.Code == "TOOL_REWRITE_OUTSIDE_TURN" && strings.HasPrefix(l.name, "prune/") ||
						f.Code == "BAD_ARGUMENTS" && strings.HasPrefix(l.name, "tool-roundtrip")
					if !expected {
						t.Errorf("finding in a healthy log: %s", f.AppendJSON(nil))
					}
				}
				return
			}
			seen[key] = true
			if sum.OK != want.ok || (sum.Err == nil) != want.session || sum.DSH != want.dsh || sum.DSHClass != want.class {
				t.Errorf("%s (%v)\nwant ok %v, session %v, dsh %s %s", sum.AppendJSON(nil), sum.Err, want.ok, want.session, want.dsh, want.class)
			}
			if (sum.TruncatedAt != nil) != want.ok {
				t.Errorf("truncated at %v", sum.TruncatedAt)
			}
		})
	}
	for key := range damaged {
		if !seen[key] {
			t.Errorf("no log for %s", key)
		}
	}
}

// TestReadCorpusAsDSHDoes compares what a session says of each log with what
// dsh's own reader says: closers of an open turn included, the mark that ends
// a seed not.
func TestReadCorpusAsDSHDoes(t *testing.T) {
	for _, l := range corpus(t) {
		t.Run(l.name, func(t *testing.T) {
			target := memory(l.bytes, l.enc)
			r, err := wire.NewReader(target.R, target.Size, l.enc)
			if err != nil {
				if dig(l.expected, "error") == nil {
					t.Fatal(err)
				}
				return
			}
			s, err := outcrop.Restore(r.Header(), r.Records(), outcrop.Options{})
			if (err != nil) != (dig(l.expected, "error") != nil) {
				t.Fatalf("%v, want %s", err, dig(l.expected, "error"))
			}
			if err != nil {
				if !errors.Is(err, outcrop.ErrDamaged) {
					t.Errorf("not damaged: %v", err)
				}
				return
			}
			closed := withoutEndSeed(s)
			n := int(num(l.expected, "eventCount"))
			if closed != n {
				t.Fatalf("%d events, want %d", closed, n)
			}
			last := outcrop.Seq(n - 1)
			if got := s.Log().At(last).Type; string(got) != text(l.expected, "lastType") {
				t.Errorf("the last event is %s", got)
			}
			header := s.Header().Line()
			for k, want := range jsonwire.Members(dig(l.expected, "header")) {
				if got := jsonwire.Get(header, string(k)); string(jsonwire.Compact(got)) != string(jsonwire.Compact(want)) {
					t.Errorf("header member %s is %s, want %s", k, got, want)
				}
			}
			if got, want := s.Surface().Nodes(), ints(dig(l.expected, "surfaceNodes")); !slices.Equal(got, want) {
				t.Errorf("surface %v, want %v", got, want)
			}
			if got, want := int64(s.Surface().Generation()), num(l.expected, "replaceGeneration"); got != want {
				t.Errorf("generation %d, want %d", got, want)
			}
			fold, err := outcrop.SurfaceAt(s.Log(), last)
			if err != nil || !slices.Equal(fold.Nodes, s.Surface().Nodes()) {
				t.Errorf("detached fold %v (%v)", fold.Nodes, err)
			}
			if got, want := headerSeqs(s.Log()), compact(dig(l.expected, "requestHeaderReasonSeqs")); got != want {
				t.Errorf("request headers %s, want %s", got, want)
			}
			ctx, ok := s.RequestContext()
			if want := dig(l.expected, "requestContext"); ok != (jsonwire.Kind(want) == '{') ||
				ok && (ctx.Provider != text(want, "provider") || ctx.Model != text(want, "model") || ctx.ContextWindow != max(0, num(want, "contextWindow"))) {
				t.Errorf("request context %+v, want %s", ctx, want)
			}
			sameMessages(t, s.Messages(), dig(l.expected, "messages"))
			if closed == int(s.Stored()) {
				if got, want := dshDigest(s.Log(), closed), text(l.expected, "eventsSha256"); got != want {
					t.Errorf("the events' digest is %s, want %s", got, want)
				}
			}
		})
	}
}

// withoutEndSeed is the number of events without the mark that Restore added.
func withoutEndSeed(s *outcrop.Session) int {
	n := s.Len()
	if n > int(s.Stored()) && s.Log().At(outcrop.Seq(n-1)).Type == outcrop.TypeEndSeed {
		n--
	}
	return n
}

func ints(arr []byte) []outcrop.Seq {
	out := []outcrop.Seq{}
	for e := range jsonwire.Elements(arr) {
		n, _ := jsonwire.Int(e)
		out = append(out, outcrop.Seq(n))
	}
	return out
}

func compact(v []byte) string { return string(jsonwire.Compact(v)) }

func headerSeqs(log outcrop.Log) string {
	var list []string
	for e := range outcrop.Events(log, 0) {
		if e.Type == outcrop.TypeRequestHeader {
			list = append(list, fmt.Sprintf("[%d,%s]", e.Seq, jsonwire.Get(e.Data, "reason")))
		}
	}
	return "[" + strings.Join(list, ",") + "]"
}

func sameMessages(t *testing.T, got []*outcrop.Message, want []byte) {
	t.Helper()
	i := 0
	for w := range jsonwire.Elements(want) {
		if i >= len(got) {
			t.Errorf("message %d is missing", i)
			return
		}
		// The explaining text of closers is dsh's own there.
		if a, b := compact(got[i].Raw), compact(w); a != b && !strings.Contains(b, `"interrupted-tool-result-`) {
			t.Errorf("message %d is\n%s\nwant\n%s", i, a, b)
		}
		i++
	}
	if i != len(got) {
		t.Errorf("%d messages, want %d", len(got), i)
	}
}

// dshDigest is the digest of the corpus: each event's text, joined by newlines.
func dshDigest(log outcrop.Log, n int) string {
	h := sha256.New()
	for i := range n {
		if i > 0 {
			h.Write([]byte("\n"))
		}
		h.Write(log.At(outcrop.Seq(i)).AppendJSON(nil))
	}
	return hex.EncodeToString(h.Sum(nil))
}
