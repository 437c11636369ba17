package viewer_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer"
)

// shelf is a Shelves of one shelf in memory.
type shelf struct{ items []viewer.Shelved }

func (s *shelf) Put(context.Context, string, string, bool) ([]string, error) {
	return nil, errors.New("the disk is full")
}

func (s *shelf) List(_ context.Context, name string) ([]viewer.Shelved, error) {
	if name == "trash" {
		return nil, nil
	}
	return s.items, nil
}

func (s *shelf) Restore(_ context.Context, id, name string) error {
	for i := range s.items {
		if s.items[i].ID == id && name == "archive" {
			s.items = nil
			return nil
		}
	}
	return store.Problem("restore", id, outcrop.ErrNotFound, "not there", "")
}

func TestWhatWasPutAwayIsListedAndComesBack(t *testing.T) {
	w := newWorld(t, options{tune: func(o *viewer.Options) {
		o.Shelves = &shelf{[]viewer.Shelved{{ID: "old", Title: "key sk-proj-Zk3vQ9xT7LmB2nR8wYcJ5hDf4GsA6uE1", At: 7, Bytes: 9}}}
	}})
	type list struct {
		Shelf    string
		Masked   int
		Sessions []struct {
			ID    string
			Title *string
			Cwd   *string
			At    int64
		}
	}
	var got list
	w.get("/api/v1/shelves/archive", &got)
	if got.Shelf != "archive" || len(got.Sessions) != 1 || got.Sessions[0].ID != "old" || got.Sessions[0].At != 7 || got.Sessions[0].Cwd != nil {
		t.Errorf("%+v", got)
	}
	if got.Masked != 1 || strings.Contains(*got.Sessions[0].Title, "Zk3vQ9") {
		t.Errorf("a title is not masked: %+v", got)
	}
	if code := w.postRefused("/api/v1/shelves/trash/restore", map[string]any{"session": "old"}, 404); code != "SESSION_NOT_FOUND" {
		t.Error(code)
	}
	w.post("/api/v1/shelves/archive/restore", map[string]any{"session": "old"}, nil)
	got = list{}
	if w.get("/api/v1/shelves/archive", &got); len(got.Sessions) != 0 {
		t.Errorf("%+v", got)
	}
	if code := w.refused("/api/v1/shelves/cellar", 404); code != "NOT_FOUND" {
		t.Error(code)
	}
	l := w.live("s1")
	turn(t, l, 1)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := w.postRefused("/api/v1/sessions/s1/archive", map[string]any{}, 409); code != "REFUSED" {
		t.Error(code)
	}
	none := newWorld(t, options{})
	if code := none.refused("/api/v1/shelves/archive", 403); code != "READ_ONLY" {
		t.Error(code)
	}
}

func TestASessionIsTakenAwayAsAFile(t *testing.T) {
	w := newWorld(t, options{tune: func(o *viewer.Options) {
		o.Exports = []viewer.Export{
			{Name: "md", Ending: ".md", Type: "text/markdown; charset=utf-8", Write: func(_ context.Context, id string, raw bool, w io.Writer) error {
				text := "masked " + id
				if raw {
					text = "raw " + id
				}
				_, err := io.WriteString(w, text)
				return err
			}},
			{Name: "none", Ending: ".x", Type: "text/plain", Write: func(context.Context, string, bool, io.Writer) error {
				return store.Problem("read", "s1", outcrop.ErrDamaged, "torn", "")
			}},
			{Name: "half", Ending: ".x", Type: "text/plain", Write: func(_ context.Context, _ string, _ bool, w io.Writer) error {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return err
				}
				return errors.New("the disk went away")
			}},
		}
	}})
	l := w.live("s/1")
	turn(t, l, 1)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	const at = "/api/v1/sessions/s%2F1/export?format="
	for query, want := range map[string]string{"md": "masked s/1", "md&secrets=show": "raw s/1"} {
		status, head, b := w.whole(w.request("GET", at+query, nil))
		if status != http.StatusOK || string(b) != want {
			t.Errorf("%s: %d %q", query, status, b)
		}
		if d := head.Get("Content-Disposition"); d != `attachment; filename="session-s_1.md"` {
			t.Error(d)
		}
		if p := head.Get("Content-Security-Policy"); p != "default-src 'none'; sandbox" {
			t.Error(p)
		}
	}
	if code := w.refused(at+"none", 422); code != "DAMAGED" {
		t.Error(code)
	}
	if code := w.refused(at+"exe", 400); code != "BAD_REQUEST" {
		t.Error(code)
	}
	// What breaks off must not look finished.
	res, err := http.DefaultClient.Do(w.request("GET", at+"half", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("half of it passes for all: %d bytes", len(b))
	}
}
