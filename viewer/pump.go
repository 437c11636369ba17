package viewer

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
)

const (
	// followEvery is how often a log of another process is looked at.
	followEvery = 200 * time.Millisecond
	// statusEvery is how often the status of an agent is looked at.
	statusEvery = 100 * time.Millisecond
	// writerEvery is how often is looked who writes a session.
	writerEvery = 2 * time.Second
	// pause lies between two frames at least, and more for many listeners:
	// writing to all of them must leave room for other work.
	pause      = 20 * time.Millisecond
	pauseEach  = 250 * time.Microsecond
	mostPause  = 100 * time.Millisecond
	mostSingle = 64  // records that are sent one by one
	mostFrames = 128 // that are kept for those who are slower
	mostKept   = 4 << 20
)

// pump makes the stream of one session for all who listen.
type pump struct {
	v    *Viewer
	id   string
	s    *opened.Session
	done func()
	wake chan struct{} // capacity 1

	mu     sync.Mutex
	modes  [modes]stream
	at     mark // everything up to it is in frames
	status string
	writer facts.Writer
	// durable is the last event that is known to be synced.
	durable outcrop.Seq
	open    []*question
	gone    bool
	refs    int
	stop    context.CancelFunc

	// Under the pump's goroutine.
	draft      draft
	writerTold string
}

// mode is a way in which the stream can be had: masked or not, with drafts or
// not.
type mode int

const (
	showSecrets mode = 1 << iota
	withDrafts
	modes = 4
)

// stream are the last frames of one mode.
type stream struct {
	listeners int
	frames    []frame
	first     uint64 // number of frames[0]
	bytes     int
	more      chan struct{} // closed when a frame comes
	drafted   drafted       // what the draft is to the listeners
	fresh     bool          // the first listener just came
}

// frame is what came at one time.
type frame struct {
	parts []part
	rest  []byte // what has no place in the log
}

// part is one event of the stream that has a place in the log.
type part struct {
	last  outcrop.Seq
	reset bool
	b     []byte
}

func (f *frame) size() int {
	n := len(f.rest)
	for i := range f.parts {
		n += len(f.parts[i].b)
	}
	return n
}

// mark is a place in a log.
type mark struct {
	id                string
	epoch, generation int
	seq               outcrop.Seq
	check             uint32
}

// cursorOf is the mark at the end of what is known of a log.
func cursorOf(id string, x *folded.Index, log outcrop.Log) string {
	m := markOf(id, x, log, x.Len()-1)
	return m.String()
}

func markOf(id string, x *folded.Index, log outcrop.Log, seq outcrop.Seq) mark {
	return mark{id, x.EpochAt(seq), x.GenerationAt(seq), seq, opened.Check(log, seq)}
}

func (m mark) String() string {
	b := []byte(url.PathEscape(m.id))
	for _, n := range [...]int64{int64(m.epoch), int64(m.generation), int64(m.seq)} {
		b = strconv.AppendInt(append(b, '.'), n, 10)
	}
	return string(strconv.AppendUint(append(b, '.'), uint64(m.check), 16))
}

// parseMark reads a mark.
func parseMark(text string) (m mark, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) < 5 {
		return m, false
	}
	k := len(parts) - 4
	id, err := url.PathUnescape(strings.Join(parts[:k], "."))
	var ns [3]int64
	for i := range ns {
		n, e := strconv.ParseInt(parts[k+i], 10, 64)
		ns[i] = n
		err = errors.Join(err, e)
	}
	check, e := strconv.ParseUint(parts[k+3], 16, 32)
	if errors.Join(err, e) != nil || ns[2] < -1 {
		return m, false
	}
	return mark{id, int(ns[0]), int(ns[1]), outcrop.Seq(ns[2]), uint32(check)}, true
}

// holds reports whether a log has, where a mark stands, what it had when the
// mark was made.
func (m mark) holds(x *folded.Index, log outcrop.Log) bool {
	return m.seq < x.Len() && m == markOf(m.id, x, log, m.seq)
}

