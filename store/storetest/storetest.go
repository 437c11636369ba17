// Package storetest is the contract of package store as tests. Each store's own
// test calls Run.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Place is where one store keeps its sessions.
type Place struct {
	// Open opens the place, each time anew, as another process would.
	Open func() store.Store
	// Fail makes every next write ("append") or sync ("sync") of stores that
	// Open gives, from then on, answer err, until it is called with nil. Nil: the
	// store cannot be made to fail.
	Fail func(op string, err error)
	// Tear cuts bytes from the end of the stored log, as a crash does that
	// leaves a torn tail. Nil: nothing can be torn.
	Tear func(id string, bytes int64)
	// Break makes a stored log unreadable from its first byte on. Nil: nothing
	// can be broken.
	Break func(id string)
}

// Run runs the contract; place makes an empty place.
func Run(t *testing.T, place func(t *testing.T) Place) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, p Place)
	}{
		{"a new session stores nothing before its first flush", newStoresNothing},
		{"what was flushed is there for everybody", flushedIsThere},
		{"a session that is closed and opened again is the same", sameAfterReopen},
		{"a session opened and closed without an append does not grow", untouchedDoesNotGrow},
		{"an open turn is closed when the session is opened", openTurnIsClosed},
		{"a read shows an open turn as it is stored", readShowsOpenTurn},
		{"a second writer is refused with the holder's name", secondWriter},
		{"an id is given once", idOnce},
		{"an unknown session is not found", notFound},
		{"a batch never ends inside a group", groupsStayWhole},
		{"flushes at the same time share writes", flushesShareWrites},
		{"a flush that is cancelled returns at once", cancelledFlush},
		{"a closed session takes no events", closedTakesNothing},
		{"a failed write leaves the log as it was and is tried again", failedWrite},
		{"a failed sync ends the writing for good", failedSync},
		{"a failed first write leaves no session", failedFirstWrite},
		{"a torn tail is cut when the session is opened", tornTail},
		{"a torn tail is only looked at by a reader", tornTailRead},
		{"one broken session does not hide the others", brokenNeighbour},
		{"a listing is newest first and says what it saw", listing},
		{"what a store says is to be done is what the log says", whatIsDue},
		{"a target is an id, the start of one, or last", resolving},
		{"a fork is the prefix and an end-seed", forking},
		{"a fork inside a turn is refused", forkRefused},
		{"a fork at any event moves down to where it can be cut", forkAt},
		{"a put is all or nothing", putAllOrNothing},
		{"a copy has the same bytes for each event", copying},
		{"attachments are kept by their digest", attachments},
		{"a copy takes the attachments along that its log names", copiedAttachments},
		{"a log is followed while it is written", following},
		{"a torn tail is followed when it is whole", followingTorn},
		{"any order of operations gives the log that memory gives", anyOrder},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, place(t)) })
	}
}

// Header is the header of a test's session.
func Header(id string) outcrop.Header {
	return outcrop.NewHeader(id, 1_700_000_000_000, "/home/dev/project")
}

// clock gives each event a later time.
func clock() func() int64 {
	var n atomic.Int64
	return func() int64 { return 1_700_000_000_000 + 7*n.Add(1) }
}

func options() store.Options {
	return store.Options{Session: outcrop.Options{Now: clock()}}
}

var bg = context.Background()

func create(t *testing.T, st store.Store, id string) *store.Live {
	t.Helper()
	l, err := store.Create(bg, st, Header(id), options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(bg) })
	return l
}

func reopen(t *testing.T, st store.Store, id string) *store.Live {
	t.Helper()
	l, err := store.Open(bg, st, id, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(bg) })
	return l
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Fatalf("got error %v, want one that is %v", err, w)
		}
	}
}

// Turn appends one whole turn: a prompt, a streamed answer with a tool call,
// its result.
func Turn(s *outcrop.Session, turn int) error {
	if err := StartTurn(s, turn); err != nil {
		return err
	}
	return EndTurn(s, turn)
}

