package claudecode

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// kind is what a line is.
type kind uint8

const (
	kindOther kind = iota // in the tree, without a message
	kindUser
	kindResult // a user line that begins with the result of a call
	kindAssistant
	kindBoundary
	kindAttachment
	kindTitle // belongs to no place in the tree
)

type flags uint16

const (
	flagSide    flags = 1 << iota
	flagMeta          // isMeta
	flagSummary       // isCompactSummary
	flagCopied        // forkedFrom another session, or of another session's id
	flagGone          // a record that was written before
	flagShown         // isVisibleInTranscriptOnly
	flagError         // isApiErrorMessage
	flagPlain         // the uuid is one, so that its key gives it back
)

// part is where a value stands in a line.
type part struct{ at, length int32 }

func (p part) of(line []byte) []byte {
	if p.length == 0 {
		return nil
	}
	return line[p.at : p.at+p.length : p.at+p.length]
}

// entry is one line in the index.
type entry struct {
	offset  int64
	length  int32
	number  int32 // from 1
	parent  int32 // index of the line that it follows, -1 none
	kind    kind
	flags   flags
	message key // of message.id; zero none
	uuid    key
	time    int64
	body    part // message
	result  part // toolUseResult
}

// key stands for a uuid or another id.
type key [16]byte

// keyOf makes the key of an id. Ids that are no UUIDs are hashed.
func keyOf(id string) key { k, _ := keyPlain(id); return k }

// keyPlain is keyOf, and says whether the key gives the id back.
func keyPlain(id string) (k key, plain bool) {
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		hexed := make([]byte, 0, 32)
		hexed = append(append(append(append(append(hexed, id[:8]...), id[9:13]...), id[14:18]...), id[19:23]...), id[24:]...)
		if _, err := hex.Decode(k[:], hexed); err == nil {
			return k, k.String() == id
		}
	}
	sum := sha256.Sum256([]byte(id))
	copy(k[:], sum[:])
	return k, false
}

