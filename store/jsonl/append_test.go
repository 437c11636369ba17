package jsonl

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// live opens a session of one turn in a plain root.
func live(t *testing.T) (*Store, *store.Live, string) {
	t.Helper()
	s := root(t, Options{Plain: true})
	session(t, s, "s1", 1)
	l, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	t.Cleanup(func() { l.Close(bg) })
	must(t, l.Flush(bg))
	return s, l, logPath(t, s, "s1")
}

func TestALogThatSomebodyElseChangedIsNotWritten(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"another program appended": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			_, err = f.WriteString("x\n")
			must(t, err)
			must(t, f.Close())
		},
		"it was cut":         func(t *testing.T, path string) { must(t, os.Truncate(path, 100)) },
		"it was removed":     func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"its folder is gone": func(t *testing.T, path string) { must(t, os.RemoveAll(filepath.Dir(path))) },
		"it was replaced by a copy": func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			must(t, err)
			must(t, os.Rename(path, path+".old"))
			must(t, os.WriteFile(path, b, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, l, path := live(t)
			change(t, path)
			before, _ := os.ReadFile(path)
			must(t, storetest.Turn(l.Session(), 2))
			for range 2 {
				err := l.Flush(bg)
				if !errors.Is(err, store.ErrMoved) || !strings.Contains(err.Error(), path) {
					t.Fatalf("got %v", err)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Fatal("the changed log was written")
			}
			if _, err := l.Session().Append(outcrop.TurnStart{Turn: 3}); !errors.Is(err, outcrop.ErrVetoed) || !errors.Is(err, store.ErrMoved) {
				t.Fatalf("an append that can never be stored gives %v", err)
			}
			if err := l.Close(bg); !errors.Is(err, store.ErrMoved) {
				t.Fatalf("closing says %v", err)
			}
		})
	}
}

func TestABatchIsOneWriteAndOneSync(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		session(t, s, "s1", 1)
		writes, syncs := 0, 0
		s.disk = faulty(func(op faultfs.Op) (f faultfs.Fault) {
			switch {
			case toLog(op):
				writes++
			case op.Kind == faultfs.OpSync:
				syncs++
			}
			return f
		})
		l, err := store.Open(bg, s, "s1", store.Options{})
		must(t, err)
		must(t, l.Flush(bg))
		writes, syncs = 0, 0
		must(t, storetest.Turn(l.Session(), 2))
		must(t, l.Flush(bg))
		if writes != 1 || syncs != 1 {
			t.Fatalf("%d writes and %d syncs", writes, syncs)
		}
		must(t, l.Close(bg))
		if writes != 1 || syncs != 1 {
			t.Fatalf("closing without new events: %d writes and %d syncs", writes, syncs)
		}
	})
}

func TestAShortWriteIsCutBackAndTheNextOneGoesOn(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		session(t, s, "s1", 1)
		// The disk takes a growing part of a batch, then is full; the cut back
		// fails now and then.
		room, cutFails := 0, false
		s.disk = faulty(func(op faultfs.Op) (f faultfs.Fault) {
			switch {
			case toLog(op) && room >= 0 && room < len(op.Data):
				f.Part, f.Err = room, syscall.ENOSPC
			case op.Kind == faultfs.OpTruncate && cutFails:
				f.Err = syscall.EIO
			}
			return f
		})
		room = -1
		l, err := store.Open(bg, s, "s1", store.Options{})
		must(t, err)
		must(t, l.Flush(bg))
		path := logPath(t, s, "s1")
		good, err := os.ReadFile(path)
		must(t, err)
		must(t, storetest.Turn(l.Session(), 2))
		for room = 0; room < 200; room += 7 {
			cutFails = room%2 == 0
			err := l.Flush(bg)
			if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) {
				t.Fatalf("room for %d bytes: %v", room, err)
			}
			if b, _ := os.ReadFile(path); !cutFails && !bytes.Equal(b, good) {
				t.Fatalf("room for %d bytes: the failed write is still there", room)
			}
		}
		cutFails, room = false, -1
		must(t, l.Flush(bg))
		must(t, l.Close(bg))
		got, tail, err := store.Inspect(bg, s, "s1", outcrop.Options{})
		must(t, err)
		if tail.Torn || outcrop.LogDigest(got.Log()) != outcrop.LogDigest(l.Session().Log()) {
			t.Fatal("the stored log is not the session's")
		}
	})
}

func TestNoSpaceIsSaidWithPathAndHint(t *testing.T) {
	s, l, path := live(t)
	_ = s
	must(t, l.Close(bg))
	s.disk = faulty(func(op faultfs.Op) (f faultfs.Fault) {
		if toLog(op) {
			f.Err = syscall.ENOSPC
		}
		return f
	})
	l, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	must(t, storetest.Turn(l.Session(), 2))
	err = l.Flush(bg)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("got %v", err)
	}
	l.Close(bg)
}

func TestAFailedSyncOfAFolderAtPublicationIsFatal(t *testing.T) {
	s := root(t, Options{})
	s.disk = faultfs.Inject(faultfs.Real, faultfs.ByRule(&faultfs.Rule{Kind: faultfs.OpSyncDir, Fault: faultfs.Fault{Err: syscall.EIO}}))
	l, err := store.Create(bg, s, storetest.Header("s1"), store.Options{})
	must(t, err)
	must(t, storetest.Turn(l.Session(), 1))
	if err := l.Flush(bg); !errors.Is(err, store.ErrSync) {
		t.Fatalf("got %v", err)
	}
	if l.Durable() != 0 {
		t.Fatal("events are durable whose names are not synced")
	}
	l.Close(bg)
	s.disk = unsynced()
	again, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	must(t, again.Close(bg))
}
