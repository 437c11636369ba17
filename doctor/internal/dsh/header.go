package dsh

import (
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Header is a header line as dsh 0.1 judges it, in two stages: early when
// the file is read, late when a session is made from what was read.
type Header struct {
	early, late string // class of the refusal, or ""
	ID          string
	Cwd         string
	HasCwd      bool
}

func readHeader(line []byte) (h Header) {
	if jsonwire.Valid(line) != nil {
		h.early = "file-header-json"
		return h
	}
	m := map[string][]byte{}
	for k, v := range jsonwire.Members(line) {
		m[jsonwire.Key(k)] = v
	}
	natural := func(name string) bool {
		n, ok := jsonwire.Int(m[name])
		return ok && n >= 0
	}
	strictNatural := func(name string) bool { return natural(name) && !jsonwire.IsNegativeZero(m[name]) }
	version, whole := jsonwire.Int(m["version"])
	switch {
	case jsonwire.Kind(line) != '{', jsonwire.Kind(m["version"]) != '0':
		h.early = "file-header-shape"
		return h
	case !whole || version != 0:
		h.early = "unsupported-version"
		return h
	case m["sandboxMode"] != nil || m["approvalPolicy"] != nil:
		h.early = "headerline-retired-fields"
		return h
	}
	isText := func(name string) bool { return jsonwire.Kind(m[name]) == '"' }
	if !jsonwire.TextIs(m["type"], "session") || !isText("id") ||
		!strictNatural("createdAt") || !strictNatural("delegationDepth") ||
		m["origin"] != nil && !jsonwire.TextIs(m["origin"], "subagent") ||
		m["agentPreset"] != nil && !isText("agentPreset") {
		h.early = "file-header-shape"
		return h
	}
	h.ID, _ = jsonwire.Text(m["id"])
	h.Cwd, h.HasCwd = jsonwire.Text(m["cwd"])
	switch {
	case m["cwd"] != nil && !h.HasCwd:
		h.late = "header-cwd-type"
	case h.HasCwd && !strings.HasPrefix(h.Cwd, "/"):
		h.late = "header-cwd-relative"
	case m["parentSession"] != nil && !isText("parentSession"):
		h.late = "header-parent"
	case m["seedLength"] != nil && !natural("seedLength"):
		h.late = "header-seed-length"
	}
	return h
}
