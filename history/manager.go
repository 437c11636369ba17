package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/dsh"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Policy is a set of rules by which a surface is reduced.
type Policy string

const (
	// Layers condenses the raw text behind the newest checkpoint.
	//
	// It acts when the next request would have limit tokens: a part of the
	// window, or what the window leaves for an answer. First it shortens
	// results, when that alone reaches the need. Else it condenses every run
	// of two or more exchanges between what is protected, each in a bracket
	// of its own, three at most. Protected are the tail (the newest exchanges
	// that fit into the part Keep of the window), pinned exchanges, the
	// newest prompt and the one of the open turn, the newest copy of each
	// context, and calls that wait. Checkpoints are frozen until four
	// neighbours have one level, or all of them take a quarter of the limit;
	// then neighbours become one, which must shrink to 0.6. When the
	// summariser fails, the digest of Digest takes its place.
	Layers Policy = "layers"
	// DSH condenses from the head of the surface up to a tail, as dsh does
	// it: with its prices, its pruner and its borders, and without a
	// replacement for a summariser that fails.
	DSH Policy = "dsh"
)

// Options of a Manager. The zero value of each field is right.
type Options struct {
	Policy Policy // "": Layers
	// Off: nothing is done by itself, a full context is only told about.
	Off   bool
	Ratio float64 // of the window at which it acts; 0: 0.8
	Keep  float64 // of the window that stays raw; 0: 0.16
	// Window and MaxOutput are those of the conversation's model, in tokens;
	// 0: unknown. Without a window nothing is done by itself but after an
	// overflow.
	Window, MaxOutput int64

	// Provider answers the summariser; nil: no model is asked.
	Provider llm.Provider
	// Model is who summarises, with its Window; without a Model in it the
	// conversation's own. Another model does not find the conversation in its
	// cache.
	Model       llm.Config
	ModelWindow int64
	Images      bool
	Objects     llm.Objects

	Counter meter.Counter // nil: meter.Heuristic
	// Pruner are the numbers of the policy dsh; zero: dsh's own.
	Pruner dsh.Pruner
	// Flush makes durable what was appended, before a model is called; nil:
	// the Editor does.
	Flush func(context.Context) error
	// Timeout is the longest that a call of the summariser may take; 0: ten
	// minutes. After is the clock for it; nil: the system's.
	Timeout time.Duration
	After   func(time.Duration) <-chan time.Time
	// NewID names brackets; nil: by the seq of their start.
	NewID func() string
	// Notify hears what a person should know. It must not call the Manager.
	Notify func(Notice)
	Logger *slog.Logger
}

// Notice is one line for a person.
type Notice struct {
	Kind NoticeKind
	Text string
}

// NoticeKind says what a notice is about.
type NoticeKind string

const (
	Full       NoticeKind = "full"       // compaction is off, or nothing can be taken away
	Degraded   NoticeKind = "degraded"   // a summariser failed
	Overflowed NoticeKind = "overflowed" // a request was too long, room is made for another try
	Compacting NoticeKind = "compacting" // a summariser is called
)

// Manager keeps one session small enough for its model. Its methods may be
// called from any goroutine, one at a time; a second call while one runs is
// refused with CodeBusy.
type Manager struct {
	o   Options
	log *slog.Logger

	mu      sync.Mutex
	meter   *meter.Meter
	dsh     dsh.Meter
	brk     breaker
	own     *bracket // a bracket of ours whose end could not be written
	queued  []outcrop.Seq
	told    bool // of a full context, until it is not full any more
	session string
}

// NewManager makes the manager of one session.
func NewManager(o Options) (*Manager, error) {
	if o.Policy == "" {
		o.Policy = Layers
	}
	if o.Ratio == 0 {
		o.Ratio = 0.8
	}
	if o.Keep == 0 {
		o.Keep = 0.16
	}
	switch {
	case o.Policy != Layers && o.Policy != DSH:
		return nil, fmt.Errorf("history: policy %q: it is layers or dsh", o.Policy)
	case !(o.Ratio > 0 && o.Ratio <= 1):
		return nil, fmt.Errorf("history: ratio %v: it is over 0 and at most 1", o.Ratio)
	case !(o.Keep > 0 && o.Keep < o.Ratio):
		return nil, fmt.Errorf("history: keep %v: it is over 0 and less than ratio %v", o.Keep, o.Ratio)
	case o.Window < 0 || o.MaxOutput < 0 || o.ModelWindow < 0 || o.Timeout < 0:
		return nil, errors.New("history: windows, output and timeout cannot be negative")
	}
	if o.Pruner == (dsh.Pruner{}) {
		o.Pruner = dsh.DefaultPruner
	}
	if err := o.Pruner.Check(); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{o: o, log: o.Logger, meter: meter.New(o.Counter, o.Window)}, nil
}

