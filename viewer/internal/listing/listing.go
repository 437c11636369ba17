// Package listing keeps the list of a store's sessions for who looks at it again
// and again, with what only whole logs tell: those are read in the background,
// one after the other, the newest first.
//
// A listing is used for a moment, longer where it takes long. A log that grows is
// read anew after a while, so that a huge session that somebody works in is not
// read all the time.
package listing

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

// Options of a List. Spawn starts a function in the background, until its ctx
// ends; false when nothing is started any more.
type Options struct {
	Store store.Store
	Price usage.Price // nil: no prices are known
	Spawn func(f func(ctx context.Context)) bool
}

const (
	// listEvery is how old a listing may be, and listShare how much of the time
	// listings may take: a store with many sessions is looked at more rarely.
	listEvery = time.Second
	listShare = 10
	// learnEvery and learnShare are the same for reading one log that grows.
	learnEvery = 5 * time.Second
	learnShare = 50
	// MostSessions is the longest page of the list, mostFamily the largest
	// family.
	MostSessions = 500
	mostFamily   = 1000
	// mostKnown is how many sessions are remembered.
	mostKnown = 100_000
)

// List keeps the list of sessions and reads, in the background, what only
// whole logs tell.
type List struct {
	o Options

	listing sync.Mutex // held by the one who lists

	mu       sync.Mutex
	infos    []store.Info
	at       time.Time // of the listing
	took     time.Duration
	valid    bool
	known    map[string]*known
	learning bool
}

// Stamp tells whether a stored log is the one that was read.
type Stamp struct {
	bytes, updated int64
	state          store.State
}

func stampOf(in *store.Info) Stamp { return Stamp{in.Bytes, in.UpdatedAt, in.State} }

// known is what a whole log told.
type known struct {
	stamp  Stamp
	at     time.Time // when it was read
	took   time.Duration
	title  string
	turns  int
	events int64
	model  string
	tags   []string
	sum    usage.Sum
}

// New makes a list that knows nothing yet.
func New(o Options) *List { return &List{o: o, known: map[string]*known{}} }

// Forget makes the next question list anew.
func (l *List) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.valid = false
}

// Infos is the list of sessions, not older than a moment.
func (l *List) Infos(ctx context.Context) ([]store.Info, error) {
	l.listing.Lock()
	defer l.listing.Unlock()
	l.mu.Lock()
	if l.valid && time.Since(l.at) < max(listEvery, listShare*l.took) {
		defer l.mu.Unlock()
		return l.infos, nil
	}
	l.mu.Unlock()
	began := time.Now()
	infos, err := l.o.Store.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.infos, l.at, l.took, l.valid = infos, time.Now(), time.Since(began), true
	return infos, nil
}

// Info is the entry of one session.
func (l *List) Info(ctx context.Context, id string) (store.Info, bool) {
	infos, err := l.Infos(ctx)
	if err != nil {
		return store.Info{}, false
	}
	i := slices.IndexFunc(infos, func(in store.Info) bool { return in.ID == id })
	if i < 0 {
		return store.Info{}, false
	}
	return infos[i], true
}

// Stamps are those of all sessions.
func (l *List) Stamps() map[string]Stamp {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]Stamp, len(l.infos))
	for i := range l.infos {
		out[l.infos[i].ID] = stampOf(&l.infos[i])
	}
	return out
}

// Changed tells what two listings differ in, in order.
func Changed(before, now map[string]Stamp) (ids, removed []facts.Text) {
	ids, removed = []facts.Text{}, []facts.Text{}
	for id, s := range now {
		if was, ok := before[id]; !ok || was != s {
			ids = append(ids, facts.Text(id))
		}
	}
	for id := range before {
		if _, ok := now[id]; !ok {
			removed = append(removed, facts.Text(id))
		}
	}
	slices.Sort(ids)
	slices.Sort(removed)
	return ids, removed
}

// due is the newest session whose log is to be read. l.mu is held.
func (l *List) due() (store.Info, bool) {
	for _, in := range l.infos {
		if in.ID == "" || in.State == store.StateNewer {
			continue
		}
		k := l.known[in.ID]
		if k == nil && len(l.known) < mostKnown || k != nil && k.stamp != stampOf(&in) && time.Since(k.at) > max(learnEvery, learnShare*k.took) {
			return in, true
		}
	}
	return store.Info{}, false
}

// pending is how many logs are still to be read. l.mu is held.
func (l *List) pending() (n int) {
	for i := range l.infos {
		if in := &l.infos[i]; in.ID != "" && in.State != store.StateNewer && l.known[in.ID] == nil && len(l.known) < mostKnown {
			n++
		}
	}
	return n
}

// learn reads logs, one after the other, until nothing is due. l.mu is held.
func (l *List) learn() {
	if _, some := l.due(); !some || l.learning {
		return
	}
	l.learning = true
	go func() {
		if !l.o.Spawn(l.learnAll) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.learning = false
		}
	}()
}

