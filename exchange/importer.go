package exchange

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// Importer stores what sources hold. One goroutine uses it; see ImportAll for
// what it does on others.
type Importer struct {
	Store store.Store
	// Cwd maps working directories; nil: they stay as they are.
	Cwd func(string) string
	// DryRun says what would be done and stores nothing.
	DryRun bool
	// State remembers sources from one run to the next; nil: nothing is
	// remembered, and every source is read and compared.
	State *State
	// Now is the clock, by which a source that a program is still writing is
	// known; nil: every source is finished.
	Now func() time.Time
	// Progress hears of bytes of sources that are dealt with, one call at a time;
	// nil: nobody.
	Progress func(n int64)

	mu  sync.Mutex            // guards ids, and calls Progress one at a time
	ids map[[2]string][]noted // program and Source -> id under which it was stored

	// A session is stored by one goroutine at a time. Who has it waits for nobody.
	busy [64]sync.Mutex
}

// noted is the id under which a session was stored, and which of the sources
// that are imported together it came from.
type noted struct {
	id string
	at int
}

// maxCopies is how many sessions with other content may stand beside one.
const maxCopies = 1000

// Import takes one source over and says what became of it. Report.Err is why
// the source, or the rest of it, was skipped; sessions that are complete stay.
// The error is about the importer itself: the context, the store.
func (im *Importer) Import(ctx context.Context, src Source) (*Report, error) {
	return im.source(ctx, src, place{})
}

// place is where a source stands among those that are imported together.
type place struct {
	at int
	// named waits for the sources before it that a session is named after; nil:
	// all of them are done.
	named func(session string)
}

func (im *Importer) source(ctx context.Context, src Source, p place) (*Report, error) {
	r := &Report{Path: src.Path, Program: src.Format, Bytes: src.Size, Now: im.Now}
	unfinished := false
	var told int64
	r.Progress = func(n int64) {
		n = min(n, max(src.Size-told, 0))
		if told += n; im.Progress != nil && n > 0 {
			im.mu.Lock()
			im.Progress(n)
			im.mu.Unlock()
		}
	}
	defer func() { r.Progress(src.Size) }()
	if src.Stamp == nil {
		src.Stamp = func() (string, error) { return FileStamp(src.Path) }
	}
	stamp, err := src.Stamp()
	if err != nil {
		r.Err = problem(src.Path, 0, -1, err, "")
		return r, nil
	}
	if known := im.remembered(ctx, src, stamp, p); known != nil {
		r.Sessions = known
		return r, nil
	}
	for s, err := range src.Sessions(ctx, r) {
		if err == nil {
			if r.Version == "" {
				r.Version = s.Version
			}
			unfinished = unfinished || s.Unfinished
			var o Outcome
			o, err = im.session(ctx, s, r, p)
			r.Sessions = append(r.Sessions, o)
		}
		if err != nil {
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			if r.Err == nil {
				r.Err = im.located(err, src)
			}
			if s == nil || !errors.Is(err, outcrop.ErrDamaged) && !errors.Is(err, outcrop.ErrRefused) && !errors.Is(err, outcrop.ErrUnsupported) {
				break
			}
			// It is that session that cannot be taken over; the others can.
			r.Sessions[len(r.Sessions)-1].Err = err
		}
	}
	if r.Err == nil && len(r.Sessions) == 0 && r.Total(Dropped) == 0 {
		r.Dropped("source", "it holds no conversation", 0)
	}
	if r.Err == nil && !unfinished && !im.DryRun && im.State != nil {
		im.State.remember(im.Store.Address(), src, stamp, r.Sessions)
	}
	return r, nil
}

// located names the source in an error that has no place yet.
func (im *Importer) located(err error, src Source) error {
	var e *outcrop.Error
	if errors.As(err, &e) && e.Path != "" {
		return err
	}
	return fmt.Errorf("%s: %w", src.Path, err)
}

// remembered is what an earlier run made of a source that did not change, when
// all of that is still there.
func (im *Importer) remembered(ctx context.Context, src Source, stamp string, p place) []Outcome {
	if im.State == nil || stamp == "" {
		return nil
	}
	known := im.State.find(im.Store.Address(), src, stamp)
	for i := range known {
		sd, err := im.Store.Read(ctx, known[i].ID)
		if err != nil {
			return nil
		}
		sd.Close()
		im.note(src.Format, known[i].Source, known[i].ID, p)
	}
	return known
}

func (im *Importer) note(program, source, id string, p place) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.ids == nil {
		im.ids = map[[2]string][]noted{}
	}
	// In the order of the sources, which need not be that in which they end.
	key := [2]string{program, source}
	at, found := slices.BinarySearchFunc(im.ids[key], p.at, func(n noted, at int) int { return n.at - at })
	if found {
		im.ids[key][at].id = id
		return
	}
	im.ids[key] = slices.Insert(im.ids[key], at, noted{id, p.at})
}

