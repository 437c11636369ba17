package jsonl_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run this simulation alone and say what it did")
	long    = flag.Bool("long", false, "run ten times as many simulations")
)

const (
	simRoot = "/d/state/sessions"
	top     = "/d"
)

// simulation is one random run on a file system that can lose its power. At
// every sync, before it is made, a copy of the file system loses it; what is
// left must hold what was promised until then.
type simulation struct {
	seed uint64
	opt  simOptions
	r    *rand.Rand
	mem  *faultfs.Memory
	st   *jsonl.Store
	did  []string

	mu      sync.Mutex // the writer of a live session cuts the power too
	logs    []*simLog
	objects []simObject
	torn    []tornTail
	cuts    []powerCut
	n       int // cuts so far
	quiet   bool
	process *bool // set when the process that has the disk is dead
	// A write is not followed by its sync.
	unsynced bool
	// For the mutation check: what went before, and whether a batch is being
	// written.
	trace     trace
	appending bool
	ids       int
	clock     atomic.Int64
}

type simOptions struct {
	plain bool
	// spoil takes the effect from some calls: the mutation check.
	spoil func(*simulation, *trace, faultfs.Op) bool
	// faults makes calls go wrong, at random.
	faults bool
}

// simLog is what is known of a session.
type simLog struct {
	id    string
	live  *store.Live
	lines []string // committed events, in order
	acked int      // so many of them were acknowledged
	made  bool     // a Put or a Fork of it was acknowledged
	whole bool     // it came from a Put or a Fork: it is there as a whole or not at all
	doom  bool     // a sync failed: it is not opened again before the next cut
}

type simObject struct {
	bytes string
	acked bool
}

// tornTail is what was behind a cut that an opening makes: it stays, in the log
// or aside.
type tornTail struct {
	id     string
	offset int64
	bytes  string
}

// powerCut is a file system that lost its power, and what was promised then.
type powerCut struct {
	n       int
	before  string
	mem     *faultfs.Memory
	logs    []simLog
	objects []simObject
	torn    []tornTail
}

func newSimulation(seed uint64, o simOptions) *simulation {
	return &simulation{seed: seed, opt: o, r: rand.New(rand.NewPCG(seed, 1)), mem: faultfs.NewMemory()}
}

// disk is the file system that the store gets.
func (s *simulation) disk() faultfs.FS {
	var faults func(faultfs.Op) faultfs.Fault
	if s.opt.faults {
		faults = faultfs.ByRule(s.rules()...)
	}
	dead, calls := false, -1
	if s.r.IntN(3) == 0 {
		calls = s.r.IntN(100) // it dies in the middle of something
	}
	s.process = &dead
	return faultfs.Inject(s.mem, func(op faultfs.Op) (f faultfs.Fault) {
		if calls--; calls == 0 {
			dead = true
		}
		if dead {
			f.Err = errKilled
			return f
		}
		if strings.HasSuffix(op.Path, ".lock") {
			return f
		}
		if op.Kind == faultfs.OpSync || op.Kind == faultfs.OpSyncDir {
			s.cut(string(op.Kind) + " " + op.Path)
		}
		switch {
		case s.spoiled(op):
			f.Lie = true
		case faults != nil:
			f = faults(op)
		}
		return f
	})
}

// spoiled reports whether a call is to have no effect.
func (s *simulation) spoiled(op faultfs.Op) bool {
	if s.opt.spoil == nil {
		return false
	}
	defer s.trace.add(op)
	return s.opt.spoil(s, &s.trace, op)
}

// rules are some faults for one life of the machine.
func (s *simulation) rules() (rules []*faultfs.Rule) {
	kinds := []faultfs.Kind{
		faultfs.OpWrite, faultfs.OpWrite, faultfs.OpWrite, faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpLink, faultfs.OpRename,
		faultfs.OpTruncate, faultfs.OpOpen, faultfs.OpMkdir, faultfs.OpReadDir, faultfs.OpStat, faultfs.OpRemove,
	}
	errs := []error{syscall.ENOSPC, syscall.EIO, syscall.EINTR, syscall.EDQUOT, syscall.EPERM}
	for range 1 + s.r.IntN(3) {
		k := kinds[s.r.IntN(len(kinds))]
		f := faultfs.Fault{Err: errs[s.r.IntN(len(errs))], Part: s.r.IntN(300)}
		if k == faultfs.OpWrite && s.r.IntN(4) == 0 {
			f = faultfs.Fault{Short: true, Part: f.Part}
		}
		rules = append(rules, &faultfs.Rule{Kind: k, Skip: s.r.IntN(12), Times: 1 + s.r.IntN(3), Fault: f})
	}
	return rules
}

