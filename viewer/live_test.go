package viewer_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// turn appends a turn and makes it durable.
func turn(t testing.TB, l *store.Live, n int) {
	t.Helper()
	if err := storetest.Turn(l.Session(), n); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// covered are the seqs that the records and batches of a stream stand for.
func covered(t *testing.T, events []sse) (seqs []int) {
	t.Helper()
	for _, ev := range events {
		switch ev.name {
		case "record":
			r := ev.record(t)
			for seq := r.Seq; seq <= r.Last; seq++ {
				if !slices.Contains(seqs, seq) { // a run that grew comes again
					seqs = append(seqs, seq)
				}
			}
		case "batch":
			var b struct{ First, Last int }
			if err := json.Unmarshal([]byte(ev.data), &b); err != nil {
				t.Fatal(err)
			}
			for seq := b.First; seq <= b.Last; seq++ {
				seqs = append(seqs, seq)
			}
		}
	}
	return seqs
}

func through(last int) func(sse) bool {
	return func(ev sse) bool {
		return (ev.name == "record" || ev.name == "batch") && strings.Contains(ev.data, fmt.Sprintf(`"last":%d,`, last))
	}
}

func seqRange(from, to int) (out []int) {
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}

// What the page gets by an answer and the stream behind it is the whole log,
// once, whenever it connects anew.
func TestAStreamGoesOnExactlyWhereAnAnswerOrAnEventStood(t *testing.T) {
	w := newWorld(t, options{})
	l := w.live("s1")
	defer l.Close(t.Context())
	turn(t, l, 1)
	var about struct {
		Cursor  string
		LastSeq int
	}
	w.get("/api/v1/sessions/s1", &about)
	turn(t, l, 2) // between the answer and the stream
	s := w.listen("/api/v1/sessions/s1/live?after="+about.Cursor, "")
	first := l.Session().Len() - 1
	events := s.until(through(first))
	turn(t, l, 3)
	events = append(events, s.until(through(l.Session().Len()-1))...)
	if d := cmp.Diff(seqRange(about.LastSeq+1, l.Session().Len()-1), covered(t, events)); d != "" {
		t.Fatal(d)
	}
	s.close()
	last := l.Session().Len() - 1
	turn(t, l, 4)
	// From each event that had an id.
	for _, ev := range events {
		if ev.id == "" {
			continue
		}
		s := w.listen("/api/v1/sessions/s1/live?after=ignored", ev.id)
		got := covered(t, s.until(through(l.Session().Len()-1)))
		s.close()
		from := ev.record(t).Last + 1
		if d := cmp.Diff(seqRange(from, l.Session().Len()-1), got); d != "" {
			t.Fatalf("after %s: %s", ev.id, d)
		}
	}
	if last < 10 {
		t.Fatalf("only %d events", last)
	}
	// Without an id it begins at the end.
	s = w.listen("/api/v1/sessions/s1/live", "")
	if ev := s.next(); ev.name != "hello" {
		t.Fatalf("%+v", ev)
	}
	turn(t, l, 5)
	got := covered(t, s.until(through(l.Session().Len()-1)))
	if len(got) == 0 || got[0] < last {
		t.Errorf("it begins at %v", got)
	}
	s.close()
}

func TestAnIdThatIsNotOfThisLogIsAnsweredByAReset(t *testing.T) {
	w := newWorld(t, options{})
	for _, id := range []string{"s1", "s2"} {
		l := w.live(id)
		turn(t, l, 1)
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cursor := func(id string) string {
		var about struct{ Cursor string }
		w.get("/api/v1/sessions/"+id, &about)
		return about.Cursor
	}
	own := cursor("s1")
	parts := strings.Split(own, ".")
	changed := func(i int, to string) string {
		p := slices.Clone(parts)
		p[i] = to
		return strings.Join(p, ".")
	}
	for name, c := range map[string]struct{ id, reason string }{
		"of another session":       {cursor("s2"), "foreign-id"},
		"no id at all":             {"x", "foreign-id"},
		"a number alone":           {"12", "foreign-id"},
		"of another epoch":         {changed(1, "7"), "log-changed"},
		"of another generation":    {changed(2, "7"), "log-changed"},
		"of an event that is not":  {changed(3, "99999"), "log-changed"},
		"of an event that differs": {changed(4, "1"), "log-changed"},
		"of a number that is none": {changed(3, "x"), "foreign-id"},
		"negative":                 {changed(3, "-7"), "foreign-id"},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.listen("/api/v1/sessions/s1/live", c.id)
			defer s.close()
			if ev := s.next(); ev.name != "hello" {
				t.Fatalf("%+v", ev)
			}
			ev := s.next()
			if ev.name != "reset" || !strings.Contains(ev.data, `"reason":"`+c.reason+`"`) || ev.id != own {
				t.Errorf("%+v", ev)
			}
		})
	}
	s := w.listen("/api/v1/sessions/s1/live", own)
	defer s.close()
	s.next()
	l, err := store.Open(t.Context(), w.store, "s1", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	turn(t, l, 2)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ev := range s.until(through(l.Session().Len() - 1)) {
		if ev.name == "reset" {
			t.Errorf("its own id is answered by %+v", ev)
		}
	}
}

// A log that another one takes the place of, below the place where the page
// stood, begins anew for it.
func TestALogThatIsReplacedResetsWhoListens(t *testing.T) {
	w := newWorld(t, options{})
	l := w.live("s1")
	turn(t, l, 1)
	turn(t, l, 2)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := w.listen("/api/v1/sessions/s1/live", "")
	defer s.close()
	s.next()
	other := jsonlStore(t, t.TempDir())
	o, err := store.Create(t.Context(), other, storetest.Header("s1"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	turn(t, o, 1)
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	replaceFile(t, pathOf(t, w.store, "s1"), pathOf(t, other, "s1"))
	ev := s.until(named("reset"))
	if last := ev[len(ev)-1]; !strings.Contains(last.data, "log-changed") {
		t.Errorf("%+v", last)
	}
	var about struct{ Events int }
	if w.get("/api/v1/sessions/s1", &about); about.Events != o.Session().Len() {
		t.Errorf("%d events, not %d", about.Events, o.Session().Len())
	}
}

func TestASessionThatGoesAwayIsSaidToBeGone(t *testing.T) {
	w := newWorld(t, options{})
	l := w.live("s1")
	turn(t, l, 1)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := w.listen("/api/v1/sessions/s1/live", "")
	s.next()
	removeFile(t, pathOf(t, w.store, "s1"))
	s.until(named("gone"))
	for range s.events {
	}
	if code := w.refused("/api/v1/sessions/s1", 404); code != "SESSION_NOT_FOUND" {
		t.Error(code)
	}
}

// A reply that is being written comes word by word; a page that comes late gets
// all of it; a key is never shown, also when its pieces come one by one.
func TestADraftIsWholeForEverybodyAndShowsNoSecrets(t *testing.T) {
	const key = "sk-proj-Zk3vQ9xT7LmB2nR8wYcJ5hDf4GsA6uE1"
	w := newWorld(t, options{})
	l := w.live("s1")
	defer l.Close(t.Context())
	se := l.Session()
	add := func(p outcrop.LogPayload) {
		t.Helper()
		if _, err := se.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	chunk := func(c message.Chunk) {
		t.Helper()
		add(outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: c})
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	add(outcrop.TurnStart{Turn: 1})
	add(outcrop.StepStart{Turn: 1, Step: 1})
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	masked := w.listen("/api/v1/sessions/s1/live", "")
	shown := w.listen("/api/v1/sessions/s1/live?secrets=show", "")
	quiet := w.listen("/api/v1/sessions/s1/live?chunks=0", "")
	for _, s := range []*stream{masked, shown, quiet} {
		s.until(named("hello"))
	}
	chunk(message.Chunk{Type: message.BlockStart, Index: 0, BlockType: message.TextBlock})
	text := "The key is " + key + " and that is all."
	for i := 0; i < len(text); i += 3 {
		chunk(message.Chunk{Type: message.TextDelta, Index: 0, Text: text[i:min(i+3, len(text))]})
	}
	drawn := &drafted{}
	for {
		ev := masked.until(named("draft"))
		drawn.take(t, ev[len(ev)-1])
		if strings.Contains(ev[len(ev)-1].data, "sk-") {
			t.Fatalf("a key is shown: %+v", ev)
		}
		if drawn.text() == "The key is [masked:api-key] and that is " {
			break
		}
		if strings.Contains(drawn.text(), "all") {
			t.Fatalf("the last word is not kept back: %q", drawn.text())
		}
	}
	full := &drafted{}
	for full.text() != text {
		ev := shown.until(named("draft"))
		full.take(t, ev[len(ev)-1])
	}
	// Who comes late gets it at once.
	late := w.listen("/api/v1/sessions/s1/live", "")
	ev := late.until(named("draft"))
	if d := (&drafted{}); true {
		d.take(t, ev[len(ev)-1])
		if d.text() != drawn.text() {
			t.Errorf("late: %q, not %q", d.text(), drawn.text())
		}
	}
	chunk(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Stop}})
	if _, err := se.AppendSurface(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{ID: "a", Role: message.Assistant, Source: message.FromModel("p", "m"), Content: []message.Block{message.Text("x")}}}, outcrop.Tail, outcrop.SourceRange(2, outcrop.Seq(se.Len()-1))); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*stream{masked, shown, late} {
		s.until(func(ev sse) bool { return ev.name == "draft" && strings.Contains(ev.data, `"turn":0`) })
	}
	for _, ev := range quiet.until(func(ev sse) bool { return strings.Contains(ev.data, "assistant/message") }) {
		if ev.name == "draft" {
			t.Errorf("a draft that nobody asked for: %+v", ev)
		}
	}
}

// drafted is a draft as a page puts it together.
type drafted struct{ blocks map[int]string }

func (d *drafted) take(t *testing.T, ev sse) {
	t.Helper()
	var in struct {
		Reset  bool
		Blocks []struct {
			Index        int
			Text, Append *string
		}
	}
	if err := json.Unmarshal([]byte(ev.data), &in); err != nil {
		t.Fatal(err)
	}
	if in.Reset || d.blocks == nil {
		d.blocks = map[int]string{}
	}
	for _, b := range in.Blocks {
		switch {
		case b.Text != nil:
			d.blocks[b.Index] = *b.Text
		case b.Append != nil:
			d.blocks[b.Index] += *b.Append
		}
	}
}

func (d *drafted) text() string { return d.blocks[0] }

func TestManyRecordsAtOnceComeAsOneBatch(t *testing.T) {
	w := newWorld(t, options{})
	l := w.live("s1")
	defer l.Close(t.Context())
	turn(t, l, 1)
	var about struct{ Cursor string }
	w.get("/api/v1/sessions/s1", &about)
	at := l.Session().Len() - 1
	for n := 2; n < 60; n++ {
		if err := storetest.Turn(l.Session(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := w.listen("/api/v1/sessions/s1/live?after="+about.Cursor, "")
	defer s.close()
	events := s.until(through(l.Session().Len() - 1))
	if last := events[len(events)-1]; last.name != "batch" || !strings.Contains(last.data, fmt.Sprintf(`"first":%d`, at+1)) {
		t.Errorf("%+v", last)
	}
	// Its id is a place like every other.
	again := w.listen("/api/v1/sessions/s1/live", events[len(events)-1].id)
	defer again.close()
	again.next()
	from := l.Session().Len()
	turn(t, l, 60)
	if d := cmp.Diff(seqRange(from, l.Session().Len()-1), covered(t, again.until(through(l.Session().Len()-1)))); d != "" {
		t.Error(d)
	}
}

func TestTheListIsToldOfWhatChanges(t *testing.T) {
	w := newWorld(t, options{})
	s := w.listen("/api/v1/live", "")
	defer s.close()
	s.until(named("hello"))
	l := w.live("s1")
	turn(t, l, 1)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.until(func(ev sse) bool { return ev.name == "sessions" && strings.Contains(ev.data, `"ids":["s1"]`) })
	removeFolder(t, pathOf(t, w.store, "s1"))
	s.until(func(ev sse) bool { return ev.name == "sessions" && strings.Contains(ev.data, `"removed":["s1"]`) })
}

func TestOneTooManyIsRefused(t *testing.T) {
	w := newWorld(t, options{})
	l := w.live("s1")
	turn(t, l, 1)
	defer l.Close(t.Context())
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 0}}
	for i := range 256 {
		resp, err := client.Do(w.request("GET", "/api/v1/sessions/s1/live", nil))
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 {
			t.Fatalf("stream %d: %d", i, resp.StatusCode)
		}
		defer resp.Body.Close()
	}
	if code := w.refused("/api/v1/sessions/s1/live", 429); code != "TOO_MANY" {
		t.Error(code)
	}
	if code := w.refused("/api/v1/live", 429); code != "TOO_MANY" {
		t.Error(code)
	}
	// Everything else is answered.
	w.get("/api/v1/sessions/s1", nil)
}

// An event is there within 400 ms when another store writes it, which is how
// another process looks.
func TestAnEventOfAnotherProcessComesByItself(t *testing.T) {
	w := newWorld(t, options{})
	other := jsonlStore(t, w.dir)
	l, err := store.Create(t.Context(), other, storetest.Header("s1"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(t.Context())
	turn(t, l, 1)
	var about struct {
		Writer struct{ Where, Holder string }
	}
	w.get("/api/v1/sessions/s1", &about)
	if about.Writer.Where != "elsewhere" || !strings.Contains(about.Writer.Holder, "in use by test") {
		t.Errorf("%+v", about)
	}
	s := w.listen("/api/v1/sessions/s1/live", "")
	defer s.close()
	s.until(named("hello"))
	var most time.Duration
	for n := 2; n < 8; n++ {
		turn(t, l, n)
		began := time.Now()
		s.until(through(l.Session().Len() - 1))
		most = max(most, time.Since(began))
	}
	t.Logf("the slowest came after %v", most)
	if code := w.postRefused("/api/v1/sessions/s1/title", map[string]any{"title": "a"}, 409); code != "LOCKED" {
		t.Error(code)
	}
}

func jsonlStore(t testing.TB, dir string) store.Store {
	t.Helper()
	st, err := jsonl.New(dir, jsonl.Options{Plain: true, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return st
}
