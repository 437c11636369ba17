package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/sqlite"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

var bg = context.Background()

// step is one operation of a list that every store gets.
type step struct {
	Do   string
	On   int // which session
	N    int
	Text string
}

var steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{
		Do: rapid.SampledFrom([]string{"create", "turn", "start", "end", "group", "replace", "chunks", "title", "refused", "odd",
			"flush", "reopen", "close", "fork", "forkat", "put", "copy", "attach", "second"}).Draw(t, "do"),
		On: rapid.IntRange(0, 3).Draw(t, "on"), N: rapid.IntRange(0, 40).Draw(t, "n"),
		Text: rapid.SampledFrom([]string{"", "plain", "näher \u2028 日 <b>", "\"quoted\" \\ \n", "\x00\x1f"}).Draw(t, "text"),
	}
}), 12, 60)

// seen is everything that a run shows of a store.
type seen struct {
	Answers  []string // of each step
	Sessions map[string]session
	Listed   []string
	Objects  []string
}

type session struct {
	Header, Digest, Request string
	Events, Messages        []string
	Nodes                   []outcrop.Seq
	Followed                int
}

func TestOneListOfOperationsGivesTheSameInEveryStore(t *testing.T) {
	servers, realms := natstest.Start(t, natstest.Options{Lazy: true}), 0
	rapid.Check(t, func(rt *rapid.T) {
		list := append([]step{{Do: "create"}, {Do: "flush"}, {Do: "create"}}, steps.Draw(rt, "steps")...)
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		plain, err1 := jsonl.New(filepath.Join(dir, "plain", "sessions"), jsonl.Options{Plain: true})
		zstd, err2 := jsonl.New(filepath.Join(dir, "zstd", "sessions"), jsonl.Options{})
		lite, err3 := sqlite.New(filepath.Join(dir, "sessions.db"), sqlite.Options{})
		if err := errors.Join(err1, err2, err3); err != nil {
			rt.Fatal(err)
		}
		defer lite.Close()
		all := []store.Store{plain, zstd, lite}
		// Every answer of a realm takes a way over the network: some lists do.
		if rapid.IntRange(0, 3).Draw(rt, "realm") == 0 {
			realms++
			address := servers.Address(fmt.Sprint("r", realms))
			_, err1 := jetstream.Init(bg, address, jetstream.RealmOptions{Streams: 1, Single: true}, jetstream.Options{})
			realm, err2 := jetstream.New(address, jetstream.Options{})
			if err := errors.Join(err1, err2); err != nil {
				rt.Fatal(err)
			}
			defer realm.Close()
			all = append(all, realm)
		}
		want := play(rt, memory.New(), list)
		for _, st := range all {
			got := play(rt, st, list)
			if d := cmp.Diff(want, got); d != "" {
				rt.Fatalf("%s differs from memory (-memory +it):\n%s", st.Address(), d)
			}
		}
	})
}

// play runs the list.
func play(t *rapid.T, st store.Store, list []step) seen {
	p := player{st: st, live: map[string]*store.Live{}}
	defer func() {
		for _, l := range p.live {
			l.Close(bg)
		}
	}()
	for _, s := range list {
		err := p.do(s)
		p.seen.Answers = append(p.seen.Answers, class(err))
	}
	for _, l := range p.live {
		if err := l.Close(bg); err != nil {
			t.Fatalf("%s: %v", st.Address(), err)
		}
	}
	p.look(t)
	return p.seen
}

type player struct {
	st    store.Store
	live  map[string]*store.Live
	ids   []string
	clock int64
	seen  seen
}

// class is what of an error must be the same everywhere.
func class(err error) string {
	for name, e := range map[string]error{
		"not found": outcrop.ErrNotFound, "refused": outcrop.ErrRefused, "vetoed": outcrop.ErrVetoed, "damaged": outcrop.ErrDamaged,
		"exists": store.ErrExists, "locked": store.ErrLocked, "moved": store.ErrMoved, "canceled": context.Canceled,
	} {
		if errors.Is(err, e) {
			return name + " " + string(outcrop.CodeOf(err))
		}
	}
	if err != nil {
		return "another error: " + err.Error()
	}
	return "done"
}

func (p *player) options() store.Options {
	return store.Options{
		Session: outcrop.Options{Now: func() int64 { p.clock += 7; return 1_700_000_000_000 + p.clock }},
		// Nothing is written by itself, so that a slow store shows no more than a
		// fast one.
		AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } },
	}
}

var errNothing = fmt.Errorf("%w: there is no such session", outcrop.ErrNotFound)

