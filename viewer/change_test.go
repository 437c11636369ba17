package viewer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer"
)

const working = `{"script":1,"model":"test","window":32000}
{"when":{"purpose":"turn","contains":"write it"},"text":"Writing it.","tools":[{"name":"write","args":{"path":"a.txt","content":"hello\n"}}]}
{"when":{"purpose":"turn","contains":"created a.txt"},"text":"It is written."}
{"when":{"purpose":"turn","contains":"write it"},"text":"Again.","tools":[{"name":"write","args":{"path":"b.txt","content":"hello\n"}}]}
{"when":{"purpose":"turn","contains":"not approved"},"text":"Then not."}
{"when":{"purpose":"turn","contains":"wait"},"cut":"hang"}
{"when":{"purpose":"compaction"},"text":"They said things, and all of it was answered."}
{"when":{"purpose":"turn"},"text":"Answer one."}
{"when":{"purpose":"turn"},"text":"Answer two."}
{"when":{"purpose":"turn"},"text":"Answer three."}
{"when":{"purpose":"turn"},"text":"Answer four."}
{"when":{"purpose":"turn"},"text":"Answer five."}
`

// begun is a world with a session s1 of one turn, which nobody holds.
func begun(t *testing.T, script string) *world {
	t.Helper()
	w := newWorld(t, options{script: script})
	l := w.live("s1")
	turn(t, l, 1)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) inspect(id string) *outcrop.Session {
	w.t.Helper()
	s, _, err := store.Inspect(context.Background(), w.store, id, outcrop.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

const s1 = "/api/v1/sessions/s1/"

type status struct{ Phase string }

func idle(ev sse) bool {
	var s status
	return ev.name == "status" && json.Unmarshal([]byte(ev.data), &s) == nil && s.Phase == "idle"
}

func ofType(typ string) func(sse) bool {
	return func(ev sse) bool { return ev.name == "record" && strings.Contains(ev.data, `"type":"`+typ+`"`) }
}

// ended waits for the end of a turn and returns what its reply said.
func ended(t *testing.T, s *stream) (said []string) {
	t.Helper()
	for _, ev := range s.until(ofType("turn/end")) {
		if ev.name != "record" {
			continue
		}
		if r := ev.record(t); r.Item != nil && r.Item.Kind == "assistant" {
			for _, b := range r.Item.Blocks {
				if b.Type == "text" {
					said = append(said, b.Text)
				}
			}
		}
	}
	return said
}

func TestASessionIsContinuedFromThePage(t *testing.T) {
	w := begun(t, working)
	for _, path := range []string{"send", "steer", "retry"} {
		if code := w.postRefused(s1+path, map[string]any{}, 409); code != "NOT_HERE" && path != "send" {
			t.Errorf("%s before continue: %s", path, code)
		}
	}
	for path, body := range map[string]map[string]any{"send": {"text": "x"}, "cancel": {}, "wake": {}, "release": {}, "policy": {"approve": "all"}, "model": {"model": "a:b"},
		"compact": {}, "approve": {"id": "x", "verdict": "once"}} {
		if code := w.postRefused(s1+path, body, 409); code != "NOT_HERE" {
			t.Errorf("%s before continue: %s", path, code)
		}
	}
	s := w.listen(s1+"live", "")
	defer s.close()
	s.until(named("hello"))
	var went struct {
		Status status
		Model  string
	}
	w.post(s1+"continue", map[string]any{}, &went)
	if went.Status.Phase != "idle" || went.Model != "script:test" {
		t.Fatalf("%+v", went)
	}
	if ev := s.until(named("writer")); !strings.Contains(ev[len(ev)-1].data, `"here"`) {
		t.Errorf("%+v", ev)
	}
	w.post(s1+"continue", map[string]any{}, nil) // again: it is there
	var sent struct{ ID string }
	w.post(s1+"send", map[string]any{"text": "Hello."}, &sent)
	if sent.ID == "" {
		t.Error("no id")
	}
	if said := ended(t, s); !slices.Equal(said, []string{"Answer one."}) {
		t.Errorf("it said %q", said)
	}
	var about struct {
		Writer struct{ Where string }
		Status *status
		Turns  int
		State  string
	}
	w.get("/api/v1/sessions/s1", &about)
	if about.Writer.Where != "here" || about.Status == nil || about.Turns != 2 || about.State != "ok" {
		t.Errorf("%+v", about)
	}
	var me struct{ Running []string }
	if w.get("/api/v1", &me); !slices.Equal(me.Running, []string{"s1"}) {
		t.Errorf("%+v", me)
	}
	// Another program is refused meanwhile.
	if _, err := store.Open(t.Context(), jsonlStore(t, w.dir), "s1", store.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("the lock: %v", err)
	}
	w.post(s1+"release", map[string]any{}, nil)
	if ev := s.until(named("writer")); !strings.Contains(ev[len(ev)-1].data, `"none"`) {
		t.Errorf("%+v", ev[len(ev)-1])
	}
	l, err := store.Open(t.Context(), jsonlStore(t, w.dir), "s1", store.Options{})
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	// The stream goes on with what another one writes.
	turn(t, l, 3)
	s.until(through(l.Session().Len() - 1))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAQuestionIsAnsweredInThePage(t *testing.T) {
	for _, c := range []struct {
		verdict, reason, outcome string
		written                  bool
		last                     string
	}{
		{"once", "", "allowed-once", true, "It is written."},
		{"same", "", "allowed-once", true, "It is written."},
		{"reject", "use another name", "rejected", false, "Then not."},
	} {
		t.Run(c.verdict, func(t *testing.T) {
			w := begun(t, working)
			s := w.listen(s1+"live", "")
			defer s.close()
			s.until(named("hello"))
			w.post(s1+"continue", map[string]any{}, nil)
			w.post(s1+"send", map[string]any{"text": "Please write it."}, nil)
			ev := s.until(named("question"))
			var q struct {
				ID, Tool, Class, Preview, Dir string
				Diff                          bool
			}
			if err := json.Unmarshal([]byte(ev[len(ev)-1].data), &q); err != nil {
				t.Fatal(err)
			}
			if q.Tool != "write" || q.Class != "edit" || !q.Diff || !strings.Contains(q.Preview, "+hello") || q.Dir == "" {
				t.Errorf("%+v", q)
			}
			var about struct {
				Questions []struct{ ID string }
				Status    status
			}
			w.get("/api/v1/sessions/s1", &about)
			if len(about.Questions) != 1 || about.Questions[0].ID != q.ID || about.Status.Phase != "asking" {
				t.Errorf("%+v", about)
			}
			if code := w.postRefused(s1+"approve", map[string]any{"id": q.ID, "verdict": "maybe"}, 400); code != "BAD_REQUEST" {
				t.Error(code)
			}
			if code := w.postRefused(s1+"approve", map[string]any{"id": "other", "verdict": "once"}, 409); code != "ANSWERED" {
				t.Error(code)
			}
			w.post(s1+"approve", map[string]any{"id": q.ID, "verdict": c.verdict, "reason": c.reason}, nil)
			if code := w.postRefused(s1+"approve", map[string]any{"id": q.ID, "verdict": "once"}, 409); code != "ANSWERED" {
				t.Error(code)
			}
			answered := false
			said := []string{}
			for _, ev := range s.until(ofType("turn/end")) {
				if ev.name == "answered" {
					answered = strings.Contains(ev.data, `"outcome":"`+c.outcome+`"`)
				}
				if ev.name == "record" {
					if r := ev.record(t); r.Item != nil && r.Item.Kind == "assistant" {
						for _, b := range r.Item.Blocks {
							said = append(said, b.Text)
						}
					}
				}
			}
			if !answered {
				ev := s.until(named("answered"))
				answered = strings.Contains(ev[len(ev)-1].data, `"outcome":"`+c.outcome+`"`)
			}
			if !answered || len(said) == 0 || said[len(said)-1] != c.last {
				t.Errorf("answered %v, said %q", answered, said)
			}
			if _, err := os.Stat(filepath.Join(w.run.dir, "a.txt")); (err == nil) != c.written {
				t.Errorf("the file: %v", err)
			}
			var conv struct {
				Items []struct {
					Kind, Tool string
					IsError    bool
					CallSeq    *int
					Blocks     []struct {
						Type, Name, State string
						Result            *int
					}
				}
			}
			w.get(s1+"conversation?from=-20", &conv)
			paired := 0
			for _, it := range conv.Items {
				if it.Kind == "result" && it.CallSeq != nil && it.Tool == "write" && it.IsError != c.written {
					paired++
				}
				for _, b := range it.Blocks {
					if b.Type == "call" && b.Name == "write" && b.Result != nil && b.State == map[bool]string{true: "ok", false: "error"}[c.written] {
						paired++
					}
				}
			}
			if paired != 2 {
				t.Errorf("the call and its result are no pair: %+v", conv.Items)
			}
		})
	}
}

func TestARunningTurnIsSteeredAndCancelled(t *testing.T) {
	w := begun(t, working)
	s := w.listen(s1+"live", "")
	defer s.close()
	s.until(named("hello"))
	w.post(s1+"continue", map[string]any{}, nil)
	w.post(s1+"send", map[string]any{"text": "Please wait."}, nil)
	s.until(func(ev sse) bool { return ev.name == "status" && strings.Contains(ev.data, `"phase":"calling"`) })
	for path, body := range map[string]map[string]any{"rewind": {"to": 0}, "title": {"title": "x"}, "pin": {"node": 1, "pinned": true}, "compact": {"dryRun": true}} {
		if code := w.postRefused(s1+path, body, 409); code != "BUSY" {
			t.Errorf("%s while a turn runs: %s", path, code)
		}
	}
	w.post(s1+"steer", map[string]any{"text": "Hurry."}, nil)
	var c struct{ Dropped []string }
	w.post(s1+"cancel", map[string]any{}, &c)
	if !slices.Equal(c.Dropped, []string{"Hurry."}) {
		t.Errorf("dropped %q", c.Dropped)
	}
	ev := s.until(ofType("turn/end"))
	if r := ev[len(ev)-1].record(t); r.Item == nil || r.Item.Kind != "end" {
		t.Errorf("%+v", r)
	}
	s.until(idle)
	w.post(s1+"policy", map[string]any{"approve": "all"}, nil)
	w.post(s1+"send", map[string]any{"text": "Now write it."}, nil)
	if said := ended(t, s); said[len(said)-1] != "It is written." {
		t.Errorf("without a question: %q", said)
	}
}

func TestHistoryIsEditedFromThePage(t *testing.T) {
	for _, here := range []bool{false, true} {
		t.Run(fmt.Sprintf("continued here %v", here), func(t *testing.T) {
			w := begun(t, working)
			if here {
				w.post(s1+"continue", map[string]any{}, nil)
			}
			before := w.inspect("s1")
			prompt := before.Surface().Nodes()[0]
			for range 2 { // the second changes nothing
				w.post(s1+"pin", map[string]any{"node": prompt, "pinned": true}, nil)
			}
			if st := pin.Of(w.inspect("s1").Log(), w.inspect("s1").Surface().Nodes()); !slices.Equal(st.Held, []outcrop.Seq{prompt}) {
				t.Errorf("%+v", st)
			}
			w.post(s1+"pin", map[string]any{"node": prompt, "pinned": false}, nil)
			if code := w.postRefused(s1+"pin", map[string]any{"node": 0, "pinned": true}, 409); code != string(pin.CodeNotOnSurface) {
				t.Error(code)
			}
			w.post(s1+"title", map[string]any{"title": " A   new name "}, nil)
			w.post(s1+"tag", map[string]any{"tag": "red", "set": true}, nil)
			w.post(s1+"star", map[string]any{"starred": true}, nil)
			if tags := collection.Tags(w.inspect("s1").Log()); !slices.Equal(tags, []string{collection.Star, "red"}) {
				t.Errorf("%q", tags)
			}
			var about struct{ Title string }
			if w.get("/api/v1/sessions/s1", &about); about.Title != "A new name" {
				t.Errorf("%+v", about)
			}
			for path, body := range map[string]map[string]any{"title": {"title": " "}, "tag": {"tag": "outcrop:star", "set": true}} {
				if code := w.postRefused(s1+path, body, 400); code != "BAD_REQUEST" {
					t.Errorf("%s: %s", path, code)
				}
			}
			var rewound struct {
				To, Messages int
				Replacement  *outcrop.Seq
				Removed      []outcrop.Seq
				DryRun       bool
			}
			n := w.inspect("s1").Len()
			w.post(s1+"rewind", map[string]any{"to": 0, "dryRun": true}, &rewound)
			if !rewound.DryRun || rewound.Replacement != nil || !slices.Equal(rewound.Removed, before.Surface().Nodes()) || w.inspect("s1").Len() != n {
				t.Errorf("%+v", rewound)
			}
			w.post(s1+"rewind", map[string]any{"to": 0}, &rewound)
			if rewound.Replacement == nil || !slices.Equal(w.inspect("s1").Surface().Nodes(), []outcrop.Seq{*rewound.Replacement}) {
				t.Errorf("%+v", rewound)
			}
			type items struct {
				Total int
				Items []struct {
					Kind    string
					Index   int
					Rewound bool
					By      outcrop.Seq
				}
			}
			var folded, all items
			w.get(s1+"conversation?from=0", &folded)
			w.get(s1+"conversation?from=0&all=1", &all)
			if k := folded.Items[0]; k.Kind != "rewound" || k.By != *rewound.Replacement || all.Total <= folded.Total || !all.Items[0].Rewound {
				t.Errorf("%+v\n%+v", folded, all)
			}
			for i, it := range folded.Items {
				if it.Index != i {
					t.Errorf("%+v at %d", it, i)
				}
			}
			var fork struct {
				Session string
				At      outcrop.Seq
			}
			w.post(s1+"fork", map[string]any{"at": before.Len() - 1}, &fork)
			if c := w.inspect(fork.Session); c.Header().ParentSession == nil || *c.Header().ParentSession != "s1" || !slices.Equal(c.Surface().Nodes(), before.Surface().Nodes()) {
				t.Errorf("%+v", c.Header())
			}
			if code := w.postRefused(s1+"fork", map[string]any{"at": -4}, 400); code != "BAD_REQUEST" {
				t.Error(code)
			}
			var edits struct {
				Edits, Planned []any
				DryRun         bool
			}
			w.post(s1+"prune", map[string]any{"dryRun": true}, &edits)
			if !edits.DryRun || len(edits.Edits) != 0 {
				t.Errorf("%+v", edits)
			}
		})
	}
}

func TestAConversationIsCompactedAndAPromptIsSentAgain(t *testing.T) {
	w := begun(t, working)
	s := w.listen(s1+"live", "")
	defer s.close()
	s.until(named("hello"))
	w.post(s1+"continue", map[string]any{}, nil)
	for i := range 3 {
		w.post(s1+"send", map[string]any{"text": fmt.Sprintf("Question %d. %s", i, strings.Repeat("long ", 400))}, nil)
		ended(t, s)
		s.until(idle)
	}
	nodes := w.inspect("s1").Surface().Nodes()
	var edits struct {
		Edits []struct {
			Kind        string
			Replacement outcrop.Seq
			Shadowed    []outcrop.Seq
		}
		Planned []any
	}
	body := map[string]any{"start": nodes[0], "end": nodes[3], "modelFree": true, "dryRun": true}
	if w.post(s1+"compact", body, &edits); len(edits.Planned) != 1 {
		t.Fatalf("%+v", edits)
	}
	body["dryRun"] = false
	w.post(s1+"compact", body, &edits)
	if len(edits.Edits) != 1 || edits.Edits[0].Kind != "compact" || !slices.Equal(edits.Edits[0].Shadowed, nodes[:4]) {
		t.Fatalf("%+v", edits)
	}
	ev := s.until(func(ev sse) bool { return ev.name == "record" && !strings.Contains(ev.data, `"shadowed":[]`) })
	if r := ev[len(ev)-1].record(t); r.Item == nil || r.Item.Kind != "checkpoint" || len(r.Shadowed) != 4 {
		t.Errorf("%+v", r)
	}
	if code := w.postRefused(s1+"compact", map[string]any{"start": nodes[0]}, 400); code != "BAD_REQUEST" {
		t.Error(code)
	}
	var again struct{ ID string }
	w.post(s1+"retry", map[string]any{"edit": "Question anew."}, &again)
	if said := ended(t, s); len(said) != 1 || again.ID == "" {
		t.Errorf("%q", said)
	}
	var conv struct {
		Items []struct {
			Kind     string
			Seq      outcrop.Seq
			Blocks   []struct{ Text string }
			Versions *struct {
				N    int
				Seqs []outcrop.Seq
			}
		}
	}
	w.get(s1+"conversation?from=-3", &conv)
	last := conv.Items[len(conv.Items)-2]
	if last.Kind != "user" || last.Blocks[0].Text != "Question anew." || last.Versions == nil || last.Versions.N != 2 || len(last.Versions.Seqs) != 2 || last.Versions.Seqs[1] != last.Seq {
		t.Errorf("%+v", conv.Items)
	}
}

func TestWhatCannotBeContinuedSaysWhy(t *testing.T) {
	w := begun(t, working)
	w.run.fail = errors.New("no model chosen: use --model PROVIDER:MODEL")
	if code := w.postRefused(s1+"continue", map[string]any{}, 409); code != "REFUSED" {
		t.Error(code)
	}
	w.run.fail = nil
	l, err := store.Open(t.Context(), jsonlStore(t, w.dir), "s1", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if code := w.postRefused(s1+"continue", map[string]any{}, 409); code != "LOCKED" {
		t.Error(code)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := w.postRefused("/api/v1/sessions/none/continue", map[string]any{}, 404); code != "SESSION_NOT_FOUND" {
		t.Error(code)
	}
	r := begun(t, "")
	if code := r.postRefused(s1+"continue", map[string]any{}, 403); code != "READ_ONLY" {
		t.Error(code)
	}
}

// A session that another part of the program writes, such as a chat, is shown
// with its questions, and stays that part's own.
func TestASessionThatIsHostedIsShownAndNotTakenOver(t *testing.T) {
	w := begun(t, working)
	got, err := w.run.Run(t.Context(), "s1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	end, err := w.v.Host(got, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.v.Host(got, nil); err == nil {
		t.Error("it is hosted twice")
	}
	w.post(s1+"send", map[string]any{"text": "Hello."}, nil)
	if _, err := got.Agent().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := w.postRefused(s1+"release", map[string]any{}, 409); code != "REFUSED" {
		t.Error(code)
	}
	end()
	if code := w.postRefused(s1+"send", map[string]any{"text": "x"}, 409); code != "NOT_HERE" {
		t.Error(code)
	}
	if err := got.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What runs in a terminal is shown beside it; either side may answer.
func TestAChatIsShownBesideTheTerminal(t *testing.T) {
	w := begun(t, working)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := viewer.Beside(l, viewer.Options{Store: w.store, Token: token, Now: w.now, NewID: w.newID, Random: func([]byte) {}})
	if err != nil {
		t.Fatal(err)
	}
	terminal := &asker{tell: make(chan error, 1), a: agent.Answer{Verdict: agent.AllowOnce}}
	r, err := w.run.Run(t.Context(), "s1", "", viewer.FirstOf(terminal, c.Ask))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second in the place of the first
		if err := c.Show(r); err != nil {
			t.Fatal(err)
		}
	}
	beside := w.at(c.URL)
	s := beside.listen(s1+"live", "")
	s.until(named("hello"))
	for _, who := range []string{"page", "terminal"} {
		if _, err := r.Agent().Send(t.Context(), message.Message{Content: []message.Block{message.Text("Please write it.")}}); err != nil {
			t.Fatal(err)
		}
		ev := s.until(named("question"))
		var q struct{ ID string }
		if err := json.Unmarshal([]byte(ev[len(ev)-1].data), &q); err != nil {
			t.Fatal(err)
		}
		want := "withdrawn"
		if who == "page" {
			want = "rejected"
			beside.post(s1+"approve", map[string]any{"id": q.ID, "verdict": "reject"}, nil)
		} else {
			terminal.tell <- nil
		}
		ev = s.until(named("answered"))
		if !strings.Contains(ev[len(ev)-1].data, want) {
			t.Errorf("%s answers: %+v", who, ev[len(ev)-1])
		}
		if _, err := r.Agent().Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// asker answers a question, or cannot, when told to.
type asker struct {
	tell chan error
	a    agent.Answer
}

func (a *asker) Approve(ctx context.Context, _ agent.Question) (agent.Answer, error) {
	select {
	case err := <-a.tell:
		return a.a, err
	case <-ctx.Done():
		return agent.Answer{}, ctx.Err()
	}
}

func TestOfTwoWhoAreAskedTheFirstAnswerCounts(t *testing.T) {
	// Each time two others: one who is left behind may still take what it is told.
	ask := func(told ...error) (agent.Answer, error) {
		no, yes := &asker{tell: make(chan error, 1)}, &asker{tell: make(chan error, 1), a: agent.Answer{Verdict: agent.AllowOnce}}
		yes.tell <- told[0]
		if len(told) > 1 {
			no.tell <- told[1]
		}
		return viewer.FirstOf(no, yes).Approve(t.Context(), agent.Question{})
	}
	if a, err := ask(nil); err != nil || a.Verdict != agent.AllowOnce {
		t.Errorf("%v %v", a, err)
	}
	// One who cannot be asked leaves it to the other.
	if a, err := ask(nil, agent.ErrUnavailable); err != nil || a.Verdict != agent.AllowOnce {
		t.Errorf("%v %v", a, err)
	}
	if _, err := ask(agent.ErrUnavailable, agent.ErrUnavailable); !errors.Is(err, agent.ErrUnavailable) {
		t.Error(err)
	}
}