// SetModel tells that another model answers the conversation. A summariser that
// is a model of its own stays. It waits for an operation that runs.
func (m *Manager) SetModel(p llm.Provider, window, maxOutput int64, images bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.o.Window, m.o.MaxOutput = max(window, 0), max(maxOutput, 0)
	if m.o.Model.Model == "" {
		m.o.Provider, m.o.Images = p, images
	}
	m.meter.SetWindow(m.o.Window)
}

// margin is what estimate and provider may differ by, in tokens.
func margin(window int64) int64 { return max(1024, window/50) }

// Limit is how many tokens a request may have before the policy layers acts; 0
// when the window is unknown. It leaves room for an answer, but never less than
// a quarter of the window for the request.
func (o *Options) Limit() int64 {
	if o.Window <= 0 {
		return 0
	}
	ratio := o.Ratio
	if ratio == 0 {
		ratio = 0.8
	}
	limit := min(int64(ratio*float64(o.Window)), o.Window-o.MaxOutput-margin(o.Window))
	return max(limit, o.Window/4)
}

// OutputFor is what the window leaves for an answer to a request of used
// tokens, and at most what the model gives; 0 when the window is unknown.
func (o *Options) OutputFor(used int64) int64 {
	if o.Window <= 0 {
		return 0
	}
	left := max(o.Window-used-margin(o.Window), leastSummary)
	if o.MaxOutput > 0 {
		left = min(left, o.MaxOutput)
	}
	return left
}

// Report is what an operation did, or with DryRun would do.
type Report struct {
	Edits   []Edit
	Planned []Planned // only with DryRun
	// Queued are results that will be shortened before the next step, because
	// the session must stay readable for dsh, which allows it only in a turn.
	Queued []outcrop.Seq
	// Before and After are the tokens of the next request; After is the most
	// that it would have, with DryRun.
	Before, After int64
	Calls         int // of the summariser
	// Notice is what a person should know: that nothing can be taken away.
	Notice string
	// Err is what went wrong and left the session good: a summariser whose
	// place a digest took, or an operation by itself that came to nothing.
	Err error
}

// Planned is an edit that was not made.
type Planned struct {
	Kind        string        // KindCompaction or KindPrune
	Nodes       []outcrop.Seq // the range, in model order
	Tokens      int64         // estimated
	AtMost      int64         // of what would take its place; of a prune it is the figure
	Level       int           // of the checkpoint, 0 for a prune
	Invalidates int64         // tokens of the last request that leave the cache
}

// Input is what enters with the next step and is not on the surface yet.
type Input struct {
	Claimed []message.Message // from the inbox
	Owed    []message.Message // contexts
}

// PreStep makes room before a step, when there is need. A failure that leaves
// the session good is in the report: the step goes on. The error is that of a
// cancelled ctx, or of the session.
func (m *Manager) PreStep(ctx context.Context, ed Editor, in Input) (Report, error) {
	o, done, err := m.begin(ctx, ed, pressure)
	if err != nil {
		return Report{}, err
	}
	defer done()
	for _, msg := range in.Claimed {
		o.coming += m.meter.Count(msg)
		o.prompt = o.prompt || msg.Source.Kind == message.FromUser.Kind
	}
	for _, msg := range in.Owed {
		o.coming += m.meter.Count(msg)
	}
	if err := o.pruneQueued(); err != nil {
		return o.report(err)
	}
	if m.o.Policy == DSH {
		return o.report(o.pressureDSH())
	}
	return o.report(o.pressure())
}