// listen joins the pump of a session, which is started when there is none.
func (v *Viewer) listen(ctx context.Context, id string, md mode) (p *pump, at uint64, err error) {
	s, done, err := v.open.Use(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		done()
		return nil, 0, stopping
	}
	p = v.pumps[id]
	if p == nil {
		p = &pump{v: v, id: id, s: s, done: done, wake: make(chan struct{}, 1)}
		p.begin()
		var life context.Context
		life, p.stop = context.WithCancel(v.life)
		v.pumps[id] = p
		v.busy.Add(1)
		go func() {
			defer v.busy.Done()
			p.run(life)
		}()
	} else {
		defer done()
	}
	p.refs++
	v.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	st := &p.modes[md]
	if st.listeners++; st.listeners == 1 {
		// What others have seen of a draft is nothing to these.
		st.first += uint64(len(st.frames))
		st.frames, st.bytes, st.drafted, st.fresh = nil, 0, drafted{}, true
		st.more = make(chan struct{})
		p.nudge()
	}
	return p, st.first + uint64(len(st.frames)), nil
}

// quit leaves the pump; the last one stops it.
func (v *Viewer) quit(p *pump, md mode) {
	p.mu.Lock()
	p.modes[md].listeners--
	p.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if p.refs--; p.refs == 0 {
		p.stop()
		if v.pumps[p.id] == p {
			delete(v.pumps, p.id)
		}
	}
}

// watched reports whether a page looks at a session.
func (v *Viewer) watched(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pumps[id] != nil
}

// nudge makes a pump look at once. It never waits.
func (v *Viewer) nudge(id string) {
	v.mu.Lock()
	p := v.pumps[id]
	v.mu.Unlock()
	if p != nil {
		p.nudge()
	}
}

func (p *pump) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// begin stands at the end of the log. Its caller holds v.mu.
func (p *pump) begin() {
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		p.at = markOf(p.id, x, log, x.Len()-1)
		p.draft.begin(x, log)
	})
	p.durable, p.status = p.at.seq, "null"
	if r := p.v.running[p.id]; r != nil {
		p.durable = r.Durable() - 1
	}
}