// StartTurn appends a turn up to a started tool call.
func StartTurn(s *outcrop.Session, turn int) error {
	call := fmt.Sprintf("call_%d", turn)
	text := message.Text(fmt.Sprintf("prompt %d: näher \u2028 日", turn))
	a := appender{s: s}
	a.log(outcrop.TurnStart{Turn: turn})
	a.surface(outcrop.UserMessage{Message: message.Message{Content: []message.Block{text}, Source: message.FromUser, ID: fmt.Sprintf("u%d", turn)}}, outcrop.Tail, outcrop.NoSources)
	a.log(outcrop.StepStart{Turn: turn, Step: 1})
	first := outcrop.Seq(s.Len())
	for i := range 7 {
		a.log(outcrop.AssistantChunk{Turn: turn, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: fmt.Sprintf("piece %d ", i)}})
	}
	last := outcrop.Seq(s.Len() - 1)
	a.surface(outcrop.AssistantMessage{Turn: turn, Step: 1, Message: message.Message{
		Content: []message.Block{message.Text("reading"), message.ToolCall(call, "read", `{"path":"a.txt"}`)},
		Source:  message.FromModel("mock", "m1"), ID: fmt.Sprintf("a%d", turn)}}, outcrop.Tail, outcrop.SourceRange(first, last))
	a.log(outcrop.ToolCall{Turn: turn, Step: 1, CallID: call, Name: "read", Arguments: `{"path":"a.txt"}`})
	return a.err
}