// Overflow makes room after a request that was refused as too long. retry says
// that the surface changed and the request is worth another try: once a step,
// and again only when a reply or a prompt came since.
func (m *Manager) Overflow(ctx context.Context, ed Editor) (retry bool, rep Report, err error) {
	o, done, err := m.begin(ctx, ed, overflow)
	if err != nil {
		return false, Report{}, err
	}
	defer done()
	if m.o.Off || !m.brk.mayRecover(o.log, m.meter) {
		rep, err = o.report(nil)
		return false, rep, err
	}
	m.notify(Overflowed, m.tooLong())
	if m.o.Policy == DSH {
		err = o.overflowDSH()
	} else {
		err = o.overflow()
	}
	rep, err = o.report(err)
	if ctx.Err() != nil {
		return false, rep, ctx.Err()
	}
	return len(rep.Edits) > 0 && err == nil, rep, err
}

// tooLong says that a request was too long. By how much is said where the
// measure knows it: the provider counts for itself.
func (m *Manager) tooLong() string {
	text := "context too long"
	if p := m.meter.Provider(); p != "" {
		text = p + ": " + text
	}
	if used := m.meter.Used(); m.o.Window > 0 && used > m.o.Window {
		text += " (" + llm.Thousands(used) + " of " + llm.Thousands(m.o.Window) + ")"
	}
	return text + ": compacting once, then trying again"
}

// Request is a compaction by hand.
type Request struct {
	CommandID string
	// Start and End are a range of nodes; both -1: as much as the policy lets
	// go.
	Start, End outcrop.Seq
	ModelFree  bool // ask no model
	DryRun     bool // only say what would be done
}

// Compact compacts by hand, between turns. A report without edits says that
// there was nothing to do.
func (m *Manager) Compact(ctx context.Context, ed Editor, r Request) (Report, error) {
	o, done, err := m.begin(ctx, ed, byHand)
	if err != nil {
		return Report{}, err
	}
	defer done()
	o.command, o.modelFree, o.dry = r.CommandID, r.ModelFree, r.DryRun
	if m.meter.OpenTurn() >= 0 {
		return o.rep, refuse("compact", m.session, CodeBusy, -1, "a turn is open", "wait until it has ended, or cancel it")
	}
	switch {
	case r.Start >= 0 || r.End >= 0:
		err = o.explicit(r.Start, r.End)
	case m.o.Policy == DSH:
		err = o.handDSH()
	default:
		err = o.hand()
	}
	rep, rerr := o.report(err)
	if err == nil {
		err = rerr
	}
	return rep, err
}

// CompactRange compacts a range of the surface inside the open turn.
func (m *Manager) CompactRange(ctx context.Context, ed Editor, start, end outcrop.Seq) (Report, error) {
	o, done, err := m.begin(ctx, ed, pressure)
	if err != nil {
		return Report{}, err
	}
	defer done()
	if m.meter.OpenTurn() < 0 {
		return o.rep, refuse("compact", m.session, CodeNoTurn, -1, "no turn is open", "compact by hand between turns")
	}
	err = o.explicit(start, end)
	rep, rerr := o.report(err)
	if err == nil {
		err = rerr
	}
	return rep, err
}

// Prune shortens results by hand: the given nodes, whatever their place and
// size, or, without nodes, all that the policy lets be shortened. In a session
// that must stay readable for dsh a result can be shortened only in a turn;
// between turns the nodes are queued for the next step, in memory.
func (m *Manager) Prune(ctx context.Context, ed Editor, nodes []outcrop.Seq, dryRun bool) (Report, error) {
	o, done, err := m.begin(ctx, ed, byHand)
	if err != nil {
		return Report{}, err
	}
	defer done()
	o.dry = dryRun
	err = o.pruneHand(nodes)
	rep, rerr := o.report(err)
	if err == nil {
		err = rerr
	}
	return rep, err
}

// Measure says how large the next request is.
func (m *Manager) Measure(ctx context.Context, ed Editor) (meter.Parts, error) {
	o, done, err := m.begin(ctx, ed, byHand)
	if err != nil {
		return meter.Parts{}, err
	}
	defer done()
	return o.m.meter.Parts(), nil
}

func (m *Manager) notify(kind NoticeKind, text string) {
	if m.o.Notify != nil {
		m.o.Notify(Notice{kind, text})
	}
}
