package desk

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/foreigndb"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// DataHome is the folder of everything that this program keeps: $OUTCROP_HOME,
// else $XDG_DATA_HOME/outcrop, else ~/.local/share/outcrop.
func (a *Desk) DataHome() (string, error) {
	if d := a.Env.Getenv("OUTCROP_HOME"); d != "" {
		return a.Path(d), nil
	}
	// A relative XDG path is invalid by its specification.
	if d := a.Env.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "outcrop"), nil
	}
	home := a.Home()
	if home == "" {
		return "", exit.Usagef("there is no home directory: set OUTCROP_HOME, or name a store with --store jsonl:DIR")
	}
	return filepath.Join(home, ".local", "share", "outcrop"), nil
}

// StateHome is the folder of what this program keeps besides sessions:
// $OUTCROP_HOME/state, else $XDG_STATE_HOME/outcrop, else
// ~/.local/state/outcrop.
func (a *Desk) StateHome() (string, error) {
	if d := a.Env.Getenv("OUTCROP_HOME"); d != "" {
		return filepath.Join(a.Path(d), "state"), nil
	}
	if d := a.Env.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "outcrop"), nil
	}
	home := a.Home()
	if home == "" {
		return "", exit.Usagef("there is no home directory: set OUTCROP_HOME")
	}
	return filepath.Join(home, ".local", "state", "outcrop"), nil
}

// Home is the home directory, "" when there is none.
func (a *Desk) Home() string {
	for _, name := range [...]string{"HOME", "USERPROFILE"} {
		if d := a.Env.Getenv(name); d != "" {
			return d
		}
	}
	return ""
}

// StoreAddress is where sessions are looked for, and what said so.
func (a *Desk) StoreAddress() (address, origin string, err error) {
	if a.Flags.Store != "" {
		return a.Flags.Store, "--store", nil
	}
	if s := a.Env.Getenv("OUTCROP_STORE"); s != "" {
		return s, "OUTCROP_STORE", nil
	}
	home, err := a.DataHome()
	if err != nil {
		return "", "", err
	}
	return "jsonl:" + filepath.Join(home, "sessions"), "default", nil
}

// OpenStore opens the store that --store, OUTCROP_STORE or the default names.
func (a *Desk) OpenStore() (store.Store, error) {
	if a.shared != nil {
		return a.shared, nil
	}
	address, origin, err := a.StoreAddress()
	if err != nil {
		return nil, err
	}
	return a.StoreAt(address, origin)
}

// NewStore opens the store where sessions go that are made: the one of OpenStore,
// or the default when that one is only read.
func (a *Desk) NewStore() (store.Store, error) {
	st, err := a.OpenStore()
	if err != nil {
		return nil, err
	}
	if _, only := store.OnlyRead(st); !only {
		return st, nil
	}
	home, err := a.DataHome()
	if err != nil {
		return nil, err
	}
	return a.StoreAt("jsonl:"+filepath.Join(home, "sessions"), "default")
}

// StoreAt opens a store by its address: jsonl:DIR, jsonl+plain:DIR, sqlite:FILE,
// a folder, or the path of one log file or database.
func (a *Desk) StoreAt(address, origin string) (store.Store, error) {
	o := a.FileOptions()
	kind, rest, found := strings.Cut(address, ":")
	switch {
	case found && (kind == "jsonl" || kind == "jsonl+plain"):
		if rest == "" {
			return nil, exit.Usagef("%s %s names no folder: write %s:DIR", origin, term.Quote(address), kind)
		}
		o.Plain = kind == "jsonl+plain"
		s, err := jsonl.New(a.Path(rest), o)
		return s, exit.Misuse(err)
	case found && kind == "sqlite":
		if rest == "" {
			return nil, exit.Usagef("%s %s names no file: write sqlite:FILE", origin, term.Quote(address))
		}
		return a.database(a.Path(rest))
	case found && (kind == "nats" || kind == "tls"):
		ro, err := a.RealmOptions()
		if err != nil {
			return nil, err
		}
		s, err := jetstream.New(address, ro)
		return s, exit.Misuse(err)
	case found && len(kind) > 1 && !strings.ContainsAny(kind, `/\.`):
		return nil, exit.Usagef("%s %s: there is no kind of store called %s: use jsonl:DIR, jsonl+plain:DIR, sqlite:FILE or nats://HOST/NAME", origin, term.Quote(address), term.Quote(kind))
	}
	p := a.Path(address)
	if _, isLog := wire.EncodingOf(p); isLog {
		if fi, err := os.Stat(p); err != nil || !fi.IsDir() {
			s, err := jsonl.File(p, o)
			return s, exit.Misuse(err)
		}
	}
	if foreigndb.Is(p) {
		return a.database(p)
	}
	s, err := jsonl.New(p, o)
	return s, exit.Misuse(err)
}

// FileOptions are how log files are written.
func (a *Desk) FileOptions() jsonl.Options {
	return jsonl.Options{Program: "outcrop", Now: a.Now}
}