// parent is what the program calls the session that this one came from; "": none.
func (s *Session) parent() string {
	if s.Log != nil && s.Log.Header.ParentSession != nil {
		return *s.Log.Header.ParentSession
	}
	return s.Parent
}

// noted is the id under which a session was stored that another one came from:
// of several sources that have it, the last one up to p counts.
func (im *Importer) noted(program, source string, p place) (string, bool) {
	im.mu.Lock()
	defer im.mu.Unlock()
	all := im.ids[[2]string{program, source}]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].at <= p.at {
			return all[i].id, true
		}
	}
	return "", false
}

// session stores one session, or finds that it is there.
func (im *Importer) session(ctx context.Context, s *Session, r *Report, p place) (Outcome, error) {
	o := Outcome{Source: s.Source, Title: s.Title, Verdict: Failed}
	if p.named != nil {
		p.named(s.parent())
	}
	busy := &im.busy[crc32.ChecksumIEEE([]byte(s.ID()))%uint32(len(im.busy))]
	busy.Lock()
	defer busy.Unlock()
	opts := Options{Cwd: im.Cwd, Objects: store.ObjectsOf(im.Store), Report: r}
	if im.DryRun && opts.Objects != nil {
		opts.Objects = Measure
	}
	opts.ParentID = func(source string) string {
		if id, ok := im.noted(s.Program, source, p); ok {
			return id
		}
		if s.Log != nil {
			return source // it has the id that it always had
		}
		return IDFor(s.Program, source)
	}
	waits := 0
	for n := 0; n < maxCopies; n++ {
		opts.ID = s.ID()
		if n > 0 {
			opts.ID = DerivedID(s.Program, s.ID(), strconv.Itoa(n))
		}
		o.ID = opts.ID
		h, err := s.Header(ctx, opts)
		if err != nil {
			return o, err
		}
		if h.ParentSession != nil {
			o.Parent = *h.ParentSession
		}
		st, err := im.Store.Read(ctx, opts.ID)
		if errors.Is(err, outcrop.ErrNotFound) {
			err = im.create(ctx, s, h, opts, &o)
			if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrLocked) && im.patient(ctx, &waits) { // somebody was faster
				opts.Report, n = nil, n-1
				continue
			}
			if err == nil {
				if o.Verdict = Imported; n > 0 {
					o.Verdict = Copied
				}
				im.note(s.Program, s.Source, o.ID, p)
			}
			return o, err
		}
		if err != nil {
			o.Why = "the session " + opts.ID + " cannot be read"
			continue
		}
		cuts, err := marks(st)
		st.Close()
		if err != nil {
			o.Why = "the session " + opts.ID + " cannot be read to its end"
			continue
		}
		opts.cuts = cuts
		got, err := im.compare(ctx, s, h, opts, &o)
		opts.cuts, opts.Report = nil, nil
		if err != nil {
			return o, err
		}
		if got.differs {
			o.Why = got.why
			continue
		}
		o.Verdict, o.Why = Present, ""
		if got.more > 0 {
			opts.cuts = cuts
			if err := im.goOn(ctx, s, h, opts, got, &o); err != nil {
				o.Verdict = Failed
				return o, err
			}
			o.Verdict = Continued
		}
		im.note(s.Program, s.Source, o.ID, p)
		return o, nil
	}
	return o, &outcrop.Error{Op: "import", Session: s.ID(), Seq: -1, Offset: -1, Err: store.ErrExists,
		Msg: fmt.Sprintf("there are %d sessions of this history already, each with other content", maxCopies), Hint: "remove some"}
}