// run looks for what is new until nobody listens.
func (p *pump) run(ctx context.Context) {
	defer p.done()
	defer func() {
		// Who listens from now on gets a pump of its own.
		p.v.mu.Lock()
		defer p.v.mu.Unlock()
		if p.v.pumps[p.id] == p {
			delete(p.v.pumps, p.id)
		}
	}()
	var observed *running
	var unobserve func()
	defer func() {
		if unobserve != nil {
			unobserve()
		}
	}()
	var writerAt time.Time
	for {
		r := p.v.runningOf(p.id)
		if r != observed {
			if unobserve != nil {
				unobserve()
				unobserve = nil
			}
			if observed = r; r != nil {
				unobserve = r.Session().Observe(func(outcrop.Event) { p.nudge() })
			}
			writerAt = time.Time{}
		}
		if now := time.Now(); now.Sub(writerAt) >= writerEvery {
			writerAt = now
			w := p.v.writerOf(ctx, p.id, &facts.Veil{})
			p.mu.Lock()
			p.writer = w
			p.mu.Unlock()
		}
		if !p.look(ctx, r) {
			return
		}
		wait := followEvery
		if r != nil {
			wait = statusEvery
		}
		timer := time.NewTimer(wait)
		select {
		case <-p.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// look takes in what is new and tells it; then it rests, so that what comes
// meanwhile comes together. It is false when the session is gone.
func (p *pump) look(ctx context.Context, r *running) bool {
	err := p.s.Refresh(ctx)
	switch {
	case ctx.Err() != nil:
		return true
	case errors.Is(err, outcrop.ErrNotFound):
		p.mu.Lock()
		p.gone = true
		p.mu.Unlock()
		p.publish(func(*facts.Veil, mode) frame { return frame{rest: event("gone", "", []byte("{}"))} })
		return false
	case err != nil:
		p.v.log.Warn("a session cannot be followed", "session", p.id, "err", err)
		return true
	}
	if p.tell(r) {
		p.mu.Lock()
		n := 0
		for i := range p.modes {
			n += p.modes[i].listeners
		}
		p.mu.Unlock()
		timer := time.NewTimer(min(pause+time.Duration(n)*pauseEach, mostPause))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return true
}

// publish makes a frame for each mode that somebody listens to.
func (p *pump) publish(compose func(veil *facts.Veil, md mode) frame) {
	for md := range p.modes {
		p.mu.Lock()
		some := p.modes[md].listeners > 0
		p.mu.Unlock()
		if !some {
			continue
		}
		f := compose(&facts.Veil{Show: mode(md)&showSecrets != 0}, mode(md))
		if f.size() == 0 {
			continue
		}
		p.mu.Lock()
		st := &p.modes[md]
		st.frames = append(st.frames, f)
		st.bytes += f.size()
		for len(st.frames) > 1 && (len(st.frames) > mostFrames || st.bytes > mostKept) {
			st.bytes -= st.frames[0].size()
			st.frames[0] = frame{}
			st.frames = st.frames[1:]
			st.first++
		}
		if st.more != nil {
			close(st.more)
		}
		st.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// tell makes frames of what is new; false when nothing is.
func (p *pump) tell(r *running) bool {
	p.mu.Lock()
	from, was := p.at, p.durable
	statusWas, writer, open := p.status, p.writer, p.open
	fresh := false
	for i := range p.modes {
		fresh = fresh || p.modes[i].fresh
		p.modes[i].fresh = false
	}
	p.mu.Unlock()
	var rest []byte
	now := from
	reset := false
	durable := outcrop.Seq(-1)
	if r != nil {
		durable = r.Durable() - 1
	}
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		now = markOf(p.id, x, log, x.Len()-1)
		if reset = !from.holds(x, log); reset {
			p.draft.begin(x, log)
		} else {
			p.draft.add(log, from.seq+1, x.Len())
		}
	})
	if r == nil {
		durable = now.seq
	}
	if durable != was {
		rest = append(rest, event("durable", "", jsonwire.AppendInt([]byte(`{"seq":`), int64(durable)), []byte("}"))...)
	}
	status := "null"
	if r != nil {
		if b, err := jsonwire.Marshal(r.status()); err == nil {
			status = string(b)
		}
	}
	if status != statusWas {
		rest = append(rest, event("status", "", []byte(status))...)
	}
	var still []*question
	if r != nil {
		var gone []answered
		still, gone = r.asked.news()
		rest = append(rest, questions(r, open, still, gone)...)
	}
	p.mu.Lock()
	p.durable, p.status, p.open = durable, status, still
	p.mu.Unlock()
	rest = append(rest, p.writerEvent(writer)...)
	changed := now != from || reset || len(rest) > 0 || fresh || p.draft.dirty
	if !changed {
		return false
	}
	p.publish(func(veil *facts.Veil, md mode) frame {
		var f frame
		switch {
		case reset:
			f.parts = []part{{last: now.seq, reset: true, b: event("reset", now.String(), []byte(`{"reason":"log-changed","cursor":`), jsonwire.AppendString(nil, now.String()), []byte("}"))}}
		case now.seq > from.seq:
			f.parts = p.records(from.seq+1, now.seq, durable, veil)
		}
		if md&withDrafts != 0 {
			p.mu.Lock()
			was := p.modes[md].drafted
			p.mu.Unlock()
			b, blocks := p.draft.draftEvent(was, veil)
			f.rest = append(f.rest, b...)
			p.mu.Lock()
			p.modes[md].drafted = blocks
			p.mu.Unlock()
		}
		f.rest = append(f.rest, rest...)
		return f
	})
	p.mu.Lock()
	p.at = now
	p.mu.Unlock()
	p.draft.dirty = false
	return true
}

// questions tells which questions came and went.
func questions(r *running, before, now []*question, gone []answered) (b []byte) {
	for _, it := range now {
		known := false
		for _, old := range before {
			known = known || old == it
		}
		if !known {
			if q, err := jsonwire.Marshal(shown(it, r.Dir())); err == nil {
				b = append(b, event("question", "", q)...)
			}
		}
	}
	for _, g := range gone {
		if q, err := jsonwire.Marshal(g); err == nil {
			b = append(b, event("answered", "", q)...)
		}
	}
	return b
}

// writerEvent tells who writes the session, when that changed.
func (p *pump) writerEvent(w facts.Writer) []byte {
	b, err := jsonwire.Marshal(w)
	if err != nil || string(b) == p.writerTold {
		return nil
	}
	first := p.writerTold == ""
	if p.writerTold = string(b); first {
		return nil
	}
	return event("writer", "", b)
}

// record is an entry of the event list with what it changes.
type record struct {
	facts.Entry
	Durable    bool          `json:"durable"`
	Generation int           `json:"generation"`
	Nodes      int           `json:"nodes"`
	Items      int           `json:"items"`
	Appended   int           `json:"appended"`
	Item       *facts.Item   `json:"item"`
	FoldsFrom  *int          `json:"foldsFrom"`
	Shadowed   []outcrop.Seq `json:"shadowed"`
}

// batch stands for records that are not sent one by one.
type batch struct {
	First      outcrop.Seq `json:"first"`
	Last       outcrop.Seq `json:"last"`
	Rows       int         `json:"rows"`
	Items      int         `json:"items"`
	Appended   int         `json:"appended"`
	Nodes      int         `json:"nodes"`
	Generation int         `json:"generation"`
	Durable    bool        `json:"durable"`
	FoldsFrom  int         `json:"foldsFrom"`
}

// records are the events from first to last, as parts of a frame.
func (p *pump) records(first, last, durable outcrop.Seq, veil *facts.Veil) []part {
	type seen struct {
		row      facts.Row
		rec      record
		place    *facts.Place
		mark     mark
		shadowed []outcrop.Seq
	}
	var list []seen
	var many *batch
	var end mark
	var log outcrop.Log
	p.s.Read(func(x *folded.Index, l outcrop.Log) {
		log = l
		last = min(last, x.Len()-1)
		end = markOf(p.id, x, l, last)
		from, to := x.RowOf(first), x.RowOf(last)
		if to-from >= mostSingle {
			many = &batch{First: first, Last: last, Rows: len(x.Rows), Items: len(x.Visible), Appended: x.Forest.Columns(),
				Nodes: len(x.Forest.Surface()), Generation: x.Forest.Generation(), Durable: last <= durable, FoldsFrom: facts.FirstChanged(x, first)}
			return
		}
		for i := from; i <= to; i++ {
			c := seen{row: facts.RowAt(x, x.Rows[i].Seq)}
			seq := c.row.First()
			c.mark = markOf(p.id, x, l, min(c.row.Last(), last))
			if place, ok := facts.PlaceOf(x, seq, false); ok {
				c.place = &place
			}
			var folds *int
			if c.shadowed, folds = facts.EffectOf(x, seq); folds != nil {
				c.place = nil
			}
			c.rec = record{Durable: c.row.Last() <= durable, Generation: x.GenerationAt(seq), Nodes: len(x.Forest.Surface()),
				Items: len(x.Visible), Appended: x.Forest.Columns(), FoldsFrom: folds, Shadowed: c.shadowed}
			list = append(list, c)
		}
	})
	if many != nil {
		b, err := jsonwire.Marshal(many)
		if err != nil {
			return nil
		}
		return []part{{last: end.seq, b: event("batch", end.String(), b)}}
	}
	var parts []part
	reader := facts.Reader{Log: log, Veil: veil, Price: p.v.o.Price}
	for _, c := range list {
		c.rec.Entry = facts.EntryOf(log, c.row, false, veil)
		if c.place != nil {
			it := reader.Items([]facts.Place{*c.place})[0]
			c.rec.Item = &it
		}
		b, err := jsonwire.Marshal(c.rec)
		if err != nil {
			p.v.log.Error("a record cannot be written as JSON", "session", p.id, "err", err)
			continue
		}
		parts = append(parts, part{last: c.mark.seq, b: event("record", c.mark.String(), b)})
	}
	return parts
}

// event is one event of a stream. The data has no newline in it.
func event(name, id string, data ...[]byte) []byte {
	var b []byte
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	for _, d := range data {
		b = append(b, d...)
	}
	return append(b, "\n\n"...)
}