// String is the UUID of a key.
func (k key) String() string {
	var b [36]byte
	hex.Encode(b[:], k[:4])
	hex.Encode(b[9:], k[4:6])
	hex.Encode(b[14:], k[6:8])
	hex.Encode(b[19:], k[8:10])
	hex.Encode(b[24:], k[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// preserved is what a compaction left standing.
type preserved struct{ boundary, head, tail int32 }

// index is what is known of a file after the first reading.
type index struct {
	file    io.ReaderAt
	path    string
	bytes   int64
	sum     hash.Hash
	digest  string
	entries []entry
	byUUID  map[key]int32

	session  string // the session's id
	agent    string // of a sub-agent's file
	from     string // the session that it was forked from
	version  string
	cwd      string
	branch   string
	created  int64
	title    string
	preserve []preserved
	heads    map[int32]bool
}

// readIndex reads a file once, line by line.
func readIndex(ctx context.Context, f io.ReaderAt, path string, r *exchange.Report) (*index, error) {
	x := &index{file: f, path: path, byUUID: map[key]int32{}, sum: sha256.New()}
	parents := []key{}     // of each entry, zero none
	keep := [][3]key{}     // boundary, head and tail of what was left standing
	sessions := []string{} // ids that lines name, as entries give them
	ids := []uint16{}
	objects := 0
	conversation := false // a line is of no sidechain
	name := stem(path)
	for line, err := range exchange.Lines(io.NewSectionReader(f, 0, 1<<62), x.sum) {
		if err != nil {
			return nil, exchange.Unreadable(path, line.Number, line.Offset, "it cannot be read: %v", err)
		}
		if line.Number%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.Advance(line.Bytes / 2)
		x.bytes = line.Offset + line.Bytes
		if len(line.Text) == 0 {
			continue
		}
		if line.Long {
			r.Dropped("record", "a line of more than 256 MiB", line.Number)
			continue
		}
		e, m, err := scan(line.Text)
		if err != nil {
			if line.Torn && !errors.Is(err, jsonwire.ErrDepth) {
				// A line that is still being written.
				r.Dropped("record", "the last line is not complete", line.Number)
			} else {
				r.Dropped("record", exchange.NoObject(err), line.Number)
			}
			continue
		}
		objects++
		e.offset, e.length, e.number, e.parent = line.Offset, int32(len(line.Text)), int32(line.Number), -1
		if x.version == "" {
			x.version = m.version
		}
		if x.cwd == "" {
			x.cwd = m.cwd
		}
		if x.created == 0 && m.time != 0 {
			x.created = m.time
		}
		if x.agent == "" && e.flags&flagSide != 0 {
			x.agent = m.agent
		}
		conversation = conversation || m.uuid != "" && e.flags&flagSide == 0
		if m.session != "" && (x.session == "" || m.session == name) {
			x.session = m.session
		}
		if m.from != "" {
			e.flags |= flagCopied
			if x.from == "" {
				x.from = m.from
			}
		}
		if m.branch != "" && m.branch != x.branch {
			if x.branch != "" {
				r.Dropped("git branch", "a log has no place for it", line.Number)
			}
			x.branch = m.branch
		}
		switch {
		case m.uuid != "":
			k, plain := keyPlain(m.uuid)
			if plain {
				e.flags |= flagPlain
			}
			if _, again := x.byUUID[k]; again {
				r.Dropped("record "+m.kind, "it was written before, under the same uuid", line.Number)
				continue
			}
			if e.kind == kindTitle {
				e.kind = kindOther
			}
			e.uuid = k
			x.byUUID[k] = int32(len(x.entries))
			if e.kind == kindBoundary && m.head != "" && m.tail != "" {
				keep = append(keep, [3]key{k, keyOf(m.head), keyOf(m.tail)})
			}
		case m.title != "":
			e.kind = kindTitle
			if m.leaf == "" {
				x.title = m.title
			} else {
				// Old versions write the titles of all sessions into each file.
				if _, here := x.byUUID[keyOf(m.leaf)]; !here {
					e.message = keyOf(m.leaf) // perhaps it comes
				}
			}
		default:
			r.Dropped("record "+m.kind, other[m.kind], line.Number)
			continue
		}
		parent := m.parent
		if parent == "" {
			parent = m.logical
		}
		var pk key
		if parent != "" {
			pk = keyOf(parent)
		}
		id := uint16(0)
		for id = 0; int(id) < len(sessions) && sessions[id] != m.session; id++ {
		}
		if int(id) == len(sessions) && id < 1000 {
			sessions = append(sessions, m.session)
		}
		x.entries = append(x.entries, e)
		parents, ids = append(parents, pk), append(ids, id)
	}
	if objects == 0 && x.bytes > 0 {
		return nil, exchange.Unreadable(path, 1, 0, "it has no line that is a JSON object")
	}
	x.digest = "sha256:" + hex.EncodeToString(x.sum.Sum(nil))
	if x.session == "" {
		x.session = name
	}
	if conversation {
		x.agent = "" // sidechains inside a session's file
	}
	x.copied(sessions, ids)
	x.link(parents, keep, r)
	return x, nil
}

// copied marks the lines that an older version copied from the session that was
// resumed: they stand at the beginning, under its id.
func (x *index) copied(sessions []string, ids []uint16) {
	if len(sessions) < 2 || x.agent != "" {
		return
	}
	last := -1
	for i := range x.entries {
		if x.entries[i].kind != kindTitle && int(ids[i]) < len(sessions) && sessions[ids[i]] == x.session {
			break
		}
		last = i
	}
	if last < 0 || last == len(x.entries)-1 {
		return
	}
	for i := 0; i <= last; i++ {
		id := ""
		if int(ids[i]) < len(sessions) {
			id = sessions[ids[i]]
		}
		if id != "" && id != x.session && x.entries[i].kind != kindTitle {
			x.entries[i].flags |= flagCopied
			if x.from == "" {
				x.from = id
			}
		}
	}
}

// link finds the parents of all lines.
func (x *index) link(parents []key, keep [][3]key, r *exchange.Report) {
	last := int32(-1)     // message of the main conversation before
	lastSide := int32(-1) // and of a sidechain
	for i := range x.entries {
		e := &x.entries[i]
		if x.agent != "" {
			e.flags &^= flagSide // all of the file is one
		}
		if e.kind == kindTitle {
			if e.message != (key{}) {
				if _, here := x.byUUID[e.message]; !here {
					e.flags |= flagGone
					r.Dropped("title", "it is another session's", int64(e.number))
				}
				e.message = key{}
			}
			continue
		}
		before := &last
		if e.flags&flagSide != 0 {
			before = &lastSide
		}
		if parents[i] != (key{}) {
			if p, ok := x.byUUID[parents[i]]; ok {
				e.parent = p // perhaps itself: cut mends that
			} else {
				e.parent = *before
				if *before >= 0 {
					r.Mapped("record whose parent is not there", "it follows the message before it", int64(e.number))
				}
			}
		} else if e.flags&flagSummary != 0 || e.kind == kindBoundary {
			// A compaction that does not say what it follows.
			e.parent = *before
		}
		*before = int32(i)
	}
	x.heads = map[int32]bool{}
	for _, k := range keep {
		boundary, head, tail := x.at(k[0]), x.at(k[1]), x.at(k[2])
		if boundary < 0 || head < 0 || tail < 0 || head >= boundary || tail >= boundary || head > tail {
			continue
		}
		x.preserve = append(x.preserve, preserved{boundary, head, tail})
		x.heads[head] = true
		// The program puts what was left standing behind the summary. Here it
		// stays where it is, and the summary comes behind it.
		x.entries[boundary].parent = tail
		summary := boundary
		for i := int(boundary) + 1; i < len(x.entries); i++ {
			if e := &x.entries[i]; e.parent == boundary && e.flags&flagSummary != 0 {
				summary = int32(i)
				break
			}
		}
		for i := int(boundary) + 1; i < len(x.entries); i++ {
			if e := &x.entries[i]; int32(i) != summary && e.parent == tail && e.kind != kindTitle {
				e.parent = summary
			}
		}
	}
	x.cut(r)
}

func (x *index) at(k key) int32 {
	if i, ok := x.byUUID[k]; ok {
		return i
	}
	return -1
}

// cut breaks circles: of the lines that follow each other, the first one follows
// the message before them instead, or begins anew.
func (x *index) cut(r *exchange.Report) {
	state := make([]uint8, len(x.entries)) // 1: on the way, 2: known to end
	last := int32(-1)                      // message of the main conversation before
	lastSide := int32(-1)                  // and of a sidechain
	before := func(e *entry) *int32 {
		if e.side() {
			return &lastSide
		}
		return &last
	}
	var way []int32
	for i := range x.entries {
		way = way[:0]
		j := int32(i)
		for j >= 0 && state[j] == 0 {
			state[j] = 1
			way = append(way, j)
			j = x.entries[j].parent
		}
		if j >= 0 && state[j] == 1 {
			first := j
			for k := x.entries[j].parent; k != j; k = x.entries[k].parent {
				first = min(first, k)
			}
			// Whatever stands before line i is known to end, and not here.
			e := &x.entries[first]
			how := "it follows the message before it"
			if e.parent = *before(e); e.parent < 0 {
				how = "it begins anew"
			}
			r.Mapped("record whose parents lead back to it", how, int64(e.number))
		}
		for _, k := range way {
			state[k] = 2
		}
		if e := &x.entries[i]; e.kind != kindTitle {
			*before(e) = int32(i)
		}
	}
}

// meta are the members of a line that the index wants.
type meta struct {
	kind, uuid, parent, logical, session, agent, from string
	version, cwd, branch, title, leaf, head, tail     string
	time                                              int64
}

// other says why lines of a type are not kept.
var other = map[string]string{
	"file-history-snapshot": "a copy of files, kept by the program",
	"queue-operation":       "the prompt stands where it was taken from the queue",
	"summary":               "the title of another session",
	"last-prompt":           "the prompt stands in its place",
}

// scan checks a line and reads its members in one walk.
func scan(line []byte) (e entry, m meta, err error) {
	text := func(v []byte) string { s, _ := jsonwire.Text(v); return s }
	var subtype string
	flag := func(v []byte, f flags) {
		if string(v) == "true" {
			e.flags |= f
		}
	}
	err = jsonwire.Object(line, func(name, v []byte, at int) {
		switch string(name) {
		case "type":
			m.kind = text(v)
		case "uuid":
			m.uuid = text(v)
		case "parentUuid":
			m.parent = text(v)
		case "logicalParentUuid":
			m.logical = text(v)
		case "sessionId":
			m.session = text(v)
		case "agentId":
			m.agent = text(v)
		case "forkedFrom":
			m.from = text(jsonwire.Get(v, "sessionId"))
		case "version":
			m.version = text(v)
		case "cwd":
			m.cwd = text(v)
		case "gitBranch":
			m.branch = text(v)
		case "timestamp":
			m.time = timeOf(v)
			e.time = m.time
		case "isSidechain":
			flag(v, flagSide)
		case "isMeta":
			flag(v, flagMeta)
		case "isCompactSummary":
			flag(v, flagSummary)
		case "isVisibleInTranscriptOnly":
			flag(v, flagShown)
		case "isApiErrorMessage":
			flag(v, flagError)
		case "subtype":
			subtype = text(v)
		case "message":
			e.body = part{int32(at), int32(len(v))}
		case "toolUseResult":
			e.result = part{int32(at), int32(len(v))}
		case "leafUuid":
			m.leaf = text(v)
		case "summary", "customTitle", "aiTitle":
			if jsonwire.Kind(v) == '"' {
				m.title = text(v)
			}
		case "compactMetadata":
			kept := jsonwire.Get(v, "preservedSegment")
			m.head, m.tail = text(jsonwire.Get(kept, "headUuid")), text(jsonwire.Get(kept, "tailUuid"))
		}
	})
	if err != nil {
		return e, m, err
	}
	switch m.kind {
	case "user":
		e.kind = kindUser
		if beginsWithResult(e.body.of(line)) {
			e.kind = kindResult
		}
	case "assistant":
		e.kind = kindAssistant
		if id := firstText(e.body.of(line), "id"); id != "" {
			e.message = keyOf(id)
		}
	case "system":
		if subtype == "compact_boundary" {
			e.kind = kindBoundary
		}
	case "attachment":
		e.kind = kindAttachment
	case "summary", "custom-title", "ai-title":
		e.kind = kindTitle
	}
	if e.kind != kindTitle && m.uuid != "" {
		m.title = ""
	}
	return e, m, nil
}

// firstText is the first member of a name in an object, when it is a text; what
// stands behind it is not looked at.
func firstText(obj []byte, name string) (s string) {
	jsonwire.Visit(obj, 0, func(key []byte, at int) int {
		if string(key) != name {
			return 0
		}
		s, _, _ = jsonwire.TextAt(obj, at)
		return len(obj)
	})
	return s
}

// beginsWithResult reports whether the first block of a message is the result
// of a call. Of the message no more is looked at than that takes.
func beginsWithResult(msg []byte) (is bool) {
	stop := len(msg)
	jsonwire.Visit(msg, 0, func(key []byte, at int) int {
		if string(key) != "content" {
			return 0
		}
		jsonwire.VisitElements(msg, at, func(at int) int {
			jsonwire.Visit(msg, at, func(key []byte, at int) int {
				if string(key) != "type" {
					return 0
				}
				kind, _, _ := jsonwire.TextAt(msg, at)
				is = kind == "tool_result"
				return stop
			})
			return stop
		})
		return stop
	})
	return is
}

// timeOf reads a time as the program writes it; 0 for another value.
func timeOf(v []byte) int64 {
	s, ok := jsonwire.Text(v)
	if !ok {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// reader gives the lines of a file again, best in their order.
type reader struct {
	f   io.ReaderAt
	buf []byte
	off int64 // of buf
}

const window = 1 << 20

// line is a line of the index; it is good until the next call.
func (r *reader) line(e *entry) ([]byte, error) {
	at, n := e.offset-r.off, int64(e.length)
	if at < 0 || at+n > int64(len(r.buf)) {
		want := max(int(n), window)
		if cap(r.buf) < want || cap(r.buf) > 8*window && want < cap(r.buf)/4 {
			r.buf = make([]byte, want)
		}
		got, err := r.f.ReadAt(r.buf[:cap(r.buf)], e.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		r.buf, r.off, at = r.buf[:got], e.offset, 0
		if int64(got) < n {
			return nil, io.ErrUnexpectedEOF
		}
	}
	return r.buf[at : at+n : at+n], nil
}
