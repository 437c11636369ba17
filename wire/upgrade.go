package wire

import (
	"encoding/json"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// The version number never changed while dsh's event shapes did, so old shapes
// are known by their members:
//
//	turn/start {turn, trigger{kind}}                  {turn}
//	turn/end reason {kind:"aborted"}                  {kind:"aborted", reason:{kind:"legacy"}}
//	turn/end reason {kind:"disposed"}                 {kind:"aborted", reason:{kind:"disposed"}}
//	turn/end reason {kind:"error", step, failure}     {kind:"error", error:failure}
//	turn/end reason {…, step, message, code?}         {kind:"error", error:{message, code or "UNKNOWN"}}
//	steering/message {turn, message}                  user/message, its data is message
//	steering/message {turn, content, source}          user/message with a made id
//	user/message without id, role and message         the same with a made id
//	assistant/message {…, content, provenance}        {…, message}
//	tool/result {…, callId, content, isError}         {…, message}
//
// A made id is "legacy-message:SESSION:SEQ"; a tool/result that replaces one
// takes the id of that one. The data is rebuilt from spans of the old data.
type upgrader struct {
	session string
	// Ids of the tool/result messages read so far, kept from the first old
	// message on.
	known map[outcrop.Seq]string
	// The id made for the old compaction that is open, "" when none is.
	compaction string
	// ids reads the ids of the tool/result messages before a seq anew.
	ids func(before outcrop.Seq) map[outcrop.Seq]string
}

const typeSteering outcrop.Type = "steering/message"

// wants reports whether events of a type can have an old shape.
func (u *upgrader) wants(t outcrop.Type) bool {
	switch t {
	case outcrop.TypeTurnStart, outcrop.TypeTurnEnd, typeSteering,
		outcrop.TypeUserMessage, outcrop.TypeAssistantMessage, outcrop.TypeToolResult,
		"compact/start", "compact/summary", "compact/end", "compact/prune":
		return true
	case outcrop.TypeEndSeed:
		return u.compaction != ""
	}
	return false
}

// upgrade returns the event as a current reader sees it.
func (u *upgrader) upgrade(e outcrop.Event) (outcrop.Event, *outcrop.Error) {
	switch e.Type {
	case outcrop.TypeTurnStart:
		return turnStart(e)
	case outcrop.TypeTurnEnd:
		return turnEnd(e)
	case typeSteering:
		return u.steering(e)
	case outcrop.TypeUserMessage:
		if e = u.user(e); u.compaction != "" {
			e = u.checkpoint(e)
		}
		return e, nil
	case outcrop.TypeAssistantMessage:
		return u.assistant(e), nil
	case outcrop.TypeToolResult:
		return u.result(e), nil
	case outcrop.TypeEndSeed:
		u.compaction = "" // what was begun before is over
		return e, nil
	}
	if compactNames[e.Type] != "" {
		return u.compact(e), nil
	}
	return e, nil
}

// sameData reports whether an event still has the very data of another.
func sameData(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// members are the members of an object that an old shape is known by.
type members struct {
	n int // how many there are in all
	m [len(memberNames)][]byte
}

type memberName uint8

const (
	mTurn memberName = iota
	mTrigger
	mReason
	mKind
	mStep
	mFailure
	mMessage
	mCode
	mContent
	mSource
	mID
	mRole
	mProvenance
	mCallID
	mIsError
	mError
)

var memberNames = [...]string{"turn", "trigger", "reason", "kind", "step", "failure", "message", "code",
	"content", "source", "id", "role", "provenance", "callId", "isError", "error"}

func (s *members) get(n memberName) []byte { return s.m[n] }
func (s *members) has(n memberName) bool   { return s.m[n] != nil }

// read takes an object apart; ok is false when v is none.
func read(v []byte) (s members, ok bool) {
	if jsonwire.Kind(v) != '{' {
		return s, false
	}
	other := map[string]bool(nil)
	for k, val := range jsonwire.Members(v) {
		name, found := jsonwire.Key(k), false
		for i, n := range memberNames {
			if n == name {
				if s.m[i] == nil {
					s.n++
				}
				s.m[i], found = val, true
				break
			}
		}
		if !found && !other[name] {
			if other == nil {
				other = map[string]bool{}
			}
			other[name] = true
			s.n++
		}
	}
	return s, true
}

func isText(v []byte) bool { return jsonwire.Kind(v) == '"' }

func isName(v []byte) bool { // a non-empty string
	s, ok := jsonwire.Text(v)
	return ok && s != ""
}

func isSeq(v []byte, least int64) bool {
	if jsonwire.Kind(v) != '0' {
		return false
	}
	n, ok := jsonwire.Int(v)
	return ok && n >= least && !jsonwire.IsNegativeZero(v)
}

func refused(code outcrop.Code, msg string) *outcrop.Error {
	return &outcrop.Error{Op: "read", Code: code, Seq: -1, Offset: -1, Err: outcrop.ErrRefused, Msg: msg}
}

func turnStart(e outcrop.Event) (outcrop.Event, *outcrop.Error) {
	if jsonwire.Get(e.Data, "trigger") == nil {
		return e, nil
	}
	s, _ := read(e.Data)
	t, ok := read(s.get(mTrigger))
	if !ok || s.n != 2 || !isSeq(s.get(mTurn), 1) || !isName(t.get(mKind)) {
		return e, refused("LEGACY_TURN_START", "turn/start has a trigger but not the old shape {turn, trigger:{kind}}")
	}
	data := jsonwire.AppendRawMember([]byte{'{'}, "turn", s.get(mTurn))
	return e.Upgraded(outcrop.TypeTurnStart, append(data, '}')), nil
}

func turnEnd(e outcrop.Event) (outcrop.Event, *outcrop.Error) {
	bad := func(msg string) (outcrop.Event, *outcrop.Error) {
		return e, refused("LEGACY_TURN_END", "turn/end "+msg)
	}
	s, ok := read(e.Data)
	if !ok || s.n != 2 || !isSeq(s.get(mTurn), 1) || !s.has(mReason) {
		return bad("must be {turn, reason} with a turn of at least 1")
	}
	r, ok := read(s.get(mReason))
	kind, isKind := jsonwire.Text(r.get(mKind))
	if !ok || !isKind {
		return bad("has a reason without a kind")
	}
	with := func(reason []byte) (outcrop.Event, *outcrop.Error) {
		data := jsonwire.AppendRawMember([]byte{'{'}, "turn", s.get(mTurn))
		data = jsonwire.AppendRawMember(data, "reason", reason)
		return e.Upgraded(outcrop.TypeTurnEnd, append(data, '}')), nil
	}
	switch kind {
	case "completed", "blocked", "max-tokens", "interrupted":
		if r.n != 1 {
			return bad("reason " + kind + " must have no other member")
		}
	case "aborted":
		if r.n == 1 {
			return with([]byte(`{"kind":"aborted","reason":{"kind":"legacy"}}`))
		}
		if r.n != 2 || !r.has(mReason) {
			return bad("reason aborted must have kind and reason")
		}
	case "disposed":
		if r.n != 1 {
			return bad("reason disposed must have no other member")
		}
		return with([]byte(`{"kind":"aborted","reason":{"kind":"disposed"}}`))
	case "error":
		if r.has(mError) {
			if r.n != 2 {
				return bad("reason error must have kind and error")
			}
			return e, nil
		}
		failure, ok := oldFailure(&r)
		if !ok {
			return bad("reason error has neither the current nor an old shape")
		}
		reason := jsonwire.AppendRawMember([]byte(`{"kind":"error"`), "error", failure)
		return with(append(reason, '}'))
	}
	return e, nil
}

// oldFailure is the failure of an old error reason.
func oldFailure(r *members) ([]byte, bool) {
	if !isSeq(r.get(mStep), 0) {
		return nil, false
	}
	if v := r.get(mFailure); v != nil {
		return v, r.n == 3 && isFailure(v)
	}
	n := 3
	code := []byte(`"UNKNOWN"`)
	if r.has(mCode) {
		n, code = 4, r.get(mCode)
	}
	if r.n != n || !isText(r.get(mMessage)) || !isText(code) {
		return nil, false
	}
	out := jsonwire.AppendRawMember([]byte{'{'}, "message", r.get(mMessage))
	out = jsonwire.AppendRawMember(out, "code", code)
	return append(out, '}'), true
}

// isFailure checks {message, code, status?, providerRetryAfterMs?, requestId?}.
func isFailure(v []byte) bool {
	if jsonwire.Kind(v) != '{' {
		return false
	}
	var message, code bool
	for k, val := range jsonwire.Members(v) {
		ok := false
		switch jsonwire.Key(k) {
		case "message":
			message, ok = true, isText(val)
		case "code":
			code, ok = true, isText(val)
		case "status", "providerRetryAfterMs":
			ok = jsonwire.Kind(val) == '0'
		case "requestId":
			ok = isText(val)
		}
		if !ok {
			return false
		}
	}
	return message && code
}

// madeID is the id of an old message that had none, as JSON text.
func (u *upgrader) madeID(e *outcrop.Event) []byte {
	return jsonwire.AppendString(nil, u.madeIDText(e))
}

func (u *upgrader) madeIDText(e *outcrop.Event) string {
	return "legacy-message:" + u.session + ":" + strconv.FormatInt(int64(e.Seq), 10)
}

// withID is a bare message with id and role behind its members.
func (u *upgrader) withID(e *outcrop.Event, content, source []byte) json.RawMessage {
	data := jsonwire.AppendRawMember([]byte{'{'}, "content", content)
	data = jsonwire.AppendRawMember(data, "source", source)
	data = jsonwire.AppendRawMember(data, "id", u.madeID(e))
	return append(jsonwire.AppendStringMember(data, "role", "user"), '}')
}

func (u *upgrader) steering(e outcrop.Event) (outcrop.Event, *outcrop.Error) {
	s, ok := read(e.Data)
	switch {
	case ok && s.n == 2 && s.has(mTurn) && jsonwire.Kind(s.get(mMessage)) == '{':
		m := s.get(mMessage)
		return e.Upgraded(outcrop.TypeUserMessage, m[:len(m):len(m)]), nil
	case ok && s.n == 3 && s.has(mTurn) && s.has(mContent) && s.has(mSource):
		return e.Upgraded(outcrop.TypeUserMessage, u.withID(&e, s.get(mContent), s.get(mSource))), nil
	}
	return e, refused("LEGACY_STEERING", "steering/message has neither of its old shapes {turn, message} and {turn, content, source}")
}

func (u *upgrader) user(e outcrop.Event) outcrop.Event {
	// The current shape shows by its first members, or after the content.
	var content, source bool
	for k := range jsonwire.Members(e.Data) {
		switch string(k) {
		case "id", "role", "message":
			return e
		case "content":
			content = true
		case "source":
			source = true
		}
	}
	if !content || !source {
		return e
	}
	// All members stay; id and role come behind them.
	data := append([]byte(nil), e.Data[:lastBrace(e.Data)]...)
	data = jsonwire.AppendRawMember(data, "id", u.madeID(&e))
	data = append(jsonwire.AppendStringMember(data, "role", "user"), '}')
	return e.Upgraded(outcrop.TypeUserMessage, data)
}

func lastBrace(obj []byte) int {
	i := len(obj) - 1
	for i > 0 && obj[i] != '}' {
		i--
	}
	return i
}

// hasMessage reports whether data has the member message, and looks no
// further than there.
func hasMessage(data []byte) bool {
	for k := range jsonwire.Members(data) {
		if string(k) == "message" {
			return true
		}
	}
	return false
}

// rest copies the members of data but the named ones.
func rest(data []byte, without ...memberName) []byte {
	out := []byte{'{'}
next:
	for k, v := range jsonwire.Members(data) {
		for _, n := range without {
			if jsonwire.KeyIs(k, memberNames[n]) {
				continue next
			}
		}
		out = jsonwire.AppendRawMember(out, string(k), v)
	}
	return out
}

func (u *upgrader) assistant(e outcrop.Event) outcrop.Event {
	if hasMessage(e.Data) {
		return e
	}
	s, ok := read(e.Data)
	if !ok || s.has(mMessage) || !s.has(mContent) || jsonwire.Kind(s.get(mProvenance)) != '{' {
		return e
	}
	source := rest(s.get(mProvenance), mKind)
	source = append(jsonwire.AppendStringMember(source, "kind", "model"), '}')
	m := jsonwire.AppendRawMember([]byte{'{'}, "id", u.madeID(&e))
	m = jsonwire.AppendStringMember(m, "role", "assistant")
	m = jsonwire.AppendRawMember(m, "content", s.get(mContent))
	m = append(jsonwire.AppendRawMember(m, "source", source), '}')
	data := jsonwire.AppendRawMember(rest(e.Data, mContent, mProvenance), "message", m)
	return e.Upgraded(outcrop.TypeAssistantMessage, append(data, '}'))
}

func (u *upgrader) result(e outcrop.Event) outcrop.Event {
	if hasMessage(e.Data) {
		if u.known != nil {
			u.known[e.Seq] = resultID(e.Data)
		}
		return e
	}
	s, ok := read(e.Data)
	if !ok || s.has(mMessage) || !s.has(mCallID) || !s.has(mContent) || !s.has(mIsError) {
		return e
	}
	if u.known == nil {
		u.known = u.ids(e.Seq)
	}
	id := u.madeIDText(&e)
	if start, _, ok := e.Op.Range(); ok && u.known[start] != "" {
		id = u.known[start]
	}
	u.known[e.Seq] = id
	block := jsonwire.AppendStringMember([]byte{'{'}, "type", "tool-result")
	block = jsonwire.AppendRawMember(block, "toolCallId", s.get(mCallID))
	block = jsonwire.AppendRawMember(block, "content", s.get(mContent))
	block = append(jsonwire.AppendRawMember(block, "isError", s.get(mIsError)), '}')
	m := jsonwire.AppendStringMember([]byte{'{'}, "id", id)
	m = jsonwire.AppendStringMember(m, "role", "user")
	m = append(append(append(jsonwire.AppendMember(m, "content"), '['), block...), ']')
	source := append(jsonwire.AppendRawMember([]byte(`{"kind":"tool"`), "callId", s.get(mCallID)), '}')
	m = append(jsonwire.AppendRawMember(m, "source", source), '}')
	data := jsonwire.AppendRawMember(rest(e.Data, mCallID, mContent, mIsError), "message", m)
	return e.Upgraded(outcrop.TypeToolResult, append(data, '}'))
}

func resultID(data []byte) string {
	id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(data, "message"), "id"))
	return id
}

// resultIDs reads the ids of the current-shape tool/result messages before a
// seq. It happens once in a log that mixes shapes, when the first old
// tool/result comes.
func (r *Reader) resultIDs(before outcrop.Seq) map[outcrop.Seq]string {
	ids := map[outcrop.Seq]string{}
	again := *r
	again.check, again.raw = false, true
	again.begin, again.first = 0, 0
	for rec, err := range again.Records() {
		if err != nil || rec.Seq >= before {
			break
		}
		if rec.Type == outcrop.TypeToolResult && hasMessage(rec.Data) {
			ids[rec.Seq] = resultID(rec.Data)
		}
	}
	return ids
}
