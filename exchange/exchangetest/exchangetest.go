// Package exchangetest is what every import must keep to, as functions for
// tests.
package exchangetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// TB is the part of a testing.TB, or of a rapid.T, that is used.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Imported is what an import left.
type Imported struct {
	Store   *memory.Store
	Reports []*exchange.Report
	// Now is the clock of Again; nil: every source is finished.
	Now func() time.Time
}

// Import imports all that a format finds at a path into a store in memory, and
// fails the test unless every session passes Check and a second import finds all
// of them present, with the same bytes. Sources that were skipped are in the
// reports.
func Import(t TB, f exchange.Format, path string) Imported {
	t.Helper()
	in := Imported{Store: memory.New()}
	in.Reports = in.Again(t, f, path)
	for _, r := range in.Reports {
		for _, o := range r.Sessions {
			if o.Verdict != exchange.Failed {
				Check(t, in.Store, o.ID)
			}
		}
	}
	for _, r := range in.Again(t, f, path) {
		for _, o := range r.Sessions {
			if o.Verdict != exchange.Present && o.Verdict != exchange.Failed {
				t.Fatalf("%s: the second import made of session %s: %s (%s), want present", r.Path, o.ID, o.Verdict, o.Why)
			}
		}
	}
	return in
}

// Again imports once more into the same store.
func (in Imported) Again(t TB, f exchange.Format, path string) []*exchange.Report {
	t.Helper()
	ctx := context.Background()
	im := &exchange.Importer{Store: in.Store, Now: in.Now}
	var reports []*exchange.Report
	for src, err := range exchange.Find(ctx, []exchange.Format{f}, path, "") {
		if err != nil {
			t.Fatalf("find sources: %v", err)
		}
		r, err := im.Import(ctx, src)
		if err != nil {
			t.Fatalf("import %s: %v", src.Path, err)
		}
		reports = append(reports, r)
	}
	return reports
}

// Sessions are the outcomes of all sources.
func (in Imported) Sessions() []exchange.Outcome {
	var out []exchange.Outcome
	for _, r := range in.Reports {
		out = append(out, r.Sessions...)
	}
	return out
}

// ofTheSource are findings about what a model or a person wrote: it is kept as it
// is, and requests are made fit to send.
var ofTheSource = map[outcrop.Code]bool{"BAD_ARGUMENTS": true}

// Check fails the test unless a stored session is one that doctor finds nothing
// wrong with, except arguments as the model wrote them, and whose next request a
// strict provider takes.
func Check(t TB, st store.Store, id string) {
	t.Helper()
	ctx := context.Background()
	findings, sum := doctor.Verify(ctx, doctor.Target{Name: id, Open: func(ctx context.Context) (store.Stored, error) { return st.Read(ctx, id) }}, doctor.Options{})
	for f := range findings {
		if f.Severity == doctor.SeverityWarning && ofTheSource[f.Code] {
			continue
		}
		t.Fatalf("session %s: %s %s at event %d: %s\n%s", id, f.Severity, f.Code, f.Seq, f.Message, Dump(t, st, id))
	}
	if !sum.OK || sum.Err != nil || sum.OpenTurn {
		t.Fatalf("session %s: not ok: %+v", id, sum)
	}
	s := Session(t, st, id)
	if err := llm.Check(llm.Request{Config: llm.Config{Provider: "p", Model: "m"}, Messages: llm.Build(nodes(s))}); err != nil {
		t.Fatalf("session %s: its request is refused: %v\n%s", id, err, Dump(t, st, id))
	}
	if _, err := outcrop.Restore(s.Header(), func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{}); err != nil {
		t.Fatalf("session %s: it cannot be gone on with: %v", id, err)
	}
}

func nodes(s *outcrop.Session) []llm.Node {
	var out []llm.Node
	for _, m := range s.Messages() {
		parsed, err := message.Parse(m.Raw)
		if err == nil {
			out = append(out, llm.Node{Seq: int64(m.Seq), Message: parsed})
		}
	}
	return out
}

// Session reads a stored session.
func Session(t TB, st store.Store, id string) *outcrop.Session {
	t.Helper()
	sd, err := st.Read(context.Background(), id)
	if err != nil {
		t.Fatalf("read %s: %v", id, err)
	}
	defer sd.Close()
	s, err := outcrop.Inspect(sd.Header(), sd.Records(), outcrop.Options{})
	if err != nil {
		t.Fatalf("read %s: %v", id, err)
	}
	return s
}

// Dump is a stored log for people: one event a line, times left out.
func Dump(t TB, st store.Store, id string) string {
	t.Helper()
	sd, err := st.Read(context.Background(), id)
	if err != nil {
		t.Fatalf("read %s: %v", id, err)
	}
	defer sd.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", sd.Header().Line())
	for r, err := range sd.Records() {
		if err != nil {
			t.Fatalf("read %s: %v", id, err)
		}
		op := ""
		if start, end, ok := r.Op.Range(); ok {
			op = fmt.Sprintf(" replaces %d to %d", start, end)
		}
		fmt.Fprintf(&b, "%d %s%s %s\n", r.Seq, r.Type, op, r.Data)
	}
	return b.String()
}

// Texts are the messages of the surface in short, one a line: who speaks, and
// what. It is for comparing what a model would read.
func Texts(t TB, st store.Store, id string) string {
	t.Helper()
	var b strings.Builder
	for _, m := range Session(t, st, id).Messages() {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			t.Fatalf("message %d: %v", m.Seq, err)
		}
		who := parsed.Source.Kind
		if who == "plugin" || who == "outcrop" {
			who += " " + parsed.Source.Plugin + parsed.Source.Form
		}
		fmt.Fprintf(&b, "%s:%s\n", strings.TrimSpace(who), texts(parsed.Content))
	}
	return b.String()
}

func texts(blocks []message.Block) string {
	var b strings.Builder
	for _, k := range blocks {
		switch k.Type {
		case message.TextBlock:
			fmt.Fprintf(&b, " %q", k.Text)
		case message.ReasoningBlock:
			fmt.Fprintf(&b, " thinks(%q)", k.Text)
		case message.ToolCallBlock:
			fmt.Fprintf(&b, " call %s %s(%s)", k.ID, k.Name, k.Arguments)
		case message.ToolResultBlock:
			word := "result"
			if k.IsError {
				word = "error"
			}
			fmt.Fprintf(&b, " %s %s(%s)", word, k.ToolCallID, strings.TrimSpace(texts(k.Content)))
		case message.ImageBlock, "file":
			var ref struct {
				MediaType string `json:"mediaType"`
				Bytes     int    `json:"bytes"`
			}
			_ = json.Unmarshal(k.Attachment, &ref)
			fmt.Fprintf(&b, " %s(%s, %d bytes)", k.Type, ref.MediaType, ref.Bytes)
		default:
			fmt.Fprintf(&b, " %s", k.Raw)
		}
	}
	return b.String()
}

// Notes are the entries of a report that are not about what was kept, one a
// line.
func Notes(r *exchange.Report) string {
	var out []string
	for _, e := range r.Sorted() {
		if e.Fate != exchange.Kept {
			out = append(out, e.String())
		}
	}
	return strings.Join(out, "\n")
}
