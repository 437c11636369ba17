package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
)

// agent is what a pump asks of a session that this process writes.
type agent struct {
	live     *store.Live
	phase    string
	waiting  []facts.Question
	answers  []Answered
	asked    int
	unsynced outcrop.Seq
}

func (a *agent) Session() *outcrop.Session   { return a.live.Session() }
func (a *agent) Durable() outcrop.Seq        { return outcrop.Seq(a.live.Session().Len()) - a.unsynced }
func (a *agent) Status() *facts.Status       { return &facts.Status{Phase: a.phase} }
func (a *agent) Questions() []facts.Question { return slices.Clone(a.waiting) }
func (a *agent) Answered() []Answered {
	out := a.answers
	a.answers = nil
	return out
}

// page is what a browser makes of a stream.
type page struct {
	Status  string
	Asked   []string
	Writer  string
	Durable outcrop.Seq
	Draft   map[int]string
	Seqs    []outcrop.Seq // that came, in order
}

func (p *page) hear(t *rapid.T, out []byte) {
	for text := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n\n"), "\n\n") {
		if text == "" {
			continue
		}
		var name, data string
		for line := range strings.SplitSeq(text, "\n") {
			if s, ok := strings.CutPrefix(line, "event: "); ok {
				name = s
			}
			if s, ok := strings.CutPrefix(line, "data: "); ok {
				data = s
			}
		}
		var d struct {
			Status      *struct{ Phase string }
			Phase       string
			Questions   []struct{ ID string }
			ID          string
			Writer      struct{ Where string }
			Where       string
			Durable     json.RawMessage
			Seq         outcrop.Seq
			First, Last outcrop.Seq
			Type        string
			Turn        int
			Reset       bool
			Blocks      []struct {
				Index        int
				Text, Append *string
			}
		}
		if data != "null" {
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		switch name {
		case "hello":
			p.Status, p.Asked, p.Writer, p.Draft = "", nil, d.Writer.Where, map[int]string{}
			if d.Status != nil {
				p.Status = d.Status.Phase
			}
			for _, q := range d.Questions {
				p.Asked = append(p.Asked, q.ID)
			}
			if err := json.Unmarshal(d.Durable, &p.Durable); err != nil {
				t.Fatal(err)
			}
		case "status":
			p.Status = d.Phase
		case "question":
			if !slices.Contains(p.Asked, d.ID) {
				p.Asked = append(p.Asked, d.ID)
			}
		case "answered":
			p.Asked = slices.DeleteFunc(p.Asked, func(id string) bool { return id == d.ID })
		case "writer":
			p.Writer = d.Where
		case "durable":
			p.Durable = d.Seq
		case "draft":
			if d.Reset || d.Turn == 0 {
				p.Draft = map[int]string{}
			}
			for _, b := range d.Blocks {
				if b.Text != nil {
					p.Draft[b.Index] = *b.Text
				}
				if b.Append != nil {
					p.Draft[b.Index] += *b.Append
				}
			}
		case "record":
			if d.Type == "assistant/message" {
				p.Draft = map[int]string{}
			}
			p.Seqs = append(p.Seqs, d.Seq)
		case "batch":
			for seq := d.First; seq <= d.Last; seq++ {
				p.Seqs = append(p.Seqs, seq)
			}
		default:
			t.Fatalf("an event %q", name)
		}
	}
}