// patient waits a little for another import that stores a session just now. It
// reports whether that may still end: whoever holds a session for long works in it.
func (im *Importer) patient(ctx context.Context, waits *int) bool {
	if *waits++; *waits > maxWaits {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

const (
	pause    = 50 * time.Millisecond
	maxWaits = 200
)

// counted passes records on and counts what a report says of them.
func counted(recs iter.Seq2[outcrop.Record, error], o *Outcome) iter.Seq2[outcrop.Record, error] {
	o.Events, o.Turns, o.Messages = 0, 0, 0
	return func(yield func(outcrop.Record, error) bool) {
		for r, err := range recs {
			if err == nil {
				o.Events = int64(r.Last()) + 1
				switch {
				case r.Run != nil:
				case r.Type == outcrop.TypeTurnStart:
					o.Turns++
				case r.Type.Surface():
					o.Messages++
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// create stores a session whose id is free.
func (im *Importer) create(ctx context.Context, s *Session, h outcrop.Header, opts Options, o *Outcome) error {
	recs := counted(s.Records(ctx, h, opts), o)
	bytes, verbatim := im.Store.(store.BytesPutter)
	verbatim = verbatim && s.Log != nil && s.Log.Bytes != nil && string(h.Line()) == string(s.Log.Header.Line())
	if !im.DryRun && !verbatim {
		return im.Store.Put(ctx, h, recs)
	}
	for _, err := range recs { // counts, and stores attachments before what names them
		if err != nil {
			return err
		}
	}
	if im.DryRun {
		return nil
	}
	r, ending, digest, err := s.Log.Bytes()
	if err != nil {
		return err
	}
	defer r.Close()
	if taken, err := bytes.PutBytes(ctx, h, ending, r, digest); taken || err != nil {
		return err
	}
	return im.Store.Put(ctx, h, s.Records(ctx, h, opts))
}

// isMark reports the end of an import.
func isMark(r outcrop.Record) bool { return r.Run == nil && r.Type == outcrop.TypeOutcropImport }

// marks are the places where earlier imports of a stored session ended.
func marks(st store.Stored) ([]cut, error) {
	var cuts []cut
	for r, err := range st.Records() {
		if err != nil {
			return nil, err
		}
		if isMark(r) {
			if n, ok := number(r.Data, "items"); ok {
				cuts = append(cuts, cut{items: n, data: slices.Clone(r.Data)})
			}
		}
	}
	return cuts, nil
}

// compared is how a stored session relates to a source.
type compared struct {
	differs bool
	why     string
	stored  int64 // events that are stored
	more    int64 // events of the source that are not
	digest  string
}

// compare makes the log of a source once more, with the marks that the stored
// one has, and holds it against that.
func (im *Importer) compare(ctx context.Context, s *Session, h outcrop.Header, opts Options, o *Outcome) (compared, error) {
	st, err := im.Store.Read(ctx, h.ID)
	if err != nil {
		return compared{}, err
	}
	defer st.Close()
	opts.Objects = measuring(opts.Objects)
	next, stop := iter.Pull2(st.Records())
	defer stop()
	var c compared
	var a, b []byte
	var sum store.Digest
	ended, mark := false, false // mark: what was compared last is the end of an import
	for r, err := range counted(s.Records(ctx, h, opts), o) {
		if err != nil {
			return c, err
		}
		if c.differs {
			continue // to its end, so that the report is whole
		}
		if !ended {
			have, err, ok := next()
			switch {
			case !ok:
				ended = true
			case err != nil:
				c.differs, c.why = true, "the session "+h.ID+" is damaged"
				continue
			default:
				a, b = appendRecord(a[:0], r), appendRecord(b[:0], have)
				if string(a) != string(b) {
					c.differs = true
					c.why = fmt.Sprintf("the session %s has other content from event %d on", h.ID, c.stored)
					continue
				}
				sum.Add(have)
				c.stored, mark = int64(have.Last())+1, isMark(have)
				continue
			}
		}
		c.more++
	}
	if !ended && !c.differs && !s.Unfinished {
		// What is behind may come from a later state of the source: this one, which
		// ends where an import ended, is all there then.
		goesOn, last := false, false
		for {
			have, err, ok := next()
			if !ok || err != nil {
				break
			}
			goesOn, last = true, isMark(have)
		}
		if goesOn && !(mark && last) {
			c.differs, c.why = true, fmt.Sprintf("the session %s went on after event %d", h.ID, c.stored)
		}
	}
	c.digest = sum.Sum()
	o.Events = 0
	return c, nil
}

func appendRecord(dst []byte, r outcrop.Record) []byte {
	if r.Run == nil {
		return r.AppendJSON(dst)
	}
	for e := range r.Run.Events() {
		dst = append(e.AppendJSON(dst), '\n')
	}
	return dst
}

// measuring are attachments that are named and not stored again: those of a
// session that is there were stored with it.
func measuring(o store.Objects) store.Objects {
	if o == nil {
		return nil
	}
	return Measure
}

const batchBytes = 1 << 20

// goOn appends what a source has more than the stored session.
func (im *Importer) goOn(ctx context.Context, s *Session, h outcrop.Header, opts Options, c compared, o *Outcome) (err error) {
	o.Events = c.more
	if im.DryRun {
		return nil
	}
	lease, err := im.Store.Acquire(ctx, h.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Close()) }()
	var sum store.Digest
	for r, err := range lease.Records() {
		if err != nil {
			return err
		}
		sum.Add(r)
	}
	if int64(sum.Len()) != c.stored || sum.Sum() != c.digest {
		return store.Problem("import", h.ID, store.ErrMoved, "the session changed while it was compared", "import again")
	}
	// Events that were saved from a torn tail are stored again.
	from := outcrop.Seq(c.stored) - outcrop.Seq(lease.Tail().Recovered)
	var batch []outcrop.Record
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := lease.Append(ctx, slices.Values(batch))
		batch, size = batch[:0], 0
		return err
	}
	for r, err := range s.Records(ctx, h, opts) {
		if err != nil {
			return err
		}
		if r.Seq < from {
			continue
		}
		batch = append(batch, r)
		if size += len(r.Data); size >= batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return lease.Sync(ctx)
}