// EndTurn ends what StartTurn began.
func EndTurn(s *outcrop.Session, turn int) error {
	a := appender{s: s}
	r := outcrop.NewToolResult(turn, 1, fmt.Sprintf("call_%d", turn), false, message.Text("alpha\nbeta"))
	r.Message.ID = fmt.Sprintf("r%d", turn)
	a.surface(r, outcrop.Tail, outcrop.SourcesOf(outcrop.Seq(s.Len()-1)))
	a.log(outcrop.StepEnd{Turn: turn, Step: 1})
	a.log(outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
	return a.err
}

type appender struct {
	s   *outcrop.Session
	err error
}

func (a *appender) log(p outcrop.LogPayload) {
	if a.err == nil {
		_, a.err = a.s.Append(p)
	}
}

func (a *appender) surface(p outcrop.SurfacePayload, op outcrop.SurfaceOp, src outcrop.Sources) {
	if a.err == nil {
		_, a.err = a.s.AppendSurface(p, op, src)
	}
}

// view is everything that two sessions are compared by.
type view struct {
	Header   string
	Events   []string
	Nodes    []outcrop.Seq
	Messages []string
	Digest   string
	Request  string
}

func viewOf(s *outcrop.Session) view {
	v := view{Header: string(s.Header().Line()), Digest: outcrop.LogDigest(s.Log()), Request: s.RequestDigest()}
	for e := range outcrop.Events(s.Log(), 0) {
		v.Events = append(v.Events, string(e.AppendJSON(nil)))
	}
	v.Nodes = append(v.Nodes, s.Surface().Nodes()...)
	for _, m := range s.Messages() {
		v.Messages = append(v.Messages, string(m.Raw))
	}
	return v
}

// stored is the session as a reader sees it.
func stored(t *testing.T, st store.Store, id string) *outcrop.Session {
	t.Helper()
	s, tail, err := store.Inspect(bg, st, id, outcrop.Options{})
	ok(t, err)
	if tail.Torn {
		t.Fatalf("the stored log is torn: %+v", tail)
	}
	return s
}

func same(t *testing.T, what string, got, want *outcrop.Session) {
	t.Helper()
	if d := cmp.Diff(viewOf(want), viewOf(got)); d != "" {
		t.Fatalf("%s differs (-want +got):\n%s", what, d)
	}
}

func types(log outcrop.Log, from outcrop.Seq) (ts []string) {
	for e := range outcrop.Events(log, from) {
		ts = append(ts, string(e.Type))
	}
	return ts
}

func newStoresNothing(t *testing.T, p Place) {
	st := p.Open()
	l := create(t, st, "s1")
	if infos, err := st.List(bg, store.ListOptions{}); err != nil || len(infos) != 0 {
		t.Fatalf("list of an empty store: %v, %v", infos, err)
	}
	_, err := st.Read(bg, "s1")
	wantErr(t, err, outcrop.ErrNotFound)
	ok(t, l.Flush(bg)) // nothing to flush
	ok(t, l.Close(bg))
	if infos, err := st.List(bg, store.ListOptions{}); err != nil || len(infos) != 0 {
		t.Fatalf("list after a session without an event: %v, %v", infos, err)
	}
	// The id is still free.
	l = create(t, st, "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Close(bg))
	same(t, "the stored session", stored(t, p.Open(), "s1"), l.Session())
}

func flushedIsThere(t *testing.T, p Place) {
	l := create(t, p.Open(), "s1")
	if l.Durable() != 0 {
		t.Fatalf("%d events are durable before there is one", l.Durable())
	}
	for turn := 1; turn <= 3; turn++ {
		ok(t, Turn(l.Session(), turn))
		ok(t, l.Flush(bg))
		if got, want := int(l.Durable()), l.Session().Len(); got != want {
			t.Fatalf("after a flush %d events are durable, want %d", got, want)
		}
		same(t, "the stored session", stored(t, p.Open(), "s1"), l.Session())
	}
	if err := l.Err(); err != nil {
		t.Fatal(err)
	}
}

func sameAfterReopen(t *testing.T, p Place) {
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, Turn(l.Session(), 2))
	// A replace: the first answer is taken out of sight.
	nodes := l.Session().Surface().Nodes()
	_, err := l.Session().AppendSurface(outcrop.UserMessage{Message: message.Message{
		Content: []message.Block{message.Text("summary")}, Source: message.Source{Kind: "plugin"}, ID: "sum"}},
		outcrop.Replace(nodes[0], nodes[2]), outcrop.SourcesOf(nodes[0], nodes[1], nodes[2]))
	ok(t, err)
	ok(t, l.Close(bg))
	before := viewOf(l.Session())

	again := reopen(t, p.Open(), "s1")
	s := again.Session()
	if got, want := int(s.Stored()), len(before.Events); got != want {
		t.Fatalf("%d events came from the store, want %d", got, want)
	}
	after := viewOf(s)
	if d := cmp.Diff(append(types(l.Session().Log(), 0), "session/end-seed"), types(s.Log(), 0)); d != "" {
		t.Fatalf("types (-want +got):\n%s", d)
	}
	if d := cmp.Diff(before.Events, after.Events[:s.Stored()]); d != "" {
		t.Fatalf("events (-want +got):\n%s", d)
	}
	if d := cmp.Diff(before.Nodes, after.Nodes); d != "" {
		t.Fatalf("surface (-want +got):\n%s", d)
	}
	if d := cmp.Diff(before.Messages, after.Messages); d != "" {
		t.Fatalf("messages (-want +got):\n%s", d)
	}
	if before.Request != after.Request {
		t.Fatalf("request digest %s, want %s", after.Request, before.Request)
	}
	ok(t, Turn(s, 3))
	ok(t, again.Close(bg))
	same(t, "the stored session", stored(t, p.Open(), "s1"), s)
}

func untouchedDoesNotGrow(t *testing.T, p Place) {
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Close(bg))
	ok(t, reopen(t, p.Open(), "s1").Close(bg)) // adds session/end-seed
	want := stored(t, p.Open(), "s1")
	for range 3 {
		l := reopen(t, p.Open(), "s1")
		ok(t, l.Flush(bg))
		ok(t, l.Close(bg))
	}
	same(t, "the session opened three more times", stored(t, p.Open(), "s1"), want)
}

func openTurnIsClosed(t *testing.T, p Place) {
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, StartTurn(l.Session(), 2))
	ok(t, l.Close(bg))
	n := outcrop.Seq(l.Session().Len())

	again := reopen(t, p.Open(), "s1")
	want := []string{"tool/result", "step/end", "turn/end", "session/end-seed"}
	if d := cmp.Diff(want, types(again.Session().Log(), n)); d != "" {
		t.Fatalf("what opening added (-want +got):\n%s", d)
	}
	if again.Session().Stored() != n {
		t.Fatalf("%d events came from the store, want %d", again.Session().Stored(), n)
	}
	ok(t, again.Flush(bg))
	same(t, "the stored session", stored(t, p.Open(), "s1"), again.Session())
	ok(t, Turn(again.Session(), 3))
	ok(t, again.Close(bg))
	same(t, "the stored session", stored(t, p.Open(), "s1"), again.Session())
}

