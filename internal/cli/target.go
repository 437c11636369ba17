package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// target is one session and the place where it lives.
type target struct {
	store store.Store
	id    string // "" for a log file whose header was not read
	name  string // as a person named it
	path  string // of the log file, when the target is one
}

// dataHome is the folder of everything that this program keeps: $OUTCROP_HOME,
// else $XDG_DATA_HOME/outcrop, else ~/.local/share/outcrop.
func (a *app) dataHome() (string, error) {
	if d := a.env.Getenv("OUTCROP_HOME"); d != "" {
		return a.path(d), nil
	}
	// A relative XDG path is invalid by its specification.
	if d := a.env.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "outcrop"), nil
	}
	home := a.home()
	if home == "" {
		return "", usagef("there is no home directory: set OUTCROP_HOME, or name a store with --store jsonl:DIR")
	}
	return filepath.Join(home, ".local", "share", "outcrop"), nil
}

func (a *app) home() string {
	for _, name := range [...]string{"HOME", "USERPROFILE"} {
		if d := a.env.Getenv(name); d != "" {
			return d
		}
	}
	return ""
}

// storeAddress is where sessions are looked for, and what said so.
func (a *app) storeAddress() (address, origin string, err error) {
	if a.flags.store != "" {
		return a.flags.store, "--store", nil
	}
	if s := a.env.Getenv("OUTCROP_STORE"); s != "" {
		return s, "OUTCROP_STORE", nil
	}
	home, err := a.dataHome()
	if err != nil {
		return "", "", err
	}
	return "jsonl:" + filepath.Join(home, "sessions"), "default", nil
}

// openStore opens the store that --store, OUTCROP_STORE or the default names.
func (a *app) openStore() (store.Store, error) {
	address, origin, err := a.storeAddress()
	if err != nil {
		return nil, err
	}
	return a.storeAt(address, origin)
}

// storeAt opens a store by its address: jsonl:DIR, jsonl+plain:DIR, a folder, or
// the path of one log file.
func (a *app) storeAt(address, origin string) (store.Store, error) {
	o := a.fileOptions()
	kind, rest, found := strings.Cut(address, ":")
	switch {
	case found && (kind == "jsonl" || kind == "jsonl+plain"):
		if rest == "" {
			return nil, usagef("%s %s names no folder: write %s:DIR", origin, quote(address), kind)
		}
		o.Plain = kind == "jsonl+plain"
		s, err := jsonl.New(a.path(rest), o)
		return s, misuse(err)
	case found && (kind == "sqlite" || kind == "nats"):
		return nil, usagef("%s %s: this version has no %s store: use jsonl:DIR or jsonl+plain:DIR", origin, quote(address), kind)
	case found && len(kind) > 1 && !strings.ContainsAny(kind, `/\.`):
		return nil, usagef("%s %s: there is no kind of store called %s: use jsonl:DIR or jsonl+plain:DIR", origin, quote(address), quote(kind))
	}
	p := a.path(address)
	if _, isLog := wire.EncodingOf(p); isLog {
		if fi, err := os.Stat(p); err != nil || !fi.IsDir() {
			s, err := jsonl.File(p, o)
			return s, misuse(err)
		}
	}
	s, err := jsonl.New(p, o)
	return s, misuse(err)
}

func (a *app) fileOptions() jsonl.Options {
	return jsonl.Options{Program: "outcrop", Now: a.now}
}

// misuse marks an error as one of wrong use.
func misuse(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{2, err}
}

// resolve finds the session that a person named.
func (a *app) resolve(ctx context.Context, name string) (*target, error) {
	if name == "" {
		return nil, usagef("the TARGET is empty: give a session id, the start of one, last, or the path of a log file")
	}
	if a.isPath(name) {
		return a.fileTarget(name)
	}
	st, err := a.openStore()
	if err != nil {
		return nil, err
	}
	id, err := store.Resolve(ctx, st, name)
	if err != nil {
		if errors.Is(err, outcrop.ErrNotFound) && name != store.Last {
			// A file of that name explains itself better than a missing session.
			if _, statErr := os.Lstat(a.path(name)); statErr == nil {
				return a.fileTarget(name)
			}
			if _, log := wire.EncodingOf(name); log {
				return nil, usagef("%s: there is no such file, and no session of that name in %s", escapeLine(name), escapeLine(st.Address()))
			}
		}
		return nil, err
	}
	return &target{store: st, id: id, name: name}, nil
}

// isPath tells a path from a session id. An id may look like nearly anything, so
// a name without a separator is a path only when it has the ending of a log
// file and there is such a file.
func (a *app) isPath(name string) bool {
	_, log := wire.EncodingOf(name)
	if strings.ContainsAny(name, `/`+string(filepath.Separator)) {
		if log || filepath.IsAbs(name) || strings.HasPrefix(name, ".") {
			return true
		}
		_, err := os.Lstat(a.path(name))
		return err == nil
	}
	if !log {
		return name == "." || name == ".."
	}
	_, err := os.Lstat(a.path(name))
	return err == nil
}

// fileTarget is one log file by its path.
func (a *app) fileTarget(name string) (*target, error) {
	p := a.path(name)
	fi, err := os.Stat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("%s: there is no such file: give the path of a log file, or the id of a session (outcrop ls lists them)", escapeLine(name))
	case err != nil:
		return nil, &exitError{2, err}
	case fi.IsDir():
		return nil, usagef("%s is a folder, not a log file: %s", escapeLine(name), inFolder(p, name))
	}
	st, err := jsonl.File(p, a.fileOptions())
	if err != nil {
		return nil, &exitError{3, err}
	}
	return &target{store: st, name: name, path: p}, nil
}

// inFolder says what a person who named a folder may have meant.
func inFolder(p, name string) string {
	for _, log := range [...]string{"session.jsonl.zstd", "session.jsonl"} {
		if _, err := os.Stat(filepath.Join(p, log)); err == nil {
			return "give " + escapeLine(filepath.Join(name, log))
		}
	}
	return "to list the sessions in it use outcrop ls --store " + escapeLine(name)
}

// read opens the target's log for reading.
func (t *target) read(ctx context.Context) (store.Stored, error) {
	sd, err := t.store.Read(ctx, t.id)
	if err != nil {
		return nil, unreadable(err)
	}
	return sd, nil
}

// unreadable gives the errors of opening a log their exit codes: a file that
// cannot be opened is wrong use.
func unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return &exitError{2, err}
	}
	return err
}