// cut keeps what a loss of power would leave now.
func (s *simulation) cut(before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet {
		return
	}
	s.n++
	c := powerCut{n: s.n, before: before, mem: s.mem.PowerCut(rand.New(rand.NewPCG(s.seed, uint64(s.n)))),
		objects: slices.Clone(s.objects), torn: slices.Clone(s.torn)}
	for _, l := range s.logs {
		l.learn()
		c.logs = append(c.logs, *l)
	}
	s.cuts = append(s.cuts, c)
}

// learn takes note of what was committed and acknowledged.
func (l *simLog) learn() {
	if l.live == nil {
		return
	}
	l.acked = max(l.acked, int(l.live.Durable()))
	for e := range outcrop.Events(l.live.Session().Log(), outcrop.Seq(len(l.lines))) {
		l.lines = append(l.lines, string(e.AppendJSON(nil)))
	}
}

func (s *simulation) options() store.Options {
	return store.Options{
		Session: outcrop.Options{Now: func() int64 { return 1_700_000_000_000 + 7*s.clock.Add(1) }},
		// Nothing happens by itself.
		AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } },
	}
}

func (s *simulation) open() {
	for s.st = nil; s.st == nil; { // a fault may hit it
		s.st, _ = jsonl.NewOn(s.disk(), simRoot, jsonl.Options{Plain: s.opt.plain, Program: "a simulation"})
	}
}

func (s *simulation) say(format string, args ...any) {
	s.did = append(s.did, fmt.Sprintf(format, args...))
}