func (p *player) do(s step) error {
	id := ""
	if len(p.ids) > 0 {
		id = p.ids[s.On%len(p.ids)]
	}
	l := p.live[id]
	newID := fmt.Sprint("s", len(p.ids)+1)
	made := func(err error) error {
		if err == nil {
			p.ids = append(p.ids, newID)
		}
		return err
	}
	switch s.Do {
	case "create":
		live, err := store.Create(bg, p.st, storetest.Header(newID), p.options())
		if err != nil {
			return err
		}
		p.live[newID] = live
		return made(storetest.StartTurn(live.Session(), 1))
	case "reopen", "close":
		if l != nil {
			if err := l.Close(bg); err != nil {
				return err
			}
			delete(p.live, id)
		}
		if s.Do == "close" {
			return nil
		}
		live, err := store.Open(bg, p.st, id, p.options())
		if err == nil {
			p.live[id] = live
		}
		return err
	case "fork":
		_, err := store.Fork(bg, p.st, id, outcrop.Seq(s.N-1), store.Child{ID: newID, CreatedAt: 5})
		return made(err)
	case "forkat":
		_, err := store.ForkAt(bg, p.st, id, outcrop.Seq(s.N-1), store.Child{ID: newID, CreatedAt: 5})
		return made(err)
	case "put":
		return made(p.put(id, newID))
	case "copy":
		return store.Copy(bg, p.st, p.st, id)
	case "attach":
		id, err := store.ObjectsOf(p.st).Put(bg, []byte(s.Text))
		p.seen.Objects = append(p.seen.Objects, id)
		return err
	case "second":
		_, err := store.Create(bg, p.st, storetest.Header(id), p.options())
		return err
	}
	if l == nil {
		return errNothing
	}
	return p.append(l, s)
}

func (p *player) append(l *store.Live, s step) error {
	ss := l.Session()
	turn, at, open := outcrop.OpenTurn(ss.Log())
	var err error
	switch s.Do {
	case "turn":
		if !open {
			return storetest.Turn(ss, turnCount(ss)+1)
		}
	case "start":
		if !open {
			return storetest.StartTurn(ss, turnCount(ss)+1)
		}
	case "end":
		if open {
			return storetest.EndTurn(ss, turn)
		}
	case "group":
		_, err = ss.AppendAll(outcrop.LogCandidate(outcrop.TodoWrite{}), outcrop.LogCandidate(outcrop.SessionTitle{Title: s.Text}))
	case "title":
		_, err = ss.Append(outcrop.SessionTitle{Title: s.Text})
	case "chunks":
		for i := range s.N {
			if !open || at == 0 || err != nil {
				break
			}
			_, err = ss.Append(outcrop.AssistantChunk{Turn: turn, Step: at, Chunk: message.Chunk{Type: message.TextDelta, Text: fmt.Sprint(i, s.Text)}})
		}
	case "replace":
		nodes := ss.Surface().Nodes()
		if n := len(nodes); n > 1 {
			from := s.N % n
			covered := nodes[from:]
			_, err = ss.AppendSurface(outcrop.UserMessage{Message: message.Message{ID: fmt.Sprint("sum", ss.Len()), Source: message.Source{Kind: "plugin"},
				Content: []message.Block{message.Text("summary " + s.Text)}}}, outcrop.Replace(covered[0], covered[len(covered)-1]), outcrop.SourcesOf(covered...))
		}
	case "refused":
		_, err = ss.AppendSurface(outcrop.UserMessage{Message: message.Message{ID: "no", Source: message.FromUser}}, outcrop.Replace(99999, 99999), outcrop.SourcesOf(99999))
	case "odd":
		_, err = ss.Append(outcrop.RawPayload{Type: "x/odd", Data: fmt.Appendf(nil, `{"z":1,"a":[9007199254740993,1.0,"\ud83d"],"t":%q,"n":%d}`, "odd", s.N), Ignorable: true})
	case "flush":
		err = l.Flush(bg)
	}
	return err
}

func (p *player) put(id, newID string) error {
	src, _, err := store.Inspect(bg, p.st, id, outcrop.Options{})
	if err != nil {
		return err
	}
	return p.st.Put(bg, storetest.Header(newID), func(yield func(outcrop.Record, error) bool) {
		for r := range src.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	})
}

func turnCount(s *outcrop.Session) (n int) {
	for e := range outcrop.Events(s.Log(), 0) {
		if e.Type == outcrop.TypeTurnStart {
			n++
		}
	}
	return n
}

// look reads all there is.
func (p *player) look(t *rapid.T) {
	p.seen.Sessions = map[string]session{}
	for _, id := range p.ids {
		s, tail, err := store.Inspect(bg, p.st, id, outcrop.Options{})
		if err != nil || tail.Torn {
			t.Fatalf("%s: %s: %v, %+v", p.st.Address(), id, err, tail)
		}
		v := session{Header: string(s.Header().Line()), Digest: outcrop.LogDigest(s.Log()), Request: s.RequestDigest(), Nodes: s.Surface().Nodes()}
		for e := range outcrop.Events(s.Log(), 0) {
			v.Events = append(v.Events, string(e.AppendJSON(nil)))
		}
		for _, m := range s.Messages() {
			v.Messages = append(v.Messages, string(m.Raw))
		}
		f, err := p.st.(store.Follower).Follow(bg, id)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range f.Next(bg) {
			if err != nil {
				t.Fatal(err)
			}
			v.Followed += int(r.Count())
		}
		f.Close()
		p.seen.Sessions[id] = v
	}
	infos, err := p.st.List(bg, store.ListOptions{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range infos {
		p.seen.Listed = append(p.seen.Listed, fmt.Sprintf("%s %q %q %d %d events, %d turns, %s", in.ID, in.Title, in.Cwd, in.UpdatedAt, in.Events, in.Turns, in.State))
	}
	for _, id := range p.seen.Objects {
		if b, err := store.ObjectsOf(p.st).Get(bg, id); err != nil {
			t.Fatalf("%s: %q, %v", p.st.Address(), b, err)
		}
	}
}
