package desk

import (
	"context"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/foreigndb"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/dshsqlite"
	"github.com/outcrop-dev/outcrop/store/sqlite"
)

// database opens a SQLite file as the store that it is: this program's own, or
// one of dsh, which is only read. A file that is not there yet becomes our own.
func (a *Desk) database(p string) (store.Store, error) {
	if dshDatabase(p) {
		s, err := dshsqlite.New(p, dshsqlite.Options{Homes: []string{a.DSHHome()}})
		return s, exit.Misuse(err)
	}
	o := a.FileOptions()
	s, err := sqlite.New(p, sqlite.Options{Program: o.Program, Now: o.Now, Logger: a.Logger})
	return s, exit.Misuse(err)
}

// dshDatabase reports whether a file is a store of dsh. What its first page says
// counts, except that the page of a young database may still be in its
// write-ahead log.
func dshDatabase(p string) bool {
	application, _, ok := foreigndb.HeadIdentity(p)
	switch {
	case !ok:
		return false
	case application != 0:
		return application == dshsqlite.ApplicationID
	}
	if fi, err := os.Stat(p + "-wal"); err != nil || fi.Size() == 0 {
		return false
	}
	f, err := foreigndb.Open(context.Background(), p)
	if err != nil {
		return false // whoever opens it says what is wrong
	}
	defer f.Close()
	return f.Identity().ApplicationID == dshsqlite.ApplicationID
}

// DSHHome is the folder of DeepSeek Harness: $DSH_HOME, else ~/.dsh; "" when
// there is no home directory.
func (a *Desk) DSHHome() string {
	if d := a.Env.Getenv("DSH_HOME"); d != "" {
		return a.Path(d)
	}
	if home := a.Home(); home != "" {
		return filepath.Join(home, ".dsh")
	}
	return ""
}
