package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// parse reads a stored message and says where it stands.
func (lk *link) parse(r raw, stream string, bodyless bool) (message, error) {
	m, err := parseMessage(r.Header, r.Data, bodyless)
	if err != nil {
		return m, ofMessage(stream, r.Seq, err)
	}
	m.Stream, m.Stored, m.Subject = stream, r.Seq, r.Subject
	return m, nil
}

// lastMessage is the last message of a session, from the leader. errNoMessage
// when it has none; outcrop.ErrDamaged when it cannot be read.
func (lk *link) lastMessage(ctx context.Context, id string) (message, error) {
	stream := lk.realm.stream(lk.realm.shard(id))
	r, err := lk.last(ctx, stream, lk.realm.subject(id))
	if err != nil {
		return message{}, err
	}
	return lk.parse(r, stream, false)
}

// log is a stored log up to a message.
type log struct {
	header outcrop.Header
	id     string
	gen    uint64
	last   uint64 // sequence of its last message
	events outcrop.Seq
	chain  chain
	broken error // the reason why it ends there and not with the subject's last message; nil otherwise
}

func logOf(h outcrop.Header, gen, last uint64, events int64, c chain) log {
	return log{header: h, id: h.ID, gen: gen, last: last, events: outcrop.Seq(events), chain: c}
}

// headerOf is the header of a session whose last message is known: from there, or
// from the first message of the log when it is too long for that.
func (lk *link) headerOf(ctx context.Context, id string, last *message) (outcrop.Header, error) {
	line := last.Head.Header
	if line == nil {
		var err error
		if line, err = lk.headerLine(ctx, id, last); err != nil {
			return outcrop.Header{}, lk.s.failed("open", id, err)
		}
	}
	h, err := outcrop.ParseHeader(line)
	switch {
	case err != nil:
		return h, store.Problem("open", id, err, "", "")
	case h.ID != id:
		return h, lk.s.sessionProblem("open", id, "HEADER_ID", outcrop.ErrDamaged, fmt.Sprintf("its header is that of session %q", h.ID), "")
	}
	return h, nil
}

// headerLine is the first line of a log.
func (lk *link) headerLine(ctx context.Context, id string, last *message) (line []byte, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := walker{lk: lk, log: log{id: id, gen: last.Gen, last: last.Stored}}
	err = w.messages(ctx, 1, func(m message) bool {
		for text, terr := range lk.text(ctx, m) {
			if err = terr; err == nil {
				line, _, _ = bytes.Cut(text, []byte{'\n'})
			}
			break
		}
		return false
	})
	if err == nil && line == nil {
		err = damage("HEADER_NOT_JSON", "the log has no header")
	}
	return line, err
}

// walker goes through the messages of a log in order, and sees that none is
// missing and none is another one's.
type walker struct {
	lk    *link
	log   log
	based bool // the first message of the log was seen
	next  outcrop.Seq
	chain chain
	err   error
}

// accept judges a message. skip is true for one that belongs to no log any more,
// or that holds no events.
func (w *walker) accept(m *message) (skip bool, err error) {
	switch {
	case m.Gen < w.log.gen:
		return true, nil
	case m.Gen > w.log.gen:
		return true, w.bad(m, store.ErrMoved, "another log was put in the place of this one")
	case !m.holdsEvents():
		// It says where the log ends, too.
		if w.based && (m.Seq != w.next || m.Chain != w.chain) {
			return true, w.bad(m, outcrop.ErrDamaged, fmt.Sprintf("seq gap: message %d of stream %s says that the log has %d events, but %d were read", m.Stored, m.Stream, m.Seq, w.next))
		}
		return true, nil
	case m.Kind == kindBase && w.based:
		return true, w.bad(m, outcrop.ErrDamaged, "a second beginning of the log")
	case m.Seq != w.next:
		return true, w.bad(m, outcrop.ErrDamaged, fmt.Sprintf("seq gap: event %d expected, message %d of stream %s has %d", w.next, m.Stored, m.Stream, m.Seq))
	case m.Prev != w.chain:
		return true, w.bad(m, outcrop.ErrDamaged, fmt.Sprintf("message %d of stream %s continues another log: the digest of what precedes does not fit", m.Stored, m.Stream))
	}
	w.based, w.next, w.chain = true, w.next+outcrop.Seq(m.Count), m.Chain
	return false, nil
}

