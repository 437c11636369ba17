package exchange

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Fate is what became of a part of a foreign history.
type Fate string

const (
	Kept    Fate = "kept"    // it stands in the log with all that it said
	Mapped  Fate = "mapped"  // it stands there in another shape
	Dropped Fate = "dropped" // it does not
)

// Entry counts what shared a fate for one reason.
type Entry struct {
	Fate  Fate
	Kind  string // what it was: "reply", "image", "record progress"
	Why   string // in which shape, or why not; "" for what was kept
	Count int64
	Line  int64 // of the first one, from 1; 0: not known
}

// Report says what became of one source. A nil report hears nothing, so that
// what is read a second time is not counted twice. One goroutine uses it.
type Report struct {
	Path     string // of the source
	Program  string // name of the format
	Version  string // of the program that wrote it, "" when unknown
	Bytes    int64
	Sessions []Outcome
	Entries  []Entry
	Err      error // why the source, or a part of it, was skipped; nil when nothing was

	// Now is the clock, nil: there is none. See Unfinished.
	Now func() time.Time
	// Progress hears of bytes that were read for the first time; nil: nobody.
	Progress func(n int64)

	index map[Entry]int
}

// unfinished is how long after its last change a source may still be being
// written.
const unfinished = 5 * time.Minute

// Unfinished reports whether the program may still be writing a source that was
// changed at a time. Then its last reply may get more, and results of its calls
// may come: a format leaves that reply for the next import, and says so in
// Session.Unfinished. Without a clock every source is finished.
func (r *Report) Unfinished(changed time.Time) bool {
	if r == nil || r.Now == nil {
		return false
	}
	age := r.Now().Sub(changed)
	return age < unfinished && age > -unfinished // a time far ahead is no time of a change
}

// Advance says that n more bytes of the source were read.
func (r *Report) Advance(n int64) {
	if r != nil && r.Progress != nil {
		r.Progress(n)
	}
}

// Verdict says what an import did with a session.
type Verdict string

const (
	Imported  Verdict = "imported"  // as a new session
	Continued Verdict = "continued" // what is new was appended to the session of an earlier import
	Copied    Verdict = "copied"    // as a new session beside one that has its id and other content
	Present   Verdict = "present"   // it is there already
	Failed    Verdict = "failed"
)

// Outcome says what an import did with one session.
type Outcome struct {
	ID       string
	Source   string // what the program calls it
	Title    string
	Parent   string // id of the session that it came from, or ""
	Verdict  Verdict
	Why      string // for Copied, why it was not continued
	Events   int64  // stored by this import
	Turns    int    // in the session as it was made from the source
	Messages int64  // likewise
	Err      error
}

const maxEntries = 1000

func (r *Report) add(fate Fate, kind, why string, line, n int64) {
	if r == nil || n <= 0 {
		return
	}
	key := Entry{Fate: fate, Kind: kind, Why: why}
	if r.index == nil {
		r.index = map[Entry]int{}
	}
	i, ok := r.index[key]
	if !ok {
		if len(r.Entries) >= maxEntries { // a hostile source names no end of kinds
			key.Kind, key.Why = "other", ""
			if i, ok = r.index[key]; ok {
				r.Entries[i].Count += n
				return
			}
		}
		i = len(r.Entries)
		r.index[key] = i
		key.Line = line
		r.Entries = append(r.Entries, key)
	}
	r.Entries[i].Count += n
}

// Kept counts one thing that was kept.
func (r *Report) Kept(kind string) { r.add(Kept, kind, "", 0, 1) }

// Mapped counts one thing that was kept in another shape. line may be 0.
func (r *Report) Mapped(kind, how string, line int64) { r.add(Mapped, kind, how, line, 1) }

// Dropped counts one thing that was not kept. line may be 0.
func (r *Report) Dropped(kind, why string, line int64) { r.add(Dropped, kind, why, line, 1) }

// Add takes the entries of another report too, as of no certain line.
func (r *Report) Add(other *Report) {
	for _, e := range other.Entries {
		r.add(e.Fate, e.Kind, e.Why, 0, e.Count)
	}
}

// Total is the number of things with one fate.
func (r *Report) Total(fate Fate) int64 {
	if r == nil {
		return 0
	}
	var n int64
	for _, e := range r.Entries {
		if e.Fate == fate {
			n += e.Count
		}
	}
	return n
}

// Sorted are the entries: what was kept, then mapped, then dropped, each by
// kind.
func (r *Report) Sorted() []Entry {
	rank := map[Fate]int{Kept: 0, Mapped: 1, Dropped: 2}
	out := slices.Clone(r.Entries)
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(rank[a.Fate], rank[b.Fate]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Why, b.Why))
	})
	return out
}

// AppendJSON appends the report as one JSON object without the braces' schema
// member: {source, program, version?, bytes, error?, sessions, entries}.
func (r *Report) AppendJSON(dst []byte) []byte {
	dst = jsonwire.AppendStringMember(append(dst, '{'), "source", r.Path)
	dst = jsonwire.AppendStringMember(dst, "program", r.Program)
	if r.Version != "" {
		dst = jsonwire.AppendStringMember(dst, "version", r.Version)
	}
	dst = jsonwire.AppendIntMember(dst, "bytes", r.Bytes)
	if r.Err != nil {
		dst = jsonwire.AppendStringMember(dst, "error", r.Err.Error())
	}
	dst = append(jsonwire.AppendMember(dst, "sessions"), '[')
	for i := range r.Sessions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.Sessions[i].appendJSON(dst)
	}
	dst = append(jsonwire.AppendMember(append(dst, ']'), "entries"), '[')
	for i, e := range r.Sorted() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendStringMember(append(dst, '{'), "fate", string(e.Fate))
		dst = jsonwire.AppendStringMember(dst, "kind", e.Kind)
		if e.Why != "" {
			dst = jsonwire.AppendStringMember(dst, "why", e.Why)
		}
		dst = jsonwire.AppendIntMember(dst, "count", e.Count)
		if e.Line > 0 {
			dst = jsonwire.AppendIntMember(dst, "line", e.Line)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']', '}')
}

func (o *Outcome) appendJSON(dst []byte) []byte {
	dst = jsonwire.AppendStringMember(append(dst, '{'), "id", o.ID)
	dst = jsonwire.AppendStringMember(dst, "from", o.Source)
	if o.Title != "" {
		dst = jsonwire.AppendStringMember(dst, "title", o.Title)
	}
	if o.Parent != "" {
		dst = jsonwire.AppendStringMember(dst, "parent", o.Parent)
	}
	dst = jsonwire.AppendStringMember(dst, "verdict", string(o.Verdict))
	if o.Why != "" {
		dst = jsonwire.AppendStringMember(dst, "why", o.Why)
	}
	dst = jsonwire.AppendIntMember(dst, "events", o.Events)
	dst = jsonwire.AppendIntMember(dst, "turns", int64(o.Turns))
	dst = jsonwire.AppendIntMember(dst, "messages", o.Messages)
	if o.Err != nil {
		dst = jsonwire.AppendStringMember(dst, "error", o.Err.Error())
	}
	return append(dst, '}')
}

// String is an entry in one line.
func (e Entry) String() string {
	s := fmt.Sprintf("%s %d %s", e.Fate, e.Count, e.Kind)
	if e.Why != "" {
		s += ": " + e.Why
	}
	if e.Line > 0 {
		s += fmt.Sprintf(" (first in line %d)", e.Line)
	}
	return s
}
