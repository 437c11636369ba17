package desk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/dshsqlite/dshsqlitetest"
	"github.com/outcrop-dev/outcrop/store/sqlite"
)

func TestADatabaseIsTheStoreThatItsHeadSays(t *testing.T) {
	dir := t.TempDir()
	if err := dshsqlitetest.Write(t.Context(), filepath.Join(dir, "dsh.db"), 17); err != nil {
		t.Fatal(err)
	}
	// Of this one everything is still in the write-ahead log.
	young := filepath.Join(dir, "young.db")
	db, err := dshsqlitetest.Open(young)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := dshsqlitetest.Tables(t.Context(), db, 15); err != nil {
		t.Fatal(err)
	}
	own, err := sqlite.New(filepath.Join(dir, "own.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := own.Create(t.Context(), outcrop.NewHeader("s1", 1, ""))
	if err != nil {
		t.Fatal(err)
	}
	err = l.Append(t.Context(), func(yield func(outcrop.Record) bool) {
		yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeTurnStart, Time: 1, Data: []byte(`{"turn":1}`)}})
	})
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	d, _ := at(dir, map[string]string{"HOME": filepath.Join(dir, "home")})
	for address, want := range map[string]string{
		"sqlite:dsh.db": "*dshsqlite.Store", "dsh.db": "*dshsqlite.Store", "sqlite:young.db": "*dshsqlite.Store",
		"sqlite:own.db": "*sqlite.Store", "own.db": "*sqlite.Store", "sqlite:new.db": "*sqlite.Store",
	} {
		st, err := d.StoreAt(address, "--store")
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%T", st); got != want || st.Address() != "sqlite:"+filepath.Join(dir, strings.TrimPrefix(address, "sqlite:")) {
			t.Errorf("%s is a %s (%s), want a %s", address, got, st.Address(), want)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new.db")); err == nil {
		t.Error("naming a store made it")
	}
	if _, err := d.Resolve(t.Context(), "./dsh.db"); exit.Code(err) != 2 {
		t.Errorf("a database as a target: %v", err)
	}
	// New sessions go where something can be written.
	d.Flags.Store = "dsh.db"
	st, err := d.NewStore()
	if err != nil || st.Address() != "jsonl:"+filepath.Join(dir, "home", ".local", "share", "outcrop", "sessions") {
		t.Errorf("%v, %v", st, err)
	}
	d.Flags.Store = "own.db"
	if st, err = d.NewStore(); err != nil || st.Address() != "sqlite:"+filepath.Join(dir, "own.db") {
		t.Errorf("%v, %v", st, err)
	}
	if _, only := store.OnlyRead(st); only {
		t.Error("our own store is only read")
	}
}