func (w *walker) bad(m *message, err error, msg string) error {
	code, hint := outcrop.Code(""), ""
	if errors.Is(err, outcrop.ErrDamaged) {
		code, hint = "SEQ_GAP", damageHint
	}
	e := w.lk.s.sessionProblem("read", w.log.id, code, err, msg, hint)
	e.Seq = w.next
	return e
}

// messages yields the messages with events from a sequence of the stream on.
func (w *walker) messages(ctx context.Context, from uint64, yield func(message) bool) error {
	stream := w.lk.realm.stream(w.lk.realm.shard(w.log.id))
	err := w.lk.fetch(ctx, stream, w.lk.realm.subject(w.log.id), from, w.log.last, func(r raw) bool {
		m, err := parseBody(r.Header, r.Data, false)
		m.Stream, m.Stored, m.Subject = stream, r.Seq, r.Subject
		if err != nil {
			e := w.lk.s.damaged("read", w.log.id, ofMessage(stream, r.Seq, err))
			e.Seq = w.next
			w.err = e
			return false
		}
		skip, err := w.accept(&m)
		if err != nil {
			w.err = err
			return false
		}
		return skip || yield(m)
	})
	switch {
	case w.err != nil:
		return w.err
	case errors.Is(err, errNoMessage):
		return w.lk.s.sessionProblem("read", w.log.id, "", store.ErrMoved, "the session was removed or rewritten while it was read", "read it again")
	}
	return err
}

// decoder decodes frames with little text. It may be used by several goroutines
// at once.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(wholeText), zstd.WithDecoderLowmem(true))
})

const (
	// wholeText is the most text that is decompressed at once, in bytes. More comes
	// in pieces: a few bytes on the servers can be any number of them.
	wholeText = 16 << 20
	// maxText is the largest text of one message or object, in bytes.
	maxText = 2 << 30
	// maxWindow is the largest window of a frame, in bytes: no writer of ours makes
	// one over 8 MiB.
	maxWindow = 64 << 20
)

// pieces yields the text of a long body: whole lines, none of them longer than a
// log may have, and together of about wholeText bytes.
func pieces(body []byte, yield func([]byte, error) bool) bool {
	z, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxText),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return yield(nil, err)
	}
	defer z.Close()
	in := io.LimitReader(z, maxText+1)
	var left []byte // of a line that is not whole yet
	for total := 0; ; {
		text := make([]byte, len(left)+max(wholeText, len(left))) // a long line is copied a few times only
		n, err := io.ReadFull(in, text[copy(text, left):])
		text = text[:len(left)+n]
		total += n
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case err != nil && !last:
			return yield(nil, err)
		case total > maxText:
			return yield(nil, fmt.Errorf("its text is longer than %d bytes", maxText))
		case last:
			return len(text) == 0 || yield(text, nil)
		}
		end := bytes.LastIndexByte(text, '\n') + 1
		if len(text)-end > outcrop.MaxRecord {
			return yield(nil, fmt.Errorf("a line is longer than %d bytes", outcrop.MaxRecord))
		}
		left = text[end:]
		if end > 0 && !yield(text[:end:end], nil) {
			return false
		}
	}
}

// decompressed yields the text of frames, at once or in pieces.
func decompressed(b []byte, yield func([]byte, error) bool) bool {
	d, err := decoder()
	if err != nil {
		return yield(nil, err)
	}
	text, err := d.DecodeAll(b, nil)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return pieces(b, yield)
	}
	return yield(text, err)
}

// text yields the text of a message: whole lines. The memory is the reader's.
func (lk *link) text(ctx context.Context, m message) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		// decode yields the text of a body or an object; false when no more is wanted,
		// or is there.
		decode := func(b []byte) bool {
			checked := func(text []byte, err error) bool {
				switch {
				case err != nil:
					err = ofMessage(m.Stream, m.Stored, damage("FRAME_DECODE", "its text cannot be decompressed: %v", err))
				case len(text) > 0 && text[len(text)-1] != '\n':
					err = ofMessage(m.Stream, m.Stored, damage("LINE_NO_NEWLINE", "it ends inside a line"))
				}
				if err != nil {
					yield(nil, err)
					return false
				}
				return yield(text, nil)
			}
			return decompressed(b, checked)
		}
		if !m.Refs {
			decode(m.Body)
			return
		}
		ps, err := parseManifest(m.Body, m.Count)
		if err != nil {
			yield(nil, ofMessage(m.Stream, m.Stored, err))
			return
		}
		for _, p := range ps {
			b, err := lk.object(ctx, p.Object, p.SHA256)
			if errors.Is(err, outcrop.ErrNotFound) || errors.Is(err, outcrop.ErrDamaged) {
				err = ofMessage(m.Stream, m.Stored, damage(codeObject, "%v", err)) // that the object is not found does not mean the session
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !decode(b) {
				return
			}
		}
	}
}