func (l *List) learnAll(ctx context.Context) {
	for {
		l.mu.Lock()
		in, some := l.due()
		if !some || ctx.Err() != nil {
			l.learning = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		began := time.Now()
		k := l.read(ctx, in.ID)
		k.stamp, k.at, k.took = stampOf(&in), time.Now(), time.Since(began)
		l.mu.Lock()
		l.known[in.ID] = k
		l.mu.Unlock()
	}
}

// read reads a whole log, as far as it is good.
func (l *List) read(ctx context.Context, id string) *known {
	k := &known{turns: -1, events: -1}
	sd, err := l.o.Store.Read(ctx, id)
	if err != nil {
		return k
	}
	defer sd.Close()
	var sum store.Summary
	tags := map[string]bool{}
	scan := usage.NewScan(sd.Header(), l.o.Price, func(c usage.Call) {
		if c.Model != "" {
			k.model = c.Provider + ":" + c.Model
		}
		if !c.Inherited {
			k.sum.Add(&c)
		}
	})
	for r, err := range sd.Records() {
		if err != nil || ctx.Err() != nil {
			break
		}
		sum.Add(r)
		scan.Add(r)
		if r.Type == outcrop.TypeOutcropTag {
			if tag, set, ok := collection.ParseTag(r.Data); ok {
				tags[tag] = set
			}
		}
	}
	scan.End()
	k.title, k.turns, k.events = sum.Title, sum.Turns, int64(sum.Events)
	for tag, set := range tags {
		if set {
			k.tags = append(k.tags, tag)
		}
	}
	slices.Sort(k.tags)
	return k
}

// Entry is a session in the list.
type Entry struct {
	ID        facts.Text   `json:"id"`
	Title     *facts.Text  `json:"title"`
	Cwd       *facts.Text  `json:"cwd"`
	CreatedAt int64        `json:"createdAt"`
	UpdatedAt int64        `json:"updatedAt"`
	Events    *int64       `json:"events"`
	Turns     *int         `json:"turns"`
	Bytes     int64        `json:"bytes"`
	State     string       `json:"state"`
	Reason    *facts.Text  `json:"reason"`
	Parent    *facts.Text  `json:"parent"`
	Depth     int64        `json:"depth"`
	Origin    *facts.Text  `json:"origin"`
	Model     *facts.Text  `json:"model"`
	Tokens    *facts.Sum   `json:"tokens"`
	Cost      *int64       `json:"costMicroUSD"`
	Unpriced  int64        `json:"unpriced"`
	Tags      []facts.Text `json:"tags"`
	Starred   bool         `json:"starred"`
	Here      bool         `json:"here"`
}

// Row is an entry before it is shown.
type Row struct {
	in   store.Info
	k    *known // nil when the log was not read yet
	here bool
}

func (r *Row) title() string {
	if r.k != nil && r.k.title != "" {
		return r.k.title
	}
	return r.in.Title
}

func (r *Row) parent() string {
	if p := r.in.Header.ParentSession; p != nil {
		return *p
	}
	return ""
}

// Rows are all sessions with what is known of them, those that here names as
// written by this process, and how many logs are still to be read. What is not
// known yet is read from now on.
func (l *List) Rows(ctx context.Context, here map[string]bool) (list []Row, pending int, err error) {
	infos, err := l.Infos(ctx)
	if err != nil {
		return nil, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learn()
	list = make([]Row, len(infos))
	for i, in := range infos {
		list[i] = Row{in, l.known[in.ID], here[in.ID]}
	}
	return list, l.pending(), nil
}

func (r *Row) shown(veil *facts.Veil) Entry {
	in := &r.in
	e := Entry{ID: facts.Text(in.ID), Title: veil.LineOrNil(r.title()), Cwd: veil.LineOrNil(in.Cwd), CreatedAt: in.CreatedAt, UpdatedAt: in.UpdatedAt,
		Bytes: in.Bytes, State: string(in.State), Reason: veil.LineOrNil(in.Reason), Parent: veil.LineOrNil(r.parent()), Depth: in.Header.DelegationDepth,
		Origin: veil.LineOrNil(in.Header.Origin), Tags: []facts.Text{}, Here: r.here}
	if e.ID == "" {
		e.ID = facts.Text(in.Path) // nothing else names what cannot be read
	}
	if in.Events >= 0 {
		e.Events = &in.Events
	}
	if in.Turns >= 0 {
		e.Turns = &in.Turns
	}
	k := r.k
	if k == nil {
		return e
	}
	if e.Events == nil && k.events >= 0 {
		e.Events = &k.events
	}
	if e.Turns == nil && k.turns >= 0 {
		e.Turns = &k.turns
	}
	if k.events < 0 {
		return e
	}
	sum := facts.SumOf(&k.sum)
	e.Model, e.Tokens, e.Cost, e.Unpriced = veil.LineOrNil(k.model), &sum, facts.CostOf(&k.sum), k.sum.Unpriced
	for _, t := range k.tags {
		if t == collection.Star {
			e.Starred = true
			continue
		}
		e.Tags = append(e.Tags, veil.Line(t))
	}
	return e
}

// Filter says which sessions are asked for.
type Filter struct {
	Words  []string // in lower case; each must stand somewhere
	States []string
	Cwd    string // or a folder below it
	Tag    string
	Parent string
}

func (f *Filter) fits(r *Row) bool {
	if f.Cwd != "" && r.in.Cwd != f.Cwd && !strings.HasPrefix(r.in.Cwd, strings.TrimSuffix(f.Cwd, "/")+"/") {
		return false
	}
	if f.Parent != "" && r.parent() != f.Parent {
		return false
	}
	if len(f.States) > 0 && !slices.Contains(f.States, string(r.in.State)) && !(r.here && slices.Contains(f.States, "here")) {
		return false
	}
	var tags []string
	model := ""
	if r.k != nil {
		tags, model = r.k.tags, r.k.model
	}
	if f.Tag != "" && !slices.Contains(tags, f.Tag) {
		return false
	}
	if len(f.Words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{r.title(), r.in.ID, r.in.Cwd, model, strings.Join(tags, " "), r.in.Reason}, "\n"))
	return !slices.ContainsFunc(f.Words, func(w string) bool { return !strings.Contains(text, w) })
}

// ErrCursor: a text that is no cursor.
var ErrCursor = errors.New("cursor: give the one of the page before")

// Place is a place in the list, which goes from new to old.
type Place struct {
	updated  int64
	id, path string
}

func placeOf(in *store.Info) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(in.UpdatedAt, 10) + "\x00" + in.ID + "\x00" + in.Path))
}

