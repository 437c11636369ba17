package viewer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// aged puts a session of an idle log into the store, in format 3 of dsh, with
// files beside it.
func (w *world) aged(id string, beside ...string) {
	w.t.Helper()
	h := outcrop.NewHeader(id, 1_760_000_000_000, "/w")
	h.Outcrop = 0
	s, err := outcrop.New(h, outcrop.Options{Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = s.Append(outcrop.TurnStart{Turn: 1})
	if err == nil {
		_, err = s.Append(outcrop.TurnEnd{Turn: 1, Reason: outcrop.TurnReason{Kind: "completed"}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := wire.WriteFormat3(&b, wire.Plain, h, s.Log()); err != nil {
		w.t.Fatal(err)
	}
	dir := filepath.Join(w.dir, jsonl.ProjectKey("/w"), jsonl.EncodeSegment(id))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	for _, name := range append(beside, jsonl.FileName(3, wire.Plain)) {
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

type aboutOne struct {
	ID            string
	Format        int
	State, Reason string
	Writer        struct{ Where string }
}

// TestALaterFormatGoesOnInANewSession: what runs has its own name, and the log
// that it goes on from stays what it is.
func TestALaterFormatGoesOnInANewSession(t *testing.T) {
	w := newWorld(t, options{script: working})
	w.aged("old")
	const old = "/api/v1/sessions/old"
	var is aboutOne
	w.get(old, &is)
	if is.ID != "old" || is.Format != 3 || is.State != "ok" || !strings.HasPrefix(is.Reason, "format 3 of dsh") {
		t.Errorf("%+v", is)
	}
	var went struct{ Session string }
	w.post(old+"/continue", map[string]any{}, &went)
	if went.Session == "" || went.Session == "old" {
		t.Fatalf("%+v", went)
	}
	w.get(old, &is)
	if is.ID != "old" || is.Format != 3 || is.Writer.Where != "none" {
		t.Errorf("the old one: %+v", is)
	}
	is = aboutOne{}
	w.get("/api/v1/sessions/"+went.Session, &is)
	if is.ID != went.Session || is.Format != 0 || is.Writer.Where != "here" {
		t.Errorf("the new one: %+v", is)
	}
	if code := w.postRefused(old+"/send", map[string]any{"text": "x"}, 409); code != "NOT_HERE" {
		t.Error(code)
	}
	s := w.listen("/api/v1/sessions/"+went.Session+"/live", "")
	defer s.close()
	w.post("/api/v1/sessions/"+went.Session+"/send", map[string]any{"text": "Hello."}, nil)
	ended(t, s)
	var again struct{ Session string }
	w.post("/api/v1/sessions/"+went.Session+"/continue", map[string]any{}, &again)
	if again != went {
		t.Errorf("%+v", again)
	}
}

// TestANewerLogThatCannotBeReadIsNamedOnThePage of the session too, which cannot
// be gone on with.
func TestANewerLogThatCannotBeReadIsNamedOnThePage(t *testing.T) {
	w := newWorld(t, options{script: working})
	w.aged("old", "session.v9.jsonl")
	var is aboutOne
	w.get("/api/v1/sessions/old", &is)
	if is.Format != 3 || is.State != string(store.StateNewer) || !strings.Contains(is.Reason, "session.v9.jsonl, written by a newer dsh (format 9); what is shown is session.v3.jsonl, which is older") {
		t.Errorf("%+v", is)
	}
	var all struct {
		Sessions []struct{ ID, State, Reason string }
	}
	w.get("/api/v1/sessions", &all)
	if len(all.Sessions) != 1 || all.Sessions[0].State != is.State || all.Sessions[0].Reason != is.Reason {
		t.Errorf("%+v", all)
	}
	var forked, again struct{ Session, Newer string }
	w.post("/api/v1/sessions/old/fork", map[string]any{}, &forked)
	if filepath.Base(forked.Newer) != "session.v9.jsonl" {
		t.Errorf("%+v", forked)
	}
	w.post("/api/v1/sessions/"+forked.Session+"/fork", map[string]any{}, &again)
	if again.Newer != "" {
		t.Errorf("%+v", again)
	}
	if code := w.postRefused("/api/v1/sessions/old/continue", map[string]any{}, 422); code != "DAMAGED" {
		t.Error(code)
	}
}
