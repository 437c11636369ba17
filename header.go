package outcrop

import (
	"bytes"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// FormatVersion is the session format that this program reads and writes.
const FormatVersion = 0

// Header is the first line of a log. It never changes. A header that was read
// keeps its line, unknown members included.
type Header struct {
	Version         int64
	ID              string
	CreatedAt       int64   // Unix milliseconds, not negative
	Cwd             *string // absolute path; nil when the session has none
	ParentSession   *string // the session that this one was forked from
	ParentFormat    int64   // the session format in which the parent was stored, when that is a later one of dsh; seqs of the parent that this log names are those of its view
	SeedLength      *int64  // how many leading events were inherited
	Origin          string  // "" or "subagent"
	DelegationDepth int64
	AgentPreset     *string
	Outcrop         int64 // 1: an own session, which may hold context/message

	// Format is the session format of the log from which the header was read,
	// when that is a later one of dsh: its events are seen as events of format
	// 0, under the seqs of that view, and it is never written. It is no member
	// of the header.
	Format int64

	line []byte
}

// NewHeader makes the header of an own session. cwd may be empty.
func NewHeader(id string, createdAt int64, cwd string) Header {
	h := Header{ID: id, CreatedAt: createdAt, Outcrop: 1}
	if cwd != "" {
		h.Cwd = &cwd
	}
	return h
}

// Compatible reports whether the session must stay readable for dsh: only
// dsh's types are written then, other types only as ignorable.
func (h Header) Compatible() bool { return h.Outcrop == 0 }

// Line is the header as it is stored, without a newline: the bytes that it
// came with, else its members in dsh's order.
func (h Header) Line() []byte {
	if h.line != nil {
		return h.line
	}
	b := []byte(`{"type":"session"`)
	b = jsonwire.AppendIntMember(b, "version", h.Version)
	b = jsonwire.AppendStringMember(b, "id", h.ID)
	b = jsonwire.AppendIntMember(b, "createdAt", h.CreatedAt)
	if h.Cwd != nil {
		b = jsonwire.AppendStringMember(b, "cwd", *h.Cwd)
	}
	if h.ParentSession != nil {
		b = jsonwire.AppendStringMember(b, "parentSession", *h.ParentSession)
	}
	if h.ParentFormat != 0 {
		b = jsonwire.AppendIntMember(b, "parentFormat", h.ParentFormat)
	}
	if h.SeedLength != nil {
		b = jsonwire.AppendIntMember(b, "seedLength", *h.SeedLength)
	}
	if h.Origin != "" {
		b = jsonwire.AppendStringMember(b, "origin", h.Origin)
	}
	b = jsonwire.AppendIntMember(b, "delegationDepth", h.DelegationDepth)
	if h.AgentPreset != nil {
		b = jsonwire.AppendStringMember(b, "agentPreset", *h.AgentPreset)
	}
	if h.Outcrop != 0 {
		b = jsonwire.AppendIntMember(b, "outcrop", h.Outcrop)
	}
	return append(b, '}')
}

// ParseHeader reads a header line. It refuses, in this order: text that is not
// JSON (HEADER_NOT_JSON) or no session header (HEADER_SHAPE), another version
// (HEADER_VERSION, wraps ErrUnsupported), retired members (HEADER_RETIRED), and
// members out of contract (HEADER_ID ... HEADER_AGENT_PRESET).
func ParseHeader(line []byte) (Header, error) {
	h, err := parseHeader(line)
	if err != nil {
		return h, err
	}
	if err := h.check(); err != nil {
		return h, err
	}
	return h, nil
}

// ParseHeaderLoose reads a header line for a listing: only what a line must
// have to be a header at all is judged, another version is returned with its
// error and as much of the header as could be read.
func ParseHeaderLoose(line []byte) (Header, error) { return parseHeader(line) }

func parseHeader(line []byte) (Header, error) {
	h := Header{line: bytes.Clone(line)}
	if err := jsonwire.Valid(line); err != nil {
		return h, refuse("HEADER_NOT_JSON", -1, "the first line is not JSON: "+err.Error())
	}
	m := map[string][]byte{}
	for k, v := range jsonwire.Members(h.line) {
		m[jsonwire.Key(k)] = v
	}
	kind := func(name string) byte { return jsonwire.Kind(m[name]) }
	shape := func(msg string) (Header, error) { return h, refuse("HEADER_SHAPE", -1, msg) }
	if jsonwire.Kind(line) != '{' {
		return shape("the first line is not a session header")
	}
	id, isText := jsonwire.Text(m["id"])
	h.ID = id
	if kind("version") != '0' {
		return shape("the first line is not a session header: no version number")
	}
	if v, ok := jsonwire.Int(m["version"]); !ok || v != FormatVersion {
		h.Version = v
		return h, versionError(string(m["version"]), v, ok)
	}
	if !jsonwire.TextIs(m["type"], rowSession) {
		return shape("the first line is not a session header: type is not session")
	}
	if m["sandboxMode"] != nil || m["approvalPolicy"] != nil {
		return h, refuse("HEADER_RETIRED", -1, "the header has retired members (sandboxMode, approvalPolicy)")
	}
	if !isText {
		return shape("the header has no id")
	}
	n, ok := jsonwire.Int(m["createdAt"])
	if !ok || n < 0 || jsonwire.IsNegativeZero(m["createdAt"]) {
		return shape("createdAt is not a time in milliseconds")
	}
	h.CreatedAt = n
	n, ok = jsonwire.Int(m["delegationDepth"])
	if !ok || n < 0 || jsonwire.IsNegativeZero(m["delegationDepth"]) {
		return shape("delegationDepth is not a non-negative integer")
	}
	h.DelegationDepth = n
	if v := m["origin"]; v != nil {
		if !jsonwire.TextIs(v, "subagent") {
			return shape(`origin is not "subagent"`)
		}
		h.Origin = "subagent"
	}
	if v := m["agentPreset"]; v != nil {
		s, ok := jsonwire.Text(v)
		if !ok {
			return shape("agentPreset is not a string")
		}
		h.AgentPreset = &s
	}
	// What follows is judged when a session is made from the header.
	if v := m["cwd"]; v != nil {
		if s, ok := jsonwire.Text(v); ok {
			h.Cwd = &s
		} else {
			return h, refuse("HEADER_CWD_TYPE", -1, "cwd is not a string")
		}
	}
	if v := m["parentSession"]; v != nil {
		if s, ok := jsonwire.Text(v); ok {
			h.ParentSession = &s
		} else {
			return h, refuse("HEADER_PARENT", -1, "parentSession is not a string")
		}
	}
	if v := m["parentFormat"]; v != nil {
		if n, ok := jsonwire.Int(v); ok && n > 0 {
			h.ParentFormat = n
		}
	}
	if v := m["seedLength"]; v != nil {
		n, ok := jsonwire.Int(v)
		if !ok || n < 0 {
			return h, refuse("HEADER_SEED_LENGTH", -1, "seedLength is not a non-negative integer")
		}
		h.SeedLength = &n
	}
	if v := m["outcrop"]; v != nil {
		if n, ok := jsonwire.Int(v); ok && n > 0 {
			h.Outcrop = n
		}
	}
	return h, nil
}

func versionError(tok string, v int64, whole bool) error {
	e := &Error{Code: "HEADER_VERSION", Seq: -1, Offset: -1, Err: ErrUnsupported}
	switch {
	case whole && v > 0 && v <= 4:
		e.Msg = "session format " + tok + " is a later format of dsh and not format 0"
		e.Hint = "package wire reads it; no session goes on in it"
	case whole && v < 0:
		e.Msg = "session format " + tok + " is older than format 0"
		e.Hint = "there is no way to upgrade it"
	default:
		e.Msg = "session format " + tok + " is newer than the formats 0 to 4, which this version reads"
		e.Hint = "upgrade outcrop"
	}
	return e
}

// check judges the members in the order in which a session is constructed.
func (h *Header) check() error {
	switch {
	case h.Version != FormatVersion:
		return refuse("HEADER_VERSION", -1, "version must be 0")
	case h.CreatedAt < 0 || h.CreatedAt > jsonwire.MaxSafe:
		return refuse("HEADER_CREATED_AT", -1, "createdAt is not a time in milliseconds")
	case h.Cwd != nil && !absolute(*h.Cwd):
		return refuse("HEADER_CWD_RELATIVE", -1, "cwd is not an absolute path: "+*h.Cwd)
	case h.SeedLength != nil && *h.SeedLength < 0:
		return refuse("HEADER_SEED_LENGTH", -1, "seedLength is negative")
	case h.Origin != "" && h.Origin != "subagent":
		return refuse("HEADER_ORIGIN", -1, `origin is not "subagent"`)
	case h.DelegationDepth < 0:
		return refuse("HEADER_DELEGATION_DEPTH", -1, "delegationDepth is negative")
	}
	return nil
}

// absolute accepts POSIX paths and, so that a log written there can be read
// anywhere, Windows drive and network paths.
func absolute(p string) bool {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\\`) {
		return true
	}
	return len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') &&
		(p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}

// Child is the header of a fork of h after its first seedLength events: it
// keeps cwd, depth, origin, preset and the own-session member, and names the
// format of a parent that is stored in a later one.
func (h Header) Child(id string, createdAt, seedLength int64) Header {
	parent := h.ID
	return Header{
		ID: id, CreatedAt: createdAt, Cwd: h.Cwd, ParentSession: &parent, ParentFormat: h.Format, SeedLength: &seedLength,
		Origin: h.Origin, DelegationDepth: h.DelegationDepth, AgentPreset: h.AgentPreset, Outcrop: h.Outcrop,
	}
}