// ParsePlace reads a cursor; nil for "".
func ParsePlace(text string) (*Place, error) {
	if text == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.Split(string(b), "\x00")
	if err != nil || len(parts) != 3 {
		return nil, ErrCursor
	}
	n, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return nil, ErrCursor
	}
	return &Place{n, parts[1], parts[2]}, nil
}

// before reports whether an entry stands behind the place, in the order of
// store.SortInfos.
func (p *Place) before(in *store.Info) bool {
	if in.UpdatedAt != p.updated {
		return in.UpdatedAt < p.updated
	}
	if in.ID != p.id {
		return in.ID > p.id
	}
	return in.Path > p.path
}

// Page is a page of the list.
type Page struct {
	facts.Schema
	Total    int     `json:"total"`
	Cursor   *string `json:"cursor"`
	Pending  int     `json:"pending"`
	Masked   int     `json:"masked"`
	Sessions []Entry `json:"sessions"`
}

// PageOf is the page of those rows that fit, behind a place.
func PageOf(rows []Row, f Filter, behind *Place, limit int, veil *facts.Veil) Page {
	out := Page{Schema: facts.V1, Sessions: []Entry{}}
	more := false
	for i := range rows {
		r := &rows[i]
		if !f.fits(r) {
			continue
		}
		out.Total++
		switch {
		case behind != nil && !behind.before(&r.in):
		case len(out.Sessions) < limit:
			out.Sessions = append(out.Sessions, r.shown(veil))
			last := placeOf(&r.in)
			out.Cursor = &last
		default:
			more = true
		}
	}
	if !more {
		out.Cursor = nil
	}
	out.Masked = veil.Masked
	return out
}

// FamilyOf is the family of a session: its oldest ancestor that is there, and
// all that descend from it. ok is false when there is no such session.
func FamilyOf(rows []Row, id string, veil *facts.Veil) (out Page, ok bool) {
	by := make(map[string]*Row, len(rows))
	children := map[string][]*Row{}
	for i := range rows {
		r := &rows[i]
		if r.in.ID == "" {
			continue
		}
		by[r.in.ID] = r
		if p := r.parent(); p != "" {
			children[p] = append(children[p], r)
		}
	}
	if by[id] == nil {
		return out, false
	}
	// Headers may name each other in a circle.
	root := id
	for up := map[string]bool{}; by[id] != nil && !up[id]; id = by[id].parent() {
		up[id], root = true, id
	}
	out = Page{Schema: facts.V1, Sessions: []Entry{}}
	seen := map[string]bool{}
	for stack := []*Row{by[root]}; len(stack) > 0; {
		r := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[r.in.ID] {
			continue
		}
		seen[r.in.ID] = true
		if out.Total++; len(out.Sessions) < mostFamily {
			out.Sessions = append(out.Sessions, r.shown(veil))
		}
		stack = append(stack, children[r.in.ID]...)
	}
	out.Masked = veil.Masked
	return out, true
}
