package search_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/search"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/sqlite"
)

var bg = context.Background()

func index(t testing.TB) *search.Index {
	t.Helper()
	return indexAt(t, filepath.Join(t.TempDir(), "state", "search.db"))
}

func indexAt(t testing.TB, path string) *search.Index {
	t.Helper()
	ix, err := search.Open(bg, path, search.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

// stores are one of each kind.
func stores(t testing.TB) map[string]store.Store {
	t.Helper()
	files, err := jsonl.New(filepath.Join(t.TempDir(), "sessions"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := jsonl.New(filepath.Join(t.TempDir(), "sessions"), jsonl.Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.New(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return map[string]store.Store{"jsonl": files, "jsonl+plain": plain, "sqlite": db, "memory": memory.New()}
}

// talk writes a session by hand.
type talk struct {
	t testing.TB
	*store.Live
	turn int
}

func begin(t testing.TB, st store.Store, id, cwd string) *talk {
	t.Helper()
	n := int64(1_700_000_000_000)
	l, err := store.Create(bg, st, outcrop.NewHeader(id, n, cwd), store.Options{Session: outcrop.Options{Now: func() int64 { n += 1000; return n }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(bg) })
	return &talk{t: t, Live: l}
}

func (k *talk) surface(p outcrop.SurfacePayload, op outcrop.SurfaceOp, src outcrop.Sources) {
	k.t.Helper()
	if _, err := k.Session().AppendSurface(p, op, src); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) log(p outcrop.LogPayload) outcrop.Seq {
	k.t.Helper()
	ev, err := k.Session().Append(p)
	if err != nil {
		k.t.Fatal(err)
	}
	return ev.Seq
}

// say is one turn; call and result may be "".
func (k *talk) say(prompt, call, result, answer string) {
	k.t.Helper()
	k.turn++
	k.log(outcrop.TurnStart{Turn: k.turn})
	k.log(outcrop.StepStart{Turn: k.turn, Step: 1})
	k.surface(outcrop.UserMessage{Message: message.Message{ID: "u", Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text(prompt)}}}, outcrop.Tail, outcrop.NoSources)
	if call != "" {
		k.assistant(message.ToolCall("c", call, `{"path":"x"}`))
		seq := k.log(outcrop.ToolCall{Turn: k.turn, Step: 1, CallID: "c", Name: call, Arguments: `{"path":"x"}`})
		k.surface(outcrop.NewToolResult(k.turn, 1, "c", false, message.Text(result)), outcrop.Tail, outcrop.SourcesOf(seq))
	}
	k.assistant(message.Text(answer))
	k.log(outcrop.StepEnd{Turn: k.turn, Step: 1})
	k.log(outcrop.TurnEnd{Turn: k.turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
	if err := k.Flush(bg); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) assistant(b message.Block) {
	k.t.Helper()
	k.surface(outcrop.AssistantMessage{Turn: k.turn, Step: 1, Message: message.Message{ID: "a", Role: message.Assistant,
		Source: message.FromModel("p", "m"), Content: []message.Block{b}}}, outcrop.Tail, outcrop.EmptySources)
}

func update(t testing.TB, ix *search.Index, st store.Store) search.Report {
	t.Helper()
	r, err := ix.Update(bg, st, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found is what a query finds, as SESSION:SEQ.
func found(t testing.TB, ix *search.Index, q search.Query) []string {
	t.Helper()
	q.Newest = true
	hits, _, err := ix.Search(bg, q)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, h := range hits {
		out = append(out, fmt.Sprintf("%s:%d", h.Session, h.Seq))
	}
	return out
}

func want(t testing.TB, ix *search.Index, q search.Query, hits ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, hits...), found(t, ix, q)); diff != "" {
		t.Errorf("%+v (-want +got):\n%s", q, diff)
	}
}

func TestWhatWasSaidIsFoundInEachStore(t *testing.T) {
	for kind, st := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			ix := index(t)
			a := begin(t, st, "a", "/home/dev/one")
			a.say("Where is the Grüne Tür?", "read", "the door is in the hall", "It stands in the hall.")
			b := begin(t, st, "b", "/home/dev/two")
			b.say("東京タワーの高さ", "shell", "333 metres", "The tower has 333 metres.")
			if r := update(t, ix, st); r.Sessions != 2 || r.Read != 2 || r.Messages != 8 || r.Troubles != nil {
				t.Errorf("%+v", r)
			}
			want(t, ix, search.Query{Text: "HALL"}, "a:6", "a:5")
			want(t, ix, search.Query{Text: "grune tur"}, "a:2")
			want(t, ix, search.Query{Text: `"the hall"`}, "a:6", "a:5")
			want(t, ix, search.Query{Text: `"hall the"`})
			want(t, ix, search.Query{Text: "hal*"}, "a:6", "a:5")
			want(t, ix, search.Query{Text: "hal"})
			want(t, ix, search.Query{Text: "タワー"}, "b:2")
			want(t, ix, search.Query{Text: "京東"})
			want(t, ix, search.Query{Text: "metres", Roles: []search.Role{search.Tool}}, "b:5")
			want(t, ix, search.Query{Text: "hall", Tool: "read"}, "a:5")
			want(t, ix, search.Query{Text: "read", Tool: "read"}, "a:3")
			want(t, ix, search.Query{Text: "the", Session: "b"}, "b:6")
			want(t, ix, search.Query{Text: "the", Cwd: "/home/dev/two"}, "b:6")
			want(t, ix, search.Query{Text: "the", Cwd: "/home/dev/t"})
			want(t, ix, search.Query{Text: "tower", Since: 1_700_000_999_999})
			want(t, ix, search.Query{Text: "tower", Until: 1_700_000_999_999}, "b:6")
			want(t, ix, search.Query{Text: "tower", Store: "elsewhere"})
			want(t, ix, search.Query{Text: `" OR * NEAR( ) : ^ -tower`})

			if r := update(t, ix, st); r.Read != 0 {
				t.Errorf("nothing new was read: %+v", r)
			}
			b.say("and the bridge?", "", "", "The bridge has 12 metres.")
			if r := update(t, ix, st); r.Read != 1 || kind != "memory" && r.Messages != 2 {
				t.Errorf("what is new: %+v", r)
			}
			want(t, ix, search.Query{Text: "metres", Roles: []search.Role{search.Assistant}}, "b:12", "b:6")
		})
	}
}

func TestAnIndexThatIsGoneOrBrokenIsMadeAnew(t *testing.T) {
	st := memory.New()
	begin(t, st, "a", "/").say("alpha", "", "", "beta")
	path := filepath.Join(t.TempDir(), "search.db")
	for name, harm := range map[string]func() error{
		"gone":                func() error { return os.Remove(path) },
		"cut":                 func() error { return os.Truncate(path, 5000) },
		"of another version":  func() error { return patch(path, 60, 9) },
		"with damaged tables": func() error { return patch(path, 4096+3, 0xff) },
	} {
		ix := indexAt(t, path)
		update(t, ix, st)
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
		os.Remove(path + "-wal")
		if err := harm(); err != nil {
			t.Fatal(name, err)
		}
		ix, err := search.Open(bg, path, search.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := ix.Update(bg, st, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			want(t, ix, search.Query{Text: "alpha"}, "a:2")
		}
		ix.Close()
	}
	// What was never an index stays.
	if err := os.WriteFile(path, []byte("my notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := search.Open(bg, path, search.Options{}); err == nil || !strings.Contains(err.Error(), "no search index") {
		t.Error(err)
	}
}

func patch(path string, at int64, b byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte{b, b, b, b}, at)
	return err
}

func TestOneBrokenSessionHidesNoOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	st, err := jsonl.New(dir, jsonl.Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	ix := index(t)
	for _, id := range []string{"a", "b", "c"} {
		k := begin(t, st, id, "/w")
		k.say("needle one", "", "", "x")
		k.say("needle two", "", "", "x")
		k.Close(bg)
	}
	infos, err := st.List(bg, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range infos {
		text, err := os.ReadFile(in.Path)
		if err != nil {
			t.Fatal(err)
		}
		switch in.ID {
		case "a": // no header
			text = append([]byte("{"), text...)
		case "b": // damage behind the first turn
			text = []byte(strings.Replace(string(text), `"needle two"`, `needle two`, 1))
		}
		if err := os.WriteFile(in.Path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		r := update(t, ix, st)
		if len(r.Troubles) != 2 {
			t.Errorf("%+v", r.Troubles)
		}
		hits, _, err := ix.Search(bg, search.Query{Text: "needle", Session: "c"})
		if err != nil || len(hits) != 2 {
			t.Errorf("%v, %v", hits, err)
		}
		want(t, ix, search.Query{Text: "needle", Session: "b"}, "b:2")
	}
}

func TestASessionThatIsGoneIsFoundNoMore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	st, err := jsonl.New(dir, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := begin(t, st, "a", "/w")
	k.say("needle", "", "", "x")
	k.Close(bg)
	ix := index(t)
	update(t, ix, st)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if r := update(t, ix, st); r.Removed != 1 {
		t.Errorf("%+v", r)
	}
	want(t, ix, search.Query{Text: "needle"})
}

func TestARewrittenResultIsFoundOnce(t *testing.T) {
	st := memory.New()
	k := begin(t, st, "a", "/w")
	k.say("p", "read", "needle in the hay", "x")
	ev := k.Session().Log().At(5)
	_, err := k.Session().AppendRaw(outcrop.Event{Type: ev.Type, Data: ev.Data, Op: outcrop.Replace(5, 5), Sources: outcrop.SourcesOf(5)})
	if err != nil {
		t.Fatal(err)
	}
	k.Flush(bg)
	ix := index(t)
	update(t, ix, st)
	want(t, ix, search.Query{Text: "needle"}, "a:5")
}

func TestASnippetIsALineAroundTheFirstPlace(t *testing.T) {
	st := memory.New()
	begin(t, st, "a", "/w").say(strings.Repeat("before ", 20)+"the\n\tÉcole normale"+strings.Repeat(" after", 40), "", "", "短い東京タワーの話")
	ix := index(t)
	update(t, ix, st)
	for q, want := range map[string]string{
		"ecole":           "…before before before before before the <École> normale after",
		`"école NORMALE"`: "before the <École normale> after",
		"東京タワー":           "短い<東京タワー>の話",
	} {
		hits, _, err := ix.Search(bg, search.Query{Text: q})
		if err != nil || len(hits) != 1 {
			t.Fatalf("%s: %v, %v", q, hits, err)
		}
		got := ""
		for _, s := range hits[0].Snippet {
			if s.Hit {
				got += "<" + s.Text + ">"
			} else {
				got += s.Text
			}
		}
		if !strings.Contains(got, want) || len([]rune(got)) > 170 {
			t.Errorf("%s: %s", q, got)
		}
	}
	if _, _, err := ix.Search(bg, search.Query{Text: ` "" * ... `}); !errors.Is(err, search.ErrQuery) {
		t.Error(err)
	}
}

// Whatever is asked, the index answers, and what it finds has a snippet.
func TestAnyQueryIsAnswered(t *testing.T) {
	st := memory.New()
	k := begin(t, st, "a", "/w")
	k.say("alpha beta \"gamma\" 東京 e\u0301cole AND OR NOT NEAR", "read", "x y z", "ß ſ İ ﬁ 𝔘")
	ix := index(t)
	update(t, ix, st)
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.OneOf(rapid.String(), rapid.StringMatching(`(alpha|"beta gam|AND|東|京|\*|e\x{301}|:|-|\(|\)|\x00| ){1,6}`)).Draw(t, "query")
		hits, _, err := ix.Search(bg, search.Query{Text: q})
		if err != nil && !errors.Is(err, search.ErrQuery) {
			t.Fatalf("%q: %v", q, err)
		}
		for _, h := range hits {
			if len(h.Snippet) == 0 {
				t.Fatalf("%q: no snippet", q)
			}
		}
	})
}
