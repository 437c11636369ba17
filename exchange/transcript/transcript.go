// Package transcript reads a log as a conversation: what the exports for people
// (Markdown, HTML) print. It reads the log twice and keeps neither time more
// than one step of it, so that a log of any size can be exported.
//
// # What a conversation is
//
// Messages that were appended to the surface, in the order of the log, whatever
// a history edit covered later; each result under its call; a line where a turn
// begins and where it ended other than completed; and one item for each history
// edit, with the text of a summary. What a rewind took away is one item with a
// count, or with Options.Rewound the messages themselves.
//
// # What is masked
//
// All texts, names of files and titles, by package masking, unless Options.Raw.
//
// A log that is damaged is read up to the damage, see Transcript.Damage.
package transcript

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/masking"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Source is a session to read. Its methods may be called several times.
type Source interface {
	// Open opens the log for one pass. Events may come behind what an earlier
	// pass saw; nothing else changes.
	Open(ctx context.Context) (store.Stored, error)
	// Objects are the attachments that the log names; nil when there are none.
	Objects() store.Objects
}

// Stored is a session of a store.
func Stored(st store.Store, id string) Source { return stored{st, id} }

type stored struct {
	st store.Store
	id string
}

func (s stored) Open(ctx context.Context) (store.Stored, error) { return s.st.Read(ctx, s.id) }
func (s stored) Objects() store.Objects                         { return store.ObjectsOf(s.st) }

// Options say which part of a session is wanted; the zero value means all of it,
// masked.
type Options struct {
	Raw bool // mask nothing
	// Before leaves out the events from this seq on; 0 leaves out none.
	Before outcrop.Seq
	// From and Since leave out what came before an event, or before a time in
	// Unix milliseconds.
	From  outcrop.Seq
	Since int64
	// FirstTurn and LastTurn are the turns that are wanted, 0 for no bound.
	FirstTurn, LastTurn int
	// Rewound shows what a rewind took away.
	Rewound bool
}

// Kind says what an item is.
type Kind uint8

// The kinds of items.
const (
	Message Kind = iota // Who said Blocks
	Turn                // the turn begins
	TurnEnd             // it ended otherwise than completed: Text
	Edit                // a history edit: Text, and Blocks of a summary
	Gone                // Count messages that a rewind took away
)

// Who speaks in a message.
type Who string

// The speakers.
const (
	User      Who = "user"
	Assistant Who = "assistant"
	Result    Who = "result" // of a call that is not near: most results stand at their calls
	Context   Who = "context"
)

// Item is one thing of a conversation.
type Item struct {
	Kind        Kind
	Seq         outcrop.Seq
	Time        int64 // Unix milliseconds
	Turn        int   // 0 outside of turns
	Who         Who
	Model       string // of a reply, PROVIDER:MODEL
	Interrupted bool
	Blocks      []Block
	Text        string
	Count       int
}

// Block is a part of a message.
type Block struct {
	Type      message.BlockType
	Text      string
	CallID    string
	Name      string // of the tool, or of an image's file
	Arguments string // of a call, as the model wrote them
	Result    *Answer
	Image     Image
}

// Answer is the result of a call.
type Answer struct {
	Seq     outcrop.Seq
	Time    int64
	IsError bool
	Blocks  []Block
}

// Image is what a log says of an image. ID names its bytes among the objects.
type Image struct {
	ID, MediaType string
	Width, Height int64
}

// Transcript is a session of which the first pass is done.
type Transcript struct {
	Header   outcrop.Header
	Title    string // masked, "" when there is none
	Given    bool   // somebody gave the title
	Cwd      string // masked
	Models   []string
	Updated  int64 // time of the last event, 0 in an empty log
	Events   int
	Turns    int
	Messages int
	OpenTurn bool
	Tail     store.Tail
	// Damage is why the log could not be read to its end, or to Before; nil
	// when it could. What came before it is in the transcript.
	Damage error

	src  Source
	o    Options
	gone map[outcrop.Seq]bool
	mask masking.Masker
}

// Read makes the first pass. The error is that of opening, or of ctx.
func Read(ctx context.Context, src Source, o Options) (*Transcript, error) {
	t := &Transcript{src: src, o: o, mask: masking.Masker{Raw: o.Raw}}
	sd, err := src.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer sd.Close()
	t.Header = sd.Header()
	s := scan{t: t}
	for r, err := range records.Through(ctx, sd.Records(), o.Before-1) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			t.Damage = store.Located(err, sd)
			break
		}
		s.add(&r)
	}
	if o.Before <= 0 || outcrop.Seq(t.Events) < o.Before {
		t.Tail = sd.Tail()
	} else {
		t.Events = int(o.Before) // a row may go on behind it
	}
	s.end()
	// What the masker counts is what an item shows: not these.
	t.mask.Found = 0
	return t, nil
}

// Masked is how many places were masked in the items so far.
func (t *Transcript) Masked() int { return t.mask.Found }

// Why says in words what is wrong with a damaged log, without the place of its
// file, which is nobody's business who reads the export.
func (t *Transcript) Why() string {
	var e *outcrop.Error
	if errors.As(t.Damage, &e) && (e.Msg != "" || e.Code != "") {
		return t.mask.Text(strings.TrimSpace(e.Msg + " " + string(e.Code)))
	}
	return "it cannot be read"
}

// Objects are the attachments of the session, nil when it has none.
func (t *Transcript) Objects() store.Objects { return t.src.Objects() }

// Items makes the second pass. The errors are those of reading: damage behind
// what the first pass saw is none.
func (t *Transcript) Items(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		sd, err := t.src.Open(ctx)
		if err != nil {
			yield(Item{}, err)
			return
		}
		defer sd.Close()
		w := walk{t: t, yield: yield}
		for r, err := range sd.Records() {
			if ctx.Err() != nil {
				yield(Item{}, ctx.Err())
				return
			}
			if err == nil && int(r.Seq) >= t.Events {
				break
			}
			if err != nil {
				if t.Damage == nil {
					yield(Item{}, store.Located(err, sd))
					return
				}
				break
			}
			if r.Run == nil && !w.event(&r.Event) {
				return
			}
			if int(r.Last())+1 >= t.Events {
				break
			}
		}
		w.end()
	}
}
