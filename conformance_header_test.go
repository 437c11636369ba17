package outcrop_test

import (
	"errors"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

func TestHeaderVectors(t *testing.T) {
	vectors(t, "header", func(t *testing.T, v vector) {
		switch v.text("kind") {
		case "line":
			headerLine(t, v)
		case "session":
			headerSession(t, v)
		default:
			t.Fatal("unknown kind")
		}
	})
}

func headerLine(t *testing.T, v vector) {
	h, err := outcrop.ParseHeader([]byte(v.text("line")))
	got, want := classOfErr(err), v.text("expect", "load", "errorClass")
	if why, listed := differs("header", v.name); listed {
		if got == want {
			t.Errorf("does not differ any more (%s)", why)
		}
		return
	}
	if got != want {
		t.Fatalf("load: %q, want %q", got, want)
	}
	if v.yes("expect", "load", "unsupported") != errors.Is(err, outcrop.ErrUnsupported) {
		t.Errorf("error %v: unsupported must be %v", err, v.yes("expect", "load", "unsupported"))
	}
	if err == nil && string(h.Line()) != v.text("line") {
		t.Errorf("the line is not kept: %q", h.Line())
	}
	loose, err := outcrop.ParseHeaderLoose([]byte(v.text("line")))
	if !v.yes("expect", "list", "ok") {
		if err == nil {
			t.Error("list: accepted")
		}
		return
	}
	if err != nil && !errors.Is(err, outcrop.ErrUnsupported) {
		t.Errorf("list: %v", err)
	}
	if want := v.text("expect", "list", "header", "id"); loose.ID != want {
		t.Errorf("list: id %q, want %q", loose.ID, want)
	}
	if err == nil {
		sameHeader(t, loose, v.get("expect", "list", "header"))
	}
}

// headerSession makes the header in two ways: as a value, when its members can
// be told in Go at all, and as a line.
func headerSession(t *testing.T, v vector) {
	raw := v.get("header")
	want := v.text("expect", "errorClass")
	if restored := v.get("expect", "restore"); restored != nil {
		want = v.text("expect", "restore", "errorClass")
	}
	if h, ok := headerValue(raw); ok {
		s, err := outcrop.New(h, outcrop.Options{})
		got := classOfErr(err)
		if got == "unsupported-version" {
			got = "header-version"
		}
		why, listed := differs("header", v.name)
		switch {
		case listed && want != "" && got == want:
			t.Errorf("does not differ any more (%s)", why)
		case !listed && got != want:
			t.Errorf("new: %q, want %q", got, want)
		}
		if err == nil && v.yes("expect", "ok") {
			sameHeader(t, s.Header(), v.get("expect", "header"))
			if line := v.text("expect", "headerLine"); string(h.Line()) != line {
				t.Errorf("line %s\nwant %s", h.Line(), line)
			}
		}
		return
	}
	// Go cannot hold it; as a line it must be refused.
	_, listed := differs("header", v.name)
	if _, err := outcrop.ParseHeader(asLine(raw)); (err == nil) != (want == "") != listed {
		t.Errorf("line %s: error %v, want class %q", asLine(raw), err, want)
	}
}

// asLine makes a header line of a header that has no type and may lack the
// depth, as dsh's writer does.
func asLine(raw []byte) []byte {
	if jsonwire.Kind(raw) != '{' {
		return raw
	}
	line := []byte(`{"type":"session"`)
	depth := false
	for k, m := range jsonwire.Members(raw) {
		if string(k) == "type" {
			continue
		}
		depth = depth || string(k) == "delegationDepth"
		line = jsonwire.AppendRawMember(line, string(k), m)
	}
	if !depth {
		line = jsonwire.AppendIntMember(line, "delegationDepth", 0)
	}
	return append(line, '}')
}

// headerValue makes a Header of its JSON form when each member has the type
// that Go's has.
func headerValue(raw []byte) (h outcrop.Header, ok bool) {
	if jsonwire.Kind(raw) != '{' || jsonwire.Get(raw, "version") == nil || jsonwire.Get(raw, "id") == nil || jsonwire.Get(raw, "createdAt") == nil {
		return h, false
	}
	for k, m := range jsonwire.Members(raw) {
		n, isInt := jsonwire.Int(m)
		if string(m) == "9007199254740992" {
			n, isInt = 1<<53, true
		}
		s, isText := jsonwire.Text(m)
		isInt = isInt && !jsonwire.IsNegativeZero(m)
		switch string(k) {
		case "version":
			h.Version, ok = n, isInt
		case "id":
			h.ID, ok = s, isText
		case "createdAt":
			h.CreatedAt, ok = n, isInt
		case "cwd":
			h.Cwd, ok = &s, isText
		case "parentSession":
			h.ParentSession, ok = &s, isText
		case "seedLength":
			h.SeedLength, ok = &n, isInt
		case "origin":
			h.Origin, ok = s, isText
		case "delegationDepth":
			h.DelegationDepth, ok = n, isInt
		case "agentPreset":
			h.AgentPreset, ok = &s, isText
		default:
			ok = true // an unknown member; a value made in Go has none
		}
		if !ok {
			return h, false
		}
	}
	return h, true
}

// sameHeader compares the members that the vectors name.
func sameHeader(t *testing.T, h outcrop.Header, want []byte) {
	t.Helper()
	line := h.Line()
	for k, m := range jsonwire.Members(want) {
		got := jsonwire.Get(line, string(k))
		if string(k) == "note" && got == nil {
			continue // not a member of a value made in Go
		}
		if !sameJSON(got, m) {
			t.Errorf("header member %s is %s, want %s", k, got, m)
		}
	}
}
