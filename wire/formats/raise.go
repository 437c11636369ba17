package formats

import (
	"slices"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Change is something that a written log has in another form than its source.
type Change struct {
	What  string
	Count int
}

// Raise writes a log of format 0 as one of format 2 or 3: emit gets the header
// line, then the line of each event, without newlines; they are emit's until it
// returns. The log is read three times.
//
// Seqs are renumbered, with all that names them. What the format cannot hold as
// it is is written in another form and told in the changes. An error is emit's,
// or an *outcrop.Error with the seq of an event that cannot be written at all: a
// message without a surface marker, an assistant/message that replaces.
func Raise(h outcrop.Header, log outcrop.Log, to int, emit func(line []byte) error) ([]Change, error) {
	r := &raising{header: h, log: log, to: to, emit: emit, open: map[outcrop.Seq]*stream{}, cut: -1, head: -1}
	if h.SeedLength != nil {
		r.cut = min(outcrop.Seq(*h.SeedLength), outcrop.Seq(log.Len()))
	}
	r.claim()
	r.attempts()
	if err := emit(r.headerLine()); err != nil {
		return nil, err
	}
	for rec := range log.Records(0) {
		for e := range rec.Events() {
			if err := r.add(e); err != nil {
				return r.changes, err
			}
		}
	}
	if r.cut == outcrop.Seq(log.Len()) {
		if err := r.mark(log); err != nil {
			return r.changes, err
		}
	}
	return r.changes, nil
}

// raising is a log on its way from format 0 to 2; raise3.go goes on to 3.
type raising struct {
	header  outcrop.Header
	log     outcrop.Log
	to      int
	emit    func([]byte) error
	changes []Change
	line    []byte

	claims []claim
	ends   []outcrop.Seq           // last chunks of attempts without a message, in order
	open   map[outcrop.Seq]*stream // of messages that come
	tried  *stream                 // of the attempt that goes on
	inTurn bool                    // a turn is open
	cut    outcrop.Seq             // how many events were inherited, -1: the log has no seed
	seqs   seqs                    // format 0 to 2

	// From format 2 to 3.
	up       seqs
	surface  bool        // something stands on the surface
	head     outcrop.Seq // seq of the system prompt in format 3, -1 without one
	prompt   []byte      // its text as a JSON string, nil: empty
	deferred []byte      // a prompt that waits for a step
	waits    bool
	turn     []byte // of the open step
	step     []byte
}

// claim is a run of chunks that a message cites.
type claim struct{ first, last, message outcrop.Seq }

// claim finds the chunks that messages cite. No chunk is in two streams, and none
// crosses the end of the seed.
func (r *raising) claim() {
	most := outcrop.Seq(-1)
	for rec := range r.log.Records(0) {
		if rec.Type != outcrop.TypeAssistantMessage || rec.Run != nil {
			continue
		}
		for seq := range rec.Sources.All() {
			if seq <= most || seq >= rec.Seq || r.cut >= 0 && seq < r.cut && rec.Seq >= r.cut {
				continue
			}
			most = seq
			if n := len(r.claims); n > 0 && r.claims[n-1].message == rec.Seq && r.claims[n-1].last == seq-1 {
				r.claims[n-1].last = seq
			} else {
				r.claims = append(r.claims, claim{seq, seq, rec.Seq})
			}
		}
	}
}

// claimed is the message that a chunk belongs to, -1 when there is none.
func (r *raising) claimed(seq outcrop.Seq) outcrop.Seq {
	i, found := slices.BinarySearchFunc(r.claims, seq, func(c claim, s outcrop.Seq) int { return int(c.first - s) })
	if !found {
		i--
	}
	if i < 0 || r.claims[i].last < seq {
		return -1
	}
	return r.claims[i].message
}

// attempts finds where attempts end that gave no message: at the chunk after
// which another step, the end of this one, a retry or the end of the seed comes.
func (r *raising) attempts() {
	last := outcrop.Seq(-1) // chunk of an attempt that goes on
	var turn, step []byte
	end := func() {
		if last >= 0 {
			r.ends = append(r.ends, last)
			last = -1
		}
	}
	for rec := range r.log.Records(0) {
		if rec.Run == nil && rec.Type != outcrop.TypeAssistantChunk {
			switch rec.Type {
			case outcrop.TypeStepEnd, outcrop.TypeTurnEnd, outcrop.TypeLLMRetry, outcrop.TypeLLMRetryStarted, outcrop.TypeEndSeed:
				end()
			}
			continue
		}
		for e := range rec.Events() {
			if e.Seq == r.cut {
				end()
			}
			if r.claimed(e.Seq) >= 0 {
				continue
			}
			t, s := get(e.Data, "turn"), get(e.Data, "step")
			if last >= 0 && (string(t) != string(turn) || string(s) != string(step)) {
				end()
			}
			last, turn, step = e.Seq, t, s
			if jsonwire.TextIs(get(get(e.Data, "chunk"), "type"), "finish") {
				end()
			}
		}
	}
	end()
}

// headerLine is the header with the members that dsh writes.
func (r *raising) headerLine() []byte {
	h := r.header
	b := jsonwire.AppendIntMember([]byte(`{"type":"session"`), "version", int64(r.to))
	b = jsonwire.AppendStringMember(b, "id", h.ID)
	b = jsonwire.AppendIntMember(b, "createdAt", h.CreatedAt)
	if h.Cwd != nil {
		b = jsonwire.AppendStringMember(b, "cwd", *h.Cwd)
	}
	if h.ParentSession != nil {
		b = jsonwire.AppendStringMember(b, "parentSession", *h.ParentSession)
	}
	b = jsonwire.AppendRawMember(b, "isSeeded", strconv.AppendBool(nil, r.cut >= 0))
	if h.Origin != "" {
		b = jsonwire.AppendStringMember(b, "origin", h.Origin)
	}
	b = jsonwire.AppendIntMember(b, "delegationDepth", h.DelegationDepth)
	if h.AgentPreset != nil {
		preset := *h.AgentPreset
		if r.to >= 3 && preset == "code" {
			preset = "ptc"
		}
		b = jsonwire.AppendStringMember(b, "agentPreset", preset)
	}
	for k := range jsonwire.Members(h.Line()) {
		switch jsonwire.Key(k) {
		case "type", "version", "id", "createdAt", "cwd", "parentSession", "seedLength", "origin", "delegationDepth", "agentPreset":
		default:
			r.changed("member " + jsonwire.Key(k) + " of the header is left out")
		}
	}
	return append(b, '}')
}

func (r *raising) changed(what string) {
	for i := range r.changes {
		if r.changes[i].What == what {
			r.changes[i].Count++
			return
		}
	}
	r.changes = append(r.changes, Change{what, 1})
}

func (r *raising) add(e outcrop.Event) error {
	if e.Seq == r.cut && e.Type != outcrop.TypeEndSeed {
		if err := r.mark(r.log); err != nil {
			return err
		}
	}
	r.seqs.begin(&e)
	if e.Type == outcrop.TypeAssistantChunk {
		return r.chunk(e)
	}
	t, data := e.Type, []byte(e.Data)
	if t.Surface() && e.Op.IsZero() {
		return r.unwritable(&e, "the event has no surface marker, and format "+strconv.Itoa(r.to)+" knows no messages without one")
	}
	switch t {
	case outcrop.TypeAssistantMessage:
		if !e.Op.IsAppend() {
			return r.unwritable(&e, "an assistant/message that replaces can be in no format after 1")
		}
		s := r.open[e.Seq]
		delete(r.open, e.Seq)
		data = with(data, "stream", s.json())
		e = e.Recast(t, e.Seq, data, outcrop.NoSources, e.Op)
	case outcrop.TypeTurnStart, outcrop.TypeTurnEnd:
		r.inTurn = t == outcrop.TypeTurnStart
	case outcrop.TypeToolResult:
		if !e.Op.IsAppend() && !r.inTurn {
			r.changed("a tool result is rewritten between turns, which dsh takes for a fault")
		}
	case outcrop.TypeContextMessage:
		t = outcrop.TypeUserMessage
		r.changed("context/message is written as user/message")
	case outcrop.TypeEndSeed:
		data = without(data, "inherited")
		if e.Seq == r.cut {
			data = with(data, "inherited", []byte("true"))
		}
	}
	e, err := r.seqs.pass(e, t, data)
	if err != nil {
		return r.refused(err)
	}
	return r.pass2(e)
}

// mark writes the session/end-seed that tells the end of the seed.
func (r *raising) mark(log outcrop.Log) error {
	e := outcrop.Event{Type: outcrop.TypeEndSeed, Seq: r.seqs.take(), Time: r.header.CreatedAt, Data: []byte(`{"inherited":true}`)}
	if r.cut < outcrop.Seq(log.Len()) {
		e.Time = log.At(r.cut).Time
	} else if r.cut > 0 {
		e.Time = log.At(r.cut - 1).Time
	}
	r.cut = -2 // written
	return r.pass2(e)
}

// chunk takes a chunk into the stream that it belongs to.
func (r *raising) chunk(e outcrop.Event) error {
	if m := r.claimed(e.Seq); m >= 0 {
		s := r.open[m]
		if s == nil {
			s = &stream{}
			r.open[m] = s
		}
		s.add(&e)
		r.seqs.drop()
		return nil
	}
	if r.tried == nil {
		r.tried = &stream{}
	}
	r.tried.add(&e)
	if len(r.ends) == 0 || r.ends[0] != e.Seq {
		r.seqs.drop()
		return nil
	}
	r.ends = r.ends[1:]
	data := jsonwire.AppendRawMember([]byte{'{'}, "turn", orZero(get(e.Data, "turn")))
	data = jsonwire.AppendRawMember(data, "step", orZero(get(e.Data, "step")))
	data = append(jsonwire.AppendRawMember(data, "stream", r.tried.json()), '}')
	r.tried = nil
	at := r.seqs.take()
	r.seqs.place(at)
	return r.pass2(e.Recast(typeAttempt, at, data, outcrop.NoSources, outcrop.SurfaceOp{}))
}

func orZero(v []byte) []byte {
	if v == nil {
		return []byte("0")
	}
	return v
}

func (r *raising) unwritable(e *outcrop.Event, msg string) error {
	err := refuse("FORMAT_UNWRITABLE", e, msg)
	err.Op, err.Session = "export", r.header.ID
	return err
}

func (r *raising) refused(err *outcrop.Error) error {
	err.Op, err.Session = "export", r.header.ID
	return err
}

// pass2 takes an event of format 2.
func (r *raising) pass2(e outcrop.Event) error {
	if r.to >= 3 {
		return r.raise3(e)
	}
	return r.write(&e)
}

// write gives an event its line.
func (r *raising) write(e *outcrop.Event) error {
	b := append(r.line[:0], `{"type":`...)
	b = jsonwire.AppendString(b, string(e.Type))
	b = jsonwire.AppendIntMember(b, "seq", int64(e.Seq))
	b = jsonwire.AppendIntMember(b, "time", e.Time)
	b = jsonwire.AppendRawMember(b, "data", e.Data)
	if e.Sources.Known() {
		b = jsonwire.AppendRawMember(b, "sourceEventSeqs", Ranges(e.Sources))
	}
	if start, end, ok := e.Op.Range(); ok {
		names := [...]string{"start", "end"}
		if r.to >= 3 {
			names = [...]string{"startSeq", "endSeq"}
		}
		b = append(jsonwire.AppendMember(b, "surfaceOp"), `{"op":"replace"`...)
		b = append(jsonwire.AppendIntMember(jsonwire.AppendIntMember(b, names[0], int64(start)), names[1], int64(end)), '}')
	} else if e.Op.IsAppend() {
		b = jsonwire.AppendStringMember(b, "surfaceOp", "append")
	}
	if e.Ignorable {
		b = append(jsonwire.AppendMember(b, "ignorable"), "true"...)
	}
	r.line = append(b, '}')
	for i, c := range r.line {
		if c == '\n' || c == '\r' { // between tokens only, where a space says the same
			r.line[i] = ' '
		}
	}
	return r.emit(r.line)
}

// Ranges is the JSON of sources in which runs of three and more are written as
// [first, last], when the list only rises.
func Ranges(s outcrop.Sources) []byte {
	list := s.Seqs()
	for i := 1; i < len(list); i++ {
		if list[i] <= list[i-1] {
			return s.JSON()
		}
	}
	b := []byte{'['}
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case k-i >= 2:
			b = jsonwire.AppendInt(append(b, '['), int64(list[i]))
			b = append(jsonwire.AppendInt(append(b, ','), int64(list[k])), ']')
		case k-i == 1:
			b = jsonwire.AppendInt(b, int64(list[i]))
			b = jsonwire.AppendInt(append(b, ','), int64(list[k]))
		default:
			b = jsonwire.AppendInt(b, int64(list[i]))
		}
		i = k + 1
	}
	return append(b, ']')
}
