package jsonl_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/wire"
)

// check looks at what a loss of power left: by reading, by a listing, and by
// going on with one of the sessions, which then loses power itself.
func (c *powerCut) check(s *simulation) error {
	r := rand.New(rand.NewPCG(s.seed, uint64(c.n)<<32))
	st := storeOn(c.mem, s.opt.plain)
	var there []simLog
	for _, l := range c.logs {
		ss, _, err := store.Inspect(bg, st, l.id, outcrop.Options{})
		switch {
		case errors.Is(err, outcrop.ErrNotFound) && l.acked == 0 && !l.made:
			continue
		case err != nil:
			return fmt.Errorf("reading %s, of which %d events were acknowledged: %w", l.id, l.acked, err)
		}
		stored := linesOf(ss, outcrop.Seq(ss.Len()))
		if l.whole && l.live == nil && !l.made && !l.doom {
			// It was being made: what it is to be is seen from what it is.
			if l.lines = stored; len(stored) == 0 {
				return fmt.Errorf("%s is there with nothing in it", l.id)
			}
		}
		if err := l.holds(stored); err != nil {
			return err
		}
		l.lines, l.live = stored, nil
		there = append(there, l)
	}
	infos, err := st.List(bg, store.ListOptions{})
	if err != nil {
		return err
	}
	if len(infos) != len(there) {
		return fmt.Errorf("%d sessions are listed, %d can be read", len(infos), len(there))
	}
	for _, in := range infos {
		if in.State != store.StateOK && in.State != store.StateOpenTurn {
			return fmt.Errorf("listed as %s: %s (%s)", in.ID, in.State, in.Reason)
		}
	}
	if err := attachments(c.mem, st.Objects(), c.objects); err != nil {
		return err
	}
	if err := aside(c.mem, c.torn); err != nil {
		return err
	}
	if r.IntN(3) > 0 {
		return nil // it takes longer than everything else
	}
	if len(there) == 0 {
		// An id whose session was lost is free.
		return goOn(c.mem, s, simLog{id: "s1"}, r, true)
	}
	return goOn(c.mem, s, there[r.IntN(len(there))], r, false)
}

func attachments(m faultfs.FS, have store.Objects, want []simObject) error {
	for _, o := range want {
		id := blob.ID([]byte(o.bytes))
		b, err := have.Get(bg, id)
		switch {
		case errors.Is(err, outcrop.ErrNotFound) && !o.acked:
		case err != nil:
			return fmt.Errorf("attachment, acknowledged %v: %w", o.acked, err)
		case string(b) != o.bytes:
			return fmt.Errorf("attachment %s has other bytes", id)
		}
	}
	return nil
}

// aside checks that torn tails are still where they were, or beside.
func aside(m faultfs.FS, torn []tornTail) error {
	for _, t := range torn {
		path := pathOf(m, t.id)
		if b := read(m, path); int64(len(b)) >= t.offset && strings.HasPrefix(b[t.offset:], t.bytes) {
			continue
		}
		found := false
		name := filepath.Join(filepath.Dir(path), fmt.Sprint("session.torn-", t.offset))
		for n := 2; !found && n < 9; n++ {
			found = read(m, name) == t.bytes
			name = filepath.Join(filepath.Dir(path), fmt.Sprint("session.torn-", t.offset, ".", n))
		}
		if !found {
			return fmt.Errorf("the torn tail of %s, %d bytes at %d, is gone", t.id, len(t.bytes), t.offset)
		}
	}
	return nil
}