// Whoever begins to listen, whenever, and however slow, ends with what there is:
// no status is older than the truth, no question is missing or left over, no text
// of a reply is there twice, no event is missing.
func TestWhoeverListensEndsWithWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		st := memory.New()
		live, err := store.Create(ctx, st, storetest.Header("s1"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer live.Close(ctx)
		a := &agent{live: live, phase: "idle"}
		open := opened.New(opened.Options{Store: st})
		defer open.Close()
		end, err := open.Begin("s1", a)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		where := "here"
		var ended sync.WaitGroup
		set := New(Options{
			Open: open, Now: func() int64 { return 0 },
			Running: func(string) Running { return a },
			Writer:  func(context.Context, string) facts.Writer { return facts.Writer{Where: where} },
			// The pump looks when the test says so: its goroutine ends at once, and
			// before anything is seen of it.
			Spawn: func(f func(context.Context)) bool {
				over, cancel := context.WithCancel(ctx)
				cancel()
				ended.Go(func() { f(over) })
				return true
			},
		})
		add := func(p outcrop.LogPayload) {
			if _, err := live.Session().Append(p); err != nil {
				t.Fatal(err)
			}
		}
		words := 0
		write := func() {
			words++
			add(outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: fmt.Sprintf("w%d ", words)}})
		}
		add(outcrop.TurnStart{Turn: 1})
		add(outcrop.StepStart{Turn: 1, Step: 1})
		var listeners []*Listener
		var pages []*page
		var p *pump
		look := func() {
			if p == nil {
				return
			}
			if err := p.s.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
			p.writer = set.o.Writer(ctx, "s1")
			p.tell(a)
		}
		drain := func(i int) {
			out, _, _ := listeners[i].next()
			pages[i].hear(t, out)
		}
		t.Repeat(map[string]func(*rapid.T){
			"phase": func(t *rapid.T) { a.phase = rapid.SampledFrom([]string{"idle", "calling", "asking"}).Draw(t, "phase") },
			"ask":   func(t *rapid.T) { a.asked++; a.waiting = append(a.waiting, facts.Question{ID: fmt.Sprint(a.asked)}) },
			"answer": func(t *rapid.T) {
				if len(a.waiting) > 0 {
					a.answers = append(a.answers, Answered{a.waiting[0].ID, "rejected"})
					a.waiting = a.waiting[1:]
				}
			},
			"write": func(t *rapid.T) { write() },
			"reply": func(t *rapid.T) {
				m := message.Message{Content: []message.Block{message.Text("x")}, Source: message.FromModel("p", "m"), ID: fmt.Sprint("a", live.Session().Len())}
				if _, err := live.Session().AppendSurface(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: m}, outcrop.Tail, outcrop.NoSources); err != nil {
					t.Fatal(err)
				}
			},
			"sync":               func(t *rapid.T) { a.unsynced = outcrop.Seq(rapid.IntRange(0, 2).Draw(t, "unsynced")) },
			"turn of the writer": func(t *rapid.T) { where = rapid.SampledFrom([]string{"here", "none"}).Draw(t, "where") },
			"look":               func(t *rapid.T) { look() },
			"a flood": func(t *rapid.T) {
				for range mostFrames + 1 {
					write()
					look()
				}
			},
			"join": func(t *rapid.T) {
				l, err := set.Listen(ctx, "s1", WithDrafts)
				if err != nil {
					t.Fatal(err)
				}
				ended.Wait()
				p = l.p
				set.pumps["s1"] = p // its goroutine has forgotten it
				for range rapid.IntRange(0, 2).Draw(t, "looks before it begins") {
					look()
				}
				pg := &page{Draft: map[int]string{}}
				pg.hear(t, l.Begin(ctx, ""))
				pg.Seqs = nil
				listeners, pages = append(listeners, l), append(pages, pg)
			},
			"read": func(t *rapid.T) {
				if len(listeners) > 0 {
					drain(rapid.IntRange(0, len(listeners)-1).Draw(t, "who"))
				}
			},
			"": func(t *rapid.T) {},
		})
		look()
		want := page{Status: a.phase, Writer: where, Durable: a.Durable() - 1, Draft: map[int]string{}}
		for _, q := range a.waiting {
			want.Asked = append(want.Asked, q.ID)
		}
		text := ""
		for r := range live.Session().Log().Records(0) {
			switch r.Type {
			case outcrop.TypeAssistantMessage:
				text = ""
			case outcrop.TypeAssistantChunk:
				var d struct{ Chunk struct{ Text string } }
				if err := json.Unmarshal(r.Data, &d); err != nil {
					t.Fatal(err)
				}
				text += d.Chunk.Text
			}
		}
		if text != "" {
			want.Draft[0] = text
		}
		for i := range listeners {
			drain(i)
			got := *pages[i]
			if len(got.Asked) == 0 {
				got.Asked = nil
			}
			got.Seqs = nil
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("listener %d: %s", i, d)
			}
		}
	})
}