// portion is a part of a log: some text, or the end of a message, or why there is
// no more.
type portion struct {
	text []byte
	ends *message
	err  error
}

// ahead is how many lists of portions are made before they are asked for.
const ahead = 4

// records yields a log from its beginning. Fetching and decompressing run ahead
// on goroutines of their own.
func (lk *link) records(ctx context.Context, of log) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		began := time.Now()
		var failed error
		defer lk.s.observe("read", began, &failed)
		w := walker{lk: lk, log: of}
		lines := wire.NewLines(of.id, lk.results(of))
		in := lineReader{s: lk.s, id: of.id, lines: lines, first: true}
		for p := range lk.run(ctx, &w, 1) {
			if !in.take(p, yield) {
				failed = in.err
				return
			}
		}
		if in.next != of.events || w.chain != of.chain {
			failed = lk.s.sessionProblem("read", of.id, "SEQ_GAP", outcrop.ErrDamaged, fmt.Sprintf("the log has %d events, its last message says %d", in.next, of.events), "messages were removed: restore the stream from a copy")
			yield(outcrop.Record{}, failed)
			return
		}
		if failed = of.broken; failed != nil {
			yield(outcrop.Record{}, failed)
		}
	}
}

// run fetches and decompresses on goroutines that end with the loop.
func (lk *link) run(ctx context.Context, w *walker, from uint64) iter.Seq[portion] {
	return func(yield func(portion) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		messages, portions := make(chan message, 256), make(chan []portion, ahead)
		var failed error // of the walk; read when messages is closed
		go func() {
			defer close(messages)
			failed = w.messages(ctx, from, func(m message) bool {
				select {
				case messages <- m:
					return true
				case <-ctx.Done():
					return false
				}
			})
		}()
		go func() {
			defer close(portions)
			lk.decompress(ctx, messages, portions)
			for range messages { // ends with the context
			}
			if failed != nil {
				select {
				case portions <- []portion{{err: failed}}:
				case <-ctx.Done():
				}
			}
		}()
		defer func() {
			stop()
			for range portions {
			}
		}()
		for some := range portions {
			for _, p := range some {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// decompress makes portions of messages. Small ones go on together: handing one
// over costs as much as decompressing it.
func (lk *link) decompress(ctx context.Context, messages <-chan message, out chan<- []portion) {
	var some []portion
	size := 0
	send := func() bool {
		select {
		case out <- some:
			some, size = nil, 0
			return true
		case <-ctx.Done():
			return false
		}
	}
	for m := range messages {
		for text, err := range lk.text(ctx, m) {
			some, size = append(some, portion{text: text, err: err}), size+len(text)
			if err != nil {
				send()
				return
			}
			if size >= portionBytes && !send() {
				return
			}
		}
		m.Body = nil
		some = append(some, portion{ends: &m})
		if (len(messages) == 0 || len(some) >= portionMost) && !send() {
			return
		}
	}
	if len(some) > 0 {
		send()
	}
}

const (
	portionBytes = 256 << 10
	portionMost  = 128
)

// lineReader makes records of text.
type lineReader struct {
	s     *Store
	id    string
	lines *wire.Lines
	first bool // the header line comes first
	next  outcrop.Seq
	taken int // lines of the message that were taken
	err   error
}

func (in *lineReader) fail(r outcrop.Record, err error, yield func(outcrop.Record, error) bool) bool {
	p := store.Problem("read", in.id, err, "", "the events before it can be read")
	if p.Seq < 0 {
		p.Seq = in.next
	}
	in.err = p
	yield(r, p)
	return false
}

// take yields the records of a portion; false when the reading has ended.
func (in *lineReader) take(p portion, yield func(outcrop.Record, error) bool) bool {
	if p.err != nil {
		return in.fail(outcrop.Record{}, in.s.failed("read", in.id, p.err), yield)
	}
	if m := p.ends; m != nil {
		in.taken = 0
		if end := m.Seq + outcrop.Seq(m.Count); end != in.next {
			return in.fail(outcrop.Record{}, in.s.sessionProblem("read", in.id, "SEQ_GAP", outcrop.ErrDamaged, fmt.Sprintf("message %d of stream %s says that it ends with event %d, and ends with event %d", m.Stored, m.Stream, end-1, in.next-1), ""), yield)
		}
		return true
	}
	for text := p.text; len(text) > 0; {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		in.taken++
		if in.first {
			in.first = false
			continue
		}
		r, err := in.lines.Record(line[:len(line):len(line)])
		if err == nil && r.Seq != in.next {
			err = in.s.sessionProblem("read", in.id, "SEQ_GAP", outcrop.ErrDamaged, fmt.Sprintf("seq gap: event %d expected, the line has %d", in.next, r.Seq), "")
		}
		if err != nil {
			// The record that was refused goes along, as readers of files give it.
			return in.fail(r, err, yield)
		}
		in.next = r.Last() + 1
		if !yield(r, nil) {
			return false
		}
	}
	return true
}

// results reads the results of a log that mixes old and new shapes.
func (lk *link) results(of log) func(before outcrop.Seq) iter.Seq2[outcrop.Seq, []byte] {
	return func(before outcrop.Seq) iter.Seq2[outcrop.Seq, []byte] {
		return func(yield func(outcrop.Seq, []byte) bool) {
			w := walker{lk: lk, log: of}
			first := true
			for p := range lk.run(context.Background(), &w, 1) {
				if p.err != nil {
					return
				}
				for line := range bytes.Lines(p.text) {
					if first {
						first = false
						continue
					}
					if outcrop.IsRow(line) {
						continue
					}
					e, err := outcrop.DecodeEvent(bytes.TrimSuffix(line, []byte{'\n'}))
					if err != nil || e.Seq >= before {
						return
					}
					if e.Type == outcrop.TypeToolResult && !yield(e.Seq, e.Data) {
						return
					}
				}
			}
		}
	}
}

// Read is store.Store's. The log is read up to where it ended now.
func (s *Store) Read(ctx context.Context, id string) (store.Stored, error) {
	of, lk, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return &reading{lk: lk, log: of}, nil
}

// find is a log as it ends now.
func (s *Store) find(ctx context.Context, id string) (log, *link, error) {
	if s.usable("read", id) != nil {
		return log{}, nil, s.notFound("read", id)
	}
	lk, err := s.link(ctx)
	if err != nil {
		return log{}, nil, err
	}
	last, err := lk.lastMessage(ctx, id)
	switch {
	case errors.Is(err, errNoMessage), err == nil && last.Kind == kindRemove:
		return log{}, nil, s.notFound("read", id)
	case errors.Is(err, outcrop.ErrDamaged):
		of, err := lk.salvage(ctx, id, s.damaged("read", id, err))
		return of, lk, err
	case err != nil:
		return log{}, nil, s.failed("read", id, err)
	}
	h, err := lk.headerOf(ctx, id, &last)
	if err != nil {
		return log{}, nil, err
	}
	return logOf(h, last.Gen, last.Stored, last.Head.Events, last.Chain), lk, nil
}

// salvage is a log whose last message cannot be read: it ends with the last one
// that can. The error is the one that was given when there is none.
func (lk *link) salvage(ctx context.Context, id string, broken *outcrop.Error) (log, error) {
	stream, subject := lk.realm.stream(lk.realm.shard(id)), lk.realm.subject(id)
	end, err := lk.last(ctx, stream, subject)
	var last message
	if err == nil {
		err = lk.fetch(ctx, stream, subject, 1, end.Seq, func(r raw) bool {
			if m, err := lk.parse(r, stream, false); err == nil {
				m.Body = nil
				last = m
			}
			return true
		})
	}
	switch {
	case err != nil:
		return log{}, lk.s.failed("read", id, err)
	case last.Kind == "", last.Kind == kindRemove:
		return log{}, broken
	}
	h, err := lk.headerOf(ctx, id, &last)
	if err != nil {
		return log{}, err
	}
	of := logOf(h, last.Gen, last.Stored, last.Head.Events, last.Chain)
	broken.Seq = of.events
	of.broken = broken
	return of, nil
}

// reading is a log opened for reading.
type reading struct {
	lk  *link
	log log
}

func (r *reading) Header() outcrop.Header { return r.log.header }
func (r *reading) Path() string           { return "" }
func (r *reading) Tail() store.Tail       { return store.Tail{} }
func (r *reading) Close() error           { return nil }
func (r *reading) Records() iter.Seq2[outcrop.Record, error] {
	return r.lk.records(context.Background(), r.log)
}
