package desk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/foreigndb"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// Target is one session and the place where it lives.
type Target struct {
	Store store.Store
	ID    string // "" for a log file whose header was not read
	Name  string // as a person named it
	Path  string // of the log file, when the target is one

	desk *Desk // whose notes are told what Read finds; nil: nobody's
	told bool  // that a later log has overtaken it
}

// Resolve finds the session that a person named.
func (a *Desk) Resolve(ctx context.Context, name string) (*Target, error) {
	if name == "" {
		return nil, exit.Usagef("the TARGET is empty: give a session id, the start of one, last, or the path of a log file")
	}
	if a.isPath(name) {
		return a.fileTarget(name)
	}
	st, err := a.OpenStore()
	if err != nil {
		return nil, err
	}
	id, err := store.Resolve(ctx, st, name)
	if err != nil {
		if errors.Is(err, outcrop.ErrNotFound) && name != store.Last {
			// A file of that name explains itself better than a missing session.
			if _, statErr := os.Lstat(a.Path(name)); statErr == nil {
				return a.fileTarget(name)
			}
			if _, log := wire.EncodingOf(name); log {
				return nil, exit.Usagef("%s: there is no such file, and no session of that name in %s", term.Line(name), term.Line(st.Address()))
			}
		}
		return nil, err
	}
	return &Target{Store: st, ID: id, Name: name, desk: a}, nil
}

// isPath tells a path from a session id. An id may look like nearly anything, so
// a name without a separator is a path only when it has the ending of a log
// file and there is such a file.
func (a *Desk) isPath(name string) bool {
	_, log := wire.EncodingOf(name)
	if strings.ContainsAny(name, `/`+string(filepath.Separator)) {
		if log || filepath.IsAbs(name) || strings.HasPrefix(name, ".") {
			return true
		}
		_, err := os.Lstat(a.Path(name))
		return err == nil
	}
	if !log {
		return name == "." || name == ".."
	}
	_, err := os.Lstat(a.Path(name))
	return err == nil
}

// fileTarget is one log file by its path.
func (a *Desk) fileTarget(name string) (*Target, error) {
	p := a.Path(name)
	fi, err := os.Stat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, exit.Usagef("%s: there is no such file: give the path of a log file, or the id of a session (outcrop ls lists them)", term.Line(name))
	case err != nil:
		return nil, exit.With(2, err)
	case fi.IsDir():
		return nil, exit.Usagef("%s is a folder, not a log file: %s", term.Line(name), inFolder(p, name))
	}
	if foreigndb.Is(p) {
		return nil, exit.Usagef("%s is a database: list its sessions with outcrop ls --store %s, and name one of them together with that --store", term.Line(name), term.Line(name))
	}
	st, err := jsonl.File(p, a.FileOptions())
	if err != nil {
		return nil, exit.With(3, err)
	}
	return &Target{Store: st, Name: name, Path: p, desk: a}, nil
}

// inFolder says what a person who named a folder may have meant.
func inFolder(p, name string) string {
	for _, log := range [...]string{"session.jsonl.zstd", "session.jsonl"} {
		if _, err := os.Stat(filepath.Join(p, log)); err == nil {
			return "give " + term.Line(filepath.Join(name, log))
		}
	}
	return "to list the sessions in it use outcrop ls --store " + term.Line(name)
}

// Read opens the target's log for reading. That a later log has overtaken it is
// noted.
func (t *Target) Read(ctx context.Context) (store.Stored, error) {
	sd, err := t.Store.Read(ctx, t.ID)
	if err != nil {
		return nil, exit.Unreadable(err)
	}
	t.NoteOvertaken(ctx)
	return sd, nil
}

// NoteOvertaken notes, once, that a later log lies beside the one that is read.
// It is for who reads the target another way than by Read.
func (t *Target) NoteOvertaken(ctx context.Context) {
	if t.desk == nil || t.told {
		return
	}
	if err := store.Overtaken(ctx, t.Store, t.ID); err != nil {
		t.told = true
		t.desk.NoteOlder(err)
	}
}

// NoteOlder notes the error of store.Overtaken about a log that is shown all the
// same.
func (a *Desk) NoteOlder(err error) {
	var e *outcrop.Error
	if errors.As(err, &e) {
		a.Note("%s: %s (%s)", term.Line(e.Path), term.Line(e.Msg), e.Code)
	}
}
