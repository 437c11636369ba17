package sqlite

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

var bg = context.Background()

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Place {
		path := filepath.Join(t.TempDir(), "sessions.db")
		var mu sync.Mutex
		var failing map[string]error
		open := func() *Store {
			s, err := New(path, Options{Program: "the tests", fail: func(op string) error {
				mu.Lock()
				defer mu.Unlock()
				return failing[op]
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
		return storetest.Place{
			Open: func() store.Store { return open() },
			Fail: func(op string, err error) {
				mu.Lock()
				defer mu.Unlock()
				failing = map[string]error{op: err}
			},
			Break: func(id string) {
				db, err := open().writer(bg)
				if err == nil {
					_, err = db.Exec("UPDATE sessions SET header = ? WHERE id = ?", []byte("{"), id)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