// run makes some operations, and looks at what each cut left.
func (s *simulation) run() error {
	made := faultfs.FS(s.mem)
	if _, err := faultfs.MakeFolders(made, top); err != nil {
		return err
	}
	for d := top; ; d = filepath.Dir(d) {
		if err := made.SyncDir(d); err != nil {
			return err
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	s.open()
	defer s.abandon()
	for range 3 + s.r.IntN(10) {
		err := s.step()
		if err == nil && *s.process {
			err = s.kill()
		}
		if err != nil {
			return s.failure(err)
		}
	}
	s.cut("the end")
	for _, c := range s.cuts {
		if err := c.check(s); err != nil {
			return s.failure(fmt.Errorf("power cut %d, before %s: %w", c.n, c.before, err))
		}
	}
	return nil
}

func (s *simulation) failure(err error) error {
	return fmt.Errorf("seed %d, plain %v, faults %v: %w\noperations:\n  %s", s.seed, s.opt.plain, s.opt.faults, err, strings.Join(s.did, "\n  "))
}

// abandon ends the live sessions of a machine that is no more.
func (s *simulation) abandon() {
	s.mu.Lock()
	s.quiet = true
	s.mu.Unlock()
	for _, l := range s.logs {
		if l.live != nil {
			l.live.Close(context.Background())
			l.live = nil
		}
	}
	s.quiet = false
}

var bg = context.Background()

// step makes one operation. Its own errors are part of the game; the error is a
// promise that was broken.
func (s *simulation) step() error {
	var live, closed []*simLog
	for _, l := range s.logs {
		if l.live != nil {
			live = append(live, l)
		} else if !l.doom {
			closed = append(closed, l)
		}
	}
	pick := func(ls []*simLog) *simLog { return ls[s.r.IntN(len(ls))] }
	switch n := s.r.IntN(100); {
	case len(s.logs) == 0 || n < 6 && len(s.logs) < 4:
		return s.create()
	case n < 12 && len(closed) > 0, len(live) == 0 && len(closed) > 0 && n < 80:
		return s.reopen(pick(closed))
	case n < 22:
		return s.copy(pick(s.logs))
	case n < 30:
		return s.object()
	case n < 36:
		return s.powerCut()
	case n < 42:
		return s.kill()
	case len(live) == 0:
		return s.create()
	case n < 60:
		return s.flush(pick(live))
	case n < 68:
		return s.write(pick(live))
	case n < 74:
		return s.close(pick(live))
	default:
		s.append(pick(live))
	}
	return nil
}

func (s *simulation) create() error {
	s.ids++
	l := &simLog{id: fmt.Sprint("s", s.ids)}
	live, err := store.Create(bg, simStore{s.st, s}, storetest.Header(l.id), s.options())
	s.say("create %s: %v", l.id, err)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	l.live = live
	s.logs = append(s.logs, l)
	s.mu.Unlock()
	s.append(l)
	return nil
}

// append commits some events.
func (s *simulation) append(l *simLog) {
	ss := l.live.Session()
	turn, step, open := outcrop.OpenTurn(ss.Log())
	var what string
	var err error
	switch n := s.r.IntN(8); {
	case n == 0:
		what = "a group"
		_, err = ss.AppendAll(slices.Repeat([]outcrop.Candidate{outcrop.LogCandidate(outcrop.TodoWrite{})}, 1+s.r.IntN(5))...)
	case n == 1:
		what = "a refused event"
		_, err = ss.AppendSurface(outcrop.UserMessage{Message: message.Message{ID: "no", Source: message.FromUser}}, outcrop.Replace(99999, 99999), outcrop.SourcesOf(99999))
	case n < 4 && open && step > 0:
		what = "chunks"
		for i := range 1 + s.r.IntN(20) {
			if _, err = ss.Append(outcrop.AssistantChunk{Turn: turn, Step: step, Chunk: message.Chunk{Type: message.TextDelta, Text: fmt.Sprint("piece ", i, strings.Repeat(" long", s.r.IntN(20)))}}); err != nil {
				break
			}
		}
	case open:
		what = fmt.Sprint("the end of turn ", turn)
		if n == 7 && step > 0 {
			err = storetest.EndTurn(ss, turn)
		} else {
			_, err = ss.Append(outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
		}
	case n < 6:
		what = "a turn"
		err = storetest.Turn(ss, 1+turns(ss))
	default:
		what = "an open turn"
		err = storetest.StartTurn(ss, 1+turns(ss))
	}
	s.say("append to %s: %s, now %d events: %v", l.id, what, ss.Len(), err != nil)
}

func turns(s *outcrop.Session) (n int) {
	for e := range outcrop.Events(s.Log(), 0) {
		if e.Type == outcrop.TypeTurnStart {
			n++
		}
	}
	return n
}

func (s *simulation) flush(l *simLog) error {
	n := l.live.Session().Len()
	err := l.live.Flush(bg)
	s.say("flush %s, %d events: %v", l.id, n, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.learn()
	if err == nil {
		l.acked = max(l.acked, n)
	}
	if errors.Is(err, store.ErrSync) {
		l.doom = true
	}
	return nil
}

// write stores what was committed and does not sync it, as the writer does when
// 200 ms have gone by.
func (s *simulation) write(l *simLog) error {
	s.unsynced = true
	err := l.live.Flush(bg)
	s.unsynced = false
	s.say("write %s, %d events: %v", l.id, l.live.Session().Len(), err)
	if err == nil {
		return s.flush(l) // there was nothing to write, or it was published
	}
	if s.r.IntN(2) == 0 {
		s.append(l)
		return s.flush(l)
	}
	return nil
}

// simStore gives leases whose syncs can be left out.
type simStore struct {
	store.Store
	s *simulation
}

func (st simStore) Create(ctx context.Context, h outcrop.Header) (store.Lease, error) {
	l, err := st.Store.Create(ctx, h)
	return simLease{l, st.s}, err
}

func (st simStore) Acquire(ctx context.Context, id string) (store.Lease, error) {
	l, err := st.Store.Acquire(ctx, id)
	return simLease{l, st.s}, err
}

type simLease struct {
	store.Lease
	s *simulation
}

func (l simLease) Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error {
	l.s.appending = true
	defer func() { l.s.appending = false }()
	return l.Lease.Append(ctx, recs)
}

var errLater = errors.New("synced later, says the simulation")

func (l simLease) Sync(ctx context.Context) error {
	if l.s.unsynced {
		return errLater
	}
	return l.Lease.Sync(ctx)
}

func (s *simulation) close(l *simLog) error {
	n := l.live.Session().Len()
	err := l.live.Close(bg)
	s.say("close %s, %d events: %v", l.id, n, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.learn()
	if err == nil {
		l.acked = max(l.acked, n)
	}
	l.doom = l.doom || errors.Is(err, store.ErrSync)
	l.live = nil
	if l.acked == 0 && !l.made {
		// Perhaps it was never stored.
		if _, _, err := store.Inspect(bg, s.clean(), l.id, outcrop.Options{}); errors.Is(err, outcrop.ErrNotFound) {
			s.logs = slices.DeleteFunc(s.logs, func(o *simLog) bool { return o == l })
		}
	}
	return nil
}

// clean is the store without faults and cuts.
func (s *simulation) clean() *jsonl.Store { return storeOn(s.mem, s.opt.plain) }

func storeOn(m faultfs.FS, plain bool) *jsonl.Store {
	st, err := jsonl.NewOn(m, simRoot, jsonl.Options{Plain: plain})
	if err != nil {
		panic(err)
	}
	return st
}

func (s *simulation) reopen(l *simLog) error {
	live, err := store.Open(bg, simStore{s.st, s}, l.id, s.options())
	s.say("open %s: %v", l.id, err)
	if err != nil {
		if s.opt.faults || *s.process {
			return nil
		}
		return fmt.Errorf("%s cannot be opened: %w", l.id, err)
	}
	stored := linesOf(live.Session(), live.Session().Stored())
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := l.holds(stored); err != nil {
		return err
	}
	// What was closed without being saved is gone.
	l.lines, l.live, l.whole = stored, live, false
	return nil
}

// copy makes a session out of another one.
func (s *simulation) copy(from *simLog) error {
	s.ids++
	l := &simLog{id: fmt.Sprint("s", s.ids), whole: true}
	s.mu.Lock()
	s.logs = append(s.logs, l)
	s.mu.Unlock()
	var err error
	if s.r.IntN(2) == 0 {
		at := outcrop.Seq(s.r.IntN(20) - 1)
		_, err = store.ForkAt(bg, s.st, from.id, at, store.Child{ID: l.id, CreatedAt: 1_800_000_000_000})
		s.say("fork %s at %d as %s: %v", from.id, at, l.id, err)
	} else {
		var src *outcrop.Session
		if src, _, err = store.Inspect(bg, s.st, from.id, outcrop.Options{}); err == nil {
			err = s.st.Put(bg, storetest.Header(l.id), func(yield func(outcrop.Record, error) bool) {
				for r := range src.Log().Records(0) {
					if !yield(r, nil) {
						return
					}
				}
			})
		}
		s.say("put %s as %s: %v", from.id, l.id, err)
	}
	made, _, readErr := store.Inspect(bg, s.clean(), l.id, outcrop.Options{})
	s.mu.Lock()
	defer s.mu.Unlock()
	l.doom = errors.Is(err, store.ErrSync)
	switch {
	case err == nil && readErr != nil:
		return fmt.Errorf("%s was made and cannot be read: %w", l.id, readErr)
	case readErr != nil:
		s.logs = slices.DeleteFunc(s.logs, func(o *simLog) bool { return o == l })
		return nil
	case err != nil && !l.doom && !*s.process:
		return fmt.Errorf("%s was not made, and is there", l.id)
	}
	l.lines = linesOf(made, outcrop.Seq(made.Len()))
	if l.made = err == nil; l.made {
		l.acked = len(l.lines)
	}
	return nil
}

func (s *simulation) object() error {
	o := simObject{bytes: fmt.Sprint("object ", s.r.IntN(6), strings.Repeat(" bytes", s.r.IntN(2)*100))}
	s.mu.Lock()
	at := len(s.objects)
	s.objects = append(s.objects, o)
	s.mu.Unlock()
	_, err := s.st.Objects().Put(bg, []byte(o.bytes))
	s.say("attachment %s: %v", blob.ID([]byte(o.bytes))[:14], err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[at].acked = err == nil
	return nil
}

var errKilled = errors.New("the process was killed")

// kill ends the process: what it wrote is there, synced or not.
func (s *simulation) kill() error {
	s.mu.Lock()
	for _, l := range s.logs {
		l.learn()
	}
	s.mu.Unlock()
	*s.process = true
	s.abandon()
	s.say("KILL")
	s.logs = slices.DeleteFunc(s.logs, func(l *simLog) bool {
		_, _, err := store.Inspect(bg, s.clean(), l.id, outcrop.Options{})
		return errors.Is(err, outcrop.ErrNotFound) && l.acked == 0 && !l.made
	})
	s.open()
	return nil
}

// powerCut makes the run itself go on with what a loss of power left.
func (s *simulation) powerCut() error {
	s.cut("the loss of power")
	c := s.cuts[len(s.cuts)-1]
	s.abandon()
	s.say("LOSS OF POWER (cut %d)", c.n)
	s.mem = c.mem.PowerCut(rand.New(rand.NewPCG(0, 0))) // a copy: the cut is looked at later
	st := s.clean()
	kept := s.logs[:0]
	for _, l := range s.logs {
		ss, tail, err := store.Inspect(bg, st, l.id, outcrop.Options{})
		if errors.Is(err, outcrop.ErrNotFound) && l.acked == 0 && !l.made {
			continue
		}
		if err != nil {
			return fmt.Errorf("cut %d: %s: %w", c.n, l.id, err)
		}
		stored := linesOf(ss, outcrop.Seq(ss.Len()))
		if err := l.holds(stored); err != nil {
			return fmt.Errorf("cut %d: %w", c.n, err)
		}
		// Everything that is there is durable now.
		*l = simLog{id: l.id, lines: stored, acked: len(stored) - tail.Recovered, made: true}
		kept = append(kept, l)
		if tail.Torn {
			b := read(s.mem, pathOf(s.mem, l.id))
			s.torn = append(s.torn, tornTail{l.id, tail.Offset, b[tail.Offset:]})
			s.say("%s has a torn tail of %d bytes at %d, %d events saved of %d", l.id, tail.Bytes, tail.Offset, tail.Recovered, len(stored))
		}
	}
	s.logs = kept
	for i := range s.objects {
		_, err := st.Objects().Get(bg, blob.ID([]byte(s.objects[i].bytes)))
		s.objects[i].acked = s.objects[i].acked || err == nil
	}
	s.open()
	return nil
}

// linesOf are the first n events.
func linesOf(s *outcrop.Session, n outcrop.Seq) []string {
	lines := make([]string, 0, n+16)
	for e := range outcrop.Events(s.Log(), 0) {
		if e.Seq == n {
			break
		}
		lines = append(lines, string(e.AppendJSON(nil)))
	}
	return lines
}

// holds says what of a promise a stored log breaks.
func (l *simLog) holds(stored []string) error {
	if len(stored) < l.acked {
		return fmt.Errorf("%s has %d events, %d were acknowledged", l.id, len(stored), l.acked)
	}
	if len(stored) > len(l.lines) {
		return fmt.Errorf("%s has %d events, %d were committed", l.id, len(stored), len(l.lines))
	}
	if l.whole && len(stored) != len(l.lines) && l.live == nil {
		return fmt.Errorf("%s was put as a whole and has %d events of %d", l.id, len(stored), len(l.lines))
	}
	for i := range stored {
		if stored[i] != l.lines[i] {
			return fmt.Errorf("event %d of %s is\n%s\nand not\n%s", i, l.id, stored[i], l.lines[i])
		}
	}
	return nil
}

func pathOf(m faultfs.FS, id string) string {
	dir := filepath.Join(simRoot, jsonl.ProjectKey("/home/dev/project"), jsonl.EncodeSegment(id))
	p := filepath.Join(dir, "session.jsonl")
	if _, err := m.Stat(p); err != nil {
		p += ".zstd"
	}
	return p
}

func read(m faultfs.FS, path string) string {
	b, err := faultfs.ReadFile(m, path)
	if err != nil {
		return "!" + err.Error()
	}
	return string(b)
}

// simulate runs one seed. Half of them have plain logs, and half have faults.
func simulate(t *testing.T, seed uint64, o simOptions) (cuts int, err error) {
	s := newSimulation(seed, o)
	err = s.run()
	if *oneSeed != 0 {
		t.Logf("plain %v, faults %v, %d cuts:\n  %s", o.plain, o.faults, s.n, strings.Join(s.did, "\n  "))
	}
	return s.n, err
}

func optionsOf(seed uint64) simOptions { return simOptions{plain: seed%2 == 0, faults: seed%4 >= 2} }

// 10,000 runs (-short: 300; -long: 100,000). A failure is run alone with -seed.
func TestALossOfPowerAtAnySyncLosesNothingThatWasAcknowledged(t *testing.T) {
	if *oneSeed != 0 {
		if _, err := simulate(t, *oneSeed, optionsOf(*oneSeed)); err != nil {
			t.Fatal(err)
		}
		return
	}
	seeds := uint64(10_000)
	switch {
	case testing.Short():
		seeds = 300
	case *long:
		seeds = 100_000
	}
	var next atomic.Uint64
	var cuts, failed atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for w := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", w), func(t *testing.T) {
				t.Parallel()
				for failed.Load() < 3 {
					seed := next.Add(1)
					if seed > seeds {
						return
					}
					n, err := simulate(t, seed, optionsOf(seed))
					cuts.Add(int64(n))
					if err != nil {
						failed.Add(1)
						t.Errorf("%v\nrun it alone with -run %s -seed %d", err, "TestALossOfPower", seed)
					}
				}
			})
		}
	})
	t.Logf("%d runs, %d power cuts", seeds, cuts.Load())
}