func readShowsOpenTurn(t *testing.T, p Place) {
	l := create(t, p.Open(), "s1")
	ok(t, StartTurn(l.Session(), 1))
	ok(t, l.Close(bg))
	for range 2 {
		same(t, "the session read", stored(t, p.Open(), "s1"), l.Session())
	}
	infos, err := p.Open().List(bg, store.ListOptions{Full: true})
	ok(t, err)
	if len(infos) != 1 || infos[0].State != store.StateOpenTurn {
		t.Fatalf("listed as %+v", infos)
	}
}

func secondWriter(t *testing.T, p Place) {
	st := p.Open()
	l := create(t, st, "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	for _, other := range []store.Store{st, p.Open()} {
		_, err := store.Open(bg, other, "s1", options())
		wantErr(t, err, store.ErrLocked)
		var le *store.LockedError
		if !errors.As(err, &le) || le.Holder == (store.Holder{}) {
			t.Fatalf("the holder is not named: %v", err)
		}
		_, err = store.Create(bg, other, Header("s1"), options())
		wantErr(t, err, store.ErrExists)
	}
	infos, err := p.Open().List(bg, store.ListOptions{})
	ok(t, err)
	if len(infos) != 1 || infos[0].State != store.StateLocked || infos[0].Reason == "" {
		t.Fatalf("listed as %+v", infos)
	}
	same(t, "what a reader sees meanwhile", stored(t, p.Open(), "s1"), l.Session())
	ok(t, Turn(l.Session(), 2))
	ok(t, l.Close(bg))
	again := reopen(t, p.Open(), "s1")
	if int(again.Session().Stored()) != l.Session().Len() {
		t.Fatalf("%d events are stored, want %d", again.Session().Stored(), l.Session().Len())
	}
}

func idOnce(t *testing.T, p Place) {
	// Both exist only in memory; the first to be stored has the id.
	a, b := create(t, p.Open(), "s1"), create(t, p.Open(), "s1")
	ok(t, Turn(a.Session(), 1))
	ok(t, a.Flush(bg))
	ok(t, Turn(b.Session(), 1))
	ok(t, StartTurn(b.Session(), 2))
	err := b.Flush(bg)
	if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrLocked) {
		t.Fatalf("the second session was stored under the same id: %v", err)
	}
	if _, err := b.Session().Append(outcrop.TodoWrite{}); !errors.Is(err, outcrop.ErrVetoed) {
		t.Fatalf("an append that can never be stored gives %v, want a veto", err)
	}
	if b.Close(bg) == nil {
		t.Fatal("closing did not say that events were lost")
	}
	same(t, "the stored session", stored(t, p.Open(), "s1"), a.Session())
}

func notFound(t *testing.T, p Place) {
	st := p.Open()
	for _, id := range []string{"missing", "a/../b", "", "..", "\x00"} {
		_, err := store.Open(bg, st, id, options())
		wantErr(t, err, outcrop.ErrNotFound)
		_, err = st.Read(bg, id)
		wantErr(t, err, outcrop.ErrNotFound)
	}
	if infos, err := st.List(bg, store.ListOptions{}); err != nil || len(infos) != 0 {
		t.Fatalf("looking for sessions made some: %v, %v", infos, err)
	}
}

// counting passes a store on and notes where each batch ends.
type counting struct {
	store.Store
	ends  []outcrop.Seq
	batch atomic.Int64
}

func (c *counting) Create(ctx context.Context, h outcrop.Header) (store.Lease, error) {
	l, err := c.Store.Create(ctx, h)
	return &countingLease{l, c}, err
}

type countingLease struct {
	store.Lease
	c *counting
}

func (l *countingLease) Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error {
	last := outcrop.Seq(-1)
	err := l.Lease.Append(ctx, func(yield func(outcrop.Record) bool) {
		for r := range recs {
			last = r.Last()
			if !yield(r) {
				return
			}
		}
	})
	if err == nil {
		l.c.ends = append(l.c.ends, last+1)
		l.c.batch.Add(1)
	}
	return err
}
