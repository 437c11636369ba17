package viewer_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
	"github.com/outcrop-dev/outcrop/viewer"
)

const token = "a-token-for-tests"

// world is a viewer with its server over a store in a folder.
type world struct {
	t     testing.TB
	store store.Store
	dir   string // of the store
	v     *viewer.Viewer
	url   string // without a slash at the end
	ids   atomic.Int64
	run   *scripted
}

type options struct {
	noToken bool
	store   store.Store // nil: a plain jsonl store in a folder
	script  string      // of the model; "": sessions cannot be continued
	tune    func(o *viewer.Options)
}

func newWorld(t testing.TB, o options) *world {
	t.Helper()
	w := &world{t: t, store: o.store}
	if w.store == nil {
		w.dir = t.TempDir()
		st, err := jsonl.New(w.dir, jsonl.Options{Plain: true, Program: "test", Now: w.now})
		if err != nil {
			t.Fatal(err)
		}
		w.store = st
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	vo := viewer.Options{Store: w.store, Addr: l.Addr().String(), Token: token, Version: "test", Demo: "outcrop demo",
		Now: w.now, NewID: w.newID, Random: func(b []byte) { rand.Read(b) }}
	if o.noToken {
		vo.Token = ""
	}
	if o.tune != nil {
		o.tune(&vo)
	}
	if o.script != "" {
		sc, err := script.Parse("test", []byte(o.script))
		if err != nil {
			t.Fatal(err)
		}
		w.run = &scripted{w: w, script: sc, dir: t.TempDir()}
		vo.Runner = w.run
	}
	if w.v, err = viewer.New(vo); err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- viewer.Serve(ctx, l, w.v) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return w
}

func (w *world) now() int64    { return time.Now().UnixMilli() }
func (w *world) newID() string { return fmt.Sprintf("id-%d", w.ids.Add(1)) }

func (w *world) live(id string) *store.Live {
	w.t.Helper()
	l, err := store.Create(context.Background(), w.store, outcrop.NewHeader(id, 1_760_000_000_000, "/w"), store.Options{Session: outcrop.Options{Now: w.now}})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// put stores a log of lines behind a header of this id.
func (w *world) put(id string, events ...outcrop.Event) {
	w.t.Helper()
	err := w.store.Put(context.Background(), outcrop.NewHeader(id, 1_760_000_000_000, "/w"), func(yield func(outcrop.Record, error) bool) {
		for _, ev := range events {
			if !yield(outcrop.Record{Event: ev}, nil) {
				return
			}
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// at is the same world by the address of another server.
func (w *world) at(url string) *world {
	base, _, _ := strings.Cut(url, "/#")
	return &world{t: w.t, store: w.store, dir: w.dir, url: base}
}

// request is a request as a program with the token makes it.
func (w *world) request(method, path string, body any) *http.Request {
	w.t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		in = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			w.t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, w.url+path, in)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Outcrop", "1")
	}
	return r
}

func (w *world) do(r *http.Request) (int, []byte) {
	w.t.Helper()
	status, _, b := w.whole(r)
	return status, b
}

func (w *world) whole(r *http.Request) (int, http.Header, []byte) {
	w.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, b
}

// get reads an answer, which must be valid JSON, into v.
func (w *world) get(path string, v any) {
	w.t.Helper()
	status, b := w.do(w.request("GET", path, nil))
	w.into(path, status, 200, b, v)
}

// refused is the code of an error.
func (w *world) refused(path string, want int) string {
	w.t.Helper()
	status, b := w.do(w.request("GET", path, nil))
	return w.codeOf(path, status, want, b)
}

func (w *world) codeOf(path string, status, want int, b []byte) string {
	w.t.Helper()
	var e struct {
		Error struct{ Code, Message string }
	}
	w.into(path, status, want, b, &e)
	if e.Error.Message == "" {
		w.t.Errorf("%s: the error says nothing: %s", path, b)
	}
	return e.Error.Code
}

func (w *world) post(path string, body, v any) {
	w.t.Helper()
	status, b := w.do(w.request("POST", path, body))
	w.into(path, status, 200, b, v)
}

func (w *world) postRefused(path string, body any, want int) string {
	w.t.Helper()
	status, b := w.do(w.request("POST", path, body))
	return w.codeOf(path, status, want, b)
}

func (w *world) into(path string, status, want int, b []byte, v any) {
	w.t.Helper()
	if status != want {
		w.t.Fatalf("%s: status %d, not %d: %.2000s", path, status, want, b)
	}
	if err := jsonwire.Valid(b); err != nil || !utf8.Valid(b) {
		w.t.Fatalf("%s: the answer is no JSON (%v): %.500q", path, err, b)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(b, v); err != nil {
		w.t.Fatalf("%s: %v: %.2000s", path, err, b)
	}
}

// sse is one event of a stream.
type sse struct {
	id, name string
	data     string
}

// stream listens to a path.
type stream struct {
	t      testing.TB
	events chan sse
	cancel context.CancelFunc
}

func (w *world) listen(path, last string) *stream {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := w.request("GET", path, nil).WithContext(ctx)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		b, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("%s: status %d: %s", path, resp.StatusCode, b)
	}
	s := &stream{w.t, make(chan sse, 10_000), cancel}
	go func() {
		defer resp.Body.Close()
		defer close(s.events)
		in := bufio.NewReader(resp.Body)
		var ev sse
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			line = strings.TrimSuffix(line, "\n")
			switch name, value, _ := strings.Cut(line, ": "); name {
			case "":
				s.events <- ev
				ev = sse{}
			case "id":
				ev.id = value
			case "event":
				ev.name = value
			case "data":
				ev.data = value
			}
		}
	}()
	w.t.Cleanup(cancel)
	return s
}

func (s *stream) close() {
	s.cancel()
	for range s.events {
	}
}

// next is the next event; it fails when none comes.
func (s *stream) next() sse {
	s.t.Helper()
	select {
	case ev, ok := <-s.events:
		if !ok {
			s.t.Fatal("the stream has ended")
		}
		return ev
	case <-time.After(20 * time.Second):
		s.t.Fatal("nothing came")
	}
	return sse{}
}

// until reads events up to one that fits, which is returned last.
func (s *stream) until(fits func(sse) bool) (all []sse) {
	s.t.Helper()
	for {
		ev := s.next()
		if all = append(all, ev); fits(ev) {
			return all
		}
	}
}

func named(name string) func(sse) bool { return func(ev sse) bool { return ev.name == name } }

// recordOf reads a record of a stream.
type recordOf struct {
	Row, Seq, Last int
	Type           string
	Durable        bool
	Items          int
	Item           *struct {
		Kind   string
		Blocks []struct{ Type, Text, State string }
	}
	Shadowed  []int
	FoldsFrom *int
}

func (ev sse) record(t testing.TB) recordOf {
	t.Helper()
	var r recordOf
	if err := json.Unmarshal([]byte(ev.data), &r); err != nil {
		t.Fatalf("%v: %s", err, ev.data)
	}
	return r
}

// scripted continues sessions with a model that plays a script.
type scripted struct {
	w      *world
	script *script.Script
	dir    string
	fail   error
}

func (s *scripted) Run(ctx context.Context, id, model string, ask agent.Approver) (viewer.Running, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	l, err := store.Open(ctx, s.w.store, id, store.Options{Session: outcrop.Options{Now: s.w.now}})
	if outcrop.CodeOf(err) == jsonl.CodeLaterFormat {
		var h outcrop.Header
		if h, err = store.GoOn(ctx, s.w.store, s.w.store, id, store.Child{ID: s.w.newID(), CreatedAt: s.w.now()}); err == nil {
			l, err = store.Open(ctx, s.w.store, h.ID, store.Options{Session: outcrop.Options{Now: s.w.now}})
		}
	}
	if err != nil {
		return nil, err
	}
	m := &script.Model{Script: s.script}
	m.Resume(requests.Finished(l.Session().Log(), script.Provider, s.script.Header.Model))
	r := &ran{Live: l, policy: agent.AskAll, dir: s.dir}
	ws, err := files.Open(s.dir)
	if err != nil {
		return nil, errors.Join(err, l.Close(ctx))
	}
	tools, err := ws.Tools()
	if err != nil {
		return nil, errors.Join(err, l.Close(ctx))
	}
	reg, err := tool.NewRegistry(tool.Options{}, tools...)
	if err != nil {
		return nil, errors.Join(err, l.Close(ctx))
	}
	config := llm.Config{Provider: script.Provider, Model: s.script.Header.Model}
	r.history, err = history.NewManager(history.Options{Window: 32000, Provider: m, Model: config, ModelWindow: 32000, Off: true})
	if err == nil {
		r.agent, err = agent.New(agent.Options{Live: l, Provider: m, Config: config, Window: 32000, Approver: ask, Tools: reg, NewID: s.w.newID, System: "Be brief."})
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(ctx))
	}
	return r, nil
}

// ran is a session that scripted continues.
type ran struct {
	*store.Live
	agent   *agent.Agent
	history *history.Manager
	dir     string
	mu      sync.Mutex
	policy  agent.Policy
}

func (r *ran) Agent() *agent.Agent       { return r.agent }
func (r *ran) History() *history.Manager { return r.history }
func (r *ran) Model() string             { return "script:test" }
func (r *ran) Dir() string               { return r.dir }
func (r *ran) Cut() string               { return "" }

func (r *ran) SetModel(context.Context, string) error { return errors.New("there is one model") }

func (r *ran) Policy() agent.Policy {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.policy
}

func (r *ran) SetPolicy(ctx context.Context, name string) error {
	if err := r.agent.SetPolicy(ctx, agent.Policy(name)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policy = agent.Policy(name)
	return nil
}

func (r *ran) Close(ctx context.Context) error {
	return errors.Join(r.agent.Close(ctx), r.Live.Close(ctx))
}