// goOn opens a session as after a start of the machine, appends to it, and looks
// at what is stored, at what the doctor says, and at what a loss of power at one
// of its own syncs leaves.
func goOn(m *faultfs.Memory, s *simulation, l simLog, r *rand.Rand, anew bool) error {
	var torn []tornTail
	if !anew {
		path := pathOf(m, l.id)
		_, tail, err := store.Inspect(bg, storeOn(m, s.opt.plain), l.id, outcrop.Options{})
		if err != nil {
			return err
		}
		if tail.Torn {
			torn = []tornTail{{l.id, tail.Offset, read(m, path)[tail.Offset:]}}
			l.acked = len(l.lines) - tail.Recovered
		} else {
			l.acked = len(l.lines)
		}
	}
	// Somewhere in it the power goes again.
	at, n := r.IntN(14), 0
	var second *faultfs.Memory
	var promised simLog
	var live *store.Live
	disk := faultfs.Inject(m, func(op faultfs.Op) (f faultfs.Fault) {
		if strings.HasSuffix(op.Path, ".lock") {
			return f
		}
		if op.Kind == faultfs.OpSync || op.Kind == faultfs.OpSyncDir {
			if n++; n == at+1 {
				second = m.PowerCut(r)
				promised = l
				promised.live = live
				promised.learn()
				promised.live, promised.whole = nil, false
			}
		}
		f.Lie = s.spoiled(op)
		return f
	})
	s.trace = trace{}
	st := simStore{storeOn(disk, s.opt.plain), s}
	var err error
	if anew {
		live, err = store.Create(bg, st, storetest.Header(l.id), s.options())
	} else {
		live, err = store.Open(bg, st, l.id, s.options())
	}
	if err != nil {
		return fmt.Errorf("going on with %s: %w", l.id, err)
	}
	if got := linesOf(live.Session(), live.Session().Stored()); len(got) != len(l.lines) {
		return fmt.Errorf("going on with %s: %d events are loaded, a reader sees %d", l.id, len(got), len(l.lines))
	}
	err = storetest.Turn(live.Session(), 1+turns(live.Session()))
	if err == nil {
		err = live.Flush(bg)
	}
	all := linesOf(live.Session(), outcrop.Seq(live.Session().Len()))
	if err = errors.Join(err, live.Close(bg)); err != nil {
		return fmt.Errorf("going on with %s: %w", l.id, err)
	}
	end := simLog{id: l.id, lines: all, acked: len(all)}
	if err := intact(m, s, end); err != nil {
		return fmt.Errorf("after going on: %w", err)
	}
	if err := aside(m, torn); err != nil {
		return fmt.Errorf("after going on: %w", err)
	}
	if second == nil {
		return nil
	}
	for _, tail := range torn {
		if err := aside(second, []tornTail{tail}); err != nil {
			return fmt.Errorf("a second loss of power: %w", err)
		}
	}
	ss, _, err := store.Inspect(bg, storeOn(second, s.opt.plain), l.id, outcrop.Options{})
	if anew && errors.Is(err, outcrop.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = promised.holds(linesOf(ss, outcrop.Seq(ss.Len())))
	}
	if err == nil {
		_, err = opened(second, s, l.id)
	}
	if err != nil {
		return fmt.Errorf("a second loss of power: %w", err)
	}
	return nil
}

// opened opens a session, closes it and says how many events it has.
func opened(m faultfs.FS, s *simulation, id string) (int, error) {
	live, err := store.Open(bg, storeOn(m, s.opt.plain), id, s.options())
	if err != nil {
		return 0, err
	}
	return live.Session().Len(), live.Close(bg)
}

// intact reads a whole log and asks the doctor.
func intact(m faultfs.FS, s *simulation, l simLog) error {
	ss, tail, err := store.Inspect(bg, storeOn(m, s.opt.plain), l.id, outcrop.Options{})
	if err == nil && tail.Torn {
		err = fmt.Errorf("a torn tail: %w", tail.Reason)
	}
	if err == nil {
		err = l.holds(linesOf(ss, outcrop.Seq(ss.Len())))
	}
	if err != nil {
		return err
	}
	path := pathOf(m, l.id)
	enc, _ := wire.EncodingOf(path)
	b := []byte(read(m, path))
	findings, sum := doctor.Verify(bg, doctor.Target{Name: l.id, R: bytes.NewReader(b), Size: int64(len(b)), Encoding: enc}, doctor.Options{})
	for f := range findings {
		if f.Severity == doctor.SeverityError {
			err = fmt.Errorf("the doctor finds %s: %s", f.Code, f.Message)
		}
	}
	if !sum.OK && err == nil {
		err = fmt.Errorf("the doctor does not find it well: %v", sum.Err)
	}
	return err
}
