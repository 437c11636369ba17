package outcrop_test

import (
	"bytes"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

func TestRequestVectors(t *testing.T) {
	vectors(t, "request", func(t *testing.T, v vector) {
		switch v.text("kind") {
		case "fold":
			requestFold(t, v)
		case "canonical":
			got := outcrop.CanonicalHeader(v.get("header"))
			if !sameJSON(got, v.get("expect")) {
				t.Errorf("canonical %s, want %s", got, v.get("expect"))
			}
		case "equals":
			a, b := v.get("a"), v.get("b")
			if got := outcrop.EqualHeaders(a, b); got != v.yes("expect", "equal") {
				t.Errorf("equal is %v", got)
			}
			if got := outcrop.EqualHeaders(outcrop.CanonicalHeader(a), outcrop.CanonicalHeader(b)); got != v.yes("expect", "canonicalEqual") {
				t.Errorf("equal in canonical form is %v", got)
			}
		default:
			t.Fatal("unknown kind")
		}
	})
}

// requestFold appends the events one by one: the session's header, the one
// folded from the log, and what the case says agree after each.
func requestFold(t *testing.T, v vector) {
	l, err := newLive(outcrop.NewHeader("s", 1, ""), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	headers, at := spans(v.get("expect", "headers")), spans(v.get("expect", "perPrefix"))
	check := func(n int) {
		t.Helper()
		want, _ := jsonwire.Int(at[n])
		got, ok := l.RequestHeader()
		again, okAgain := outcrop.RequestHeaderAt(l.Log(), outcrop.Seq(n-1))
		if ok != okAgain || got.Seq != again.Seq || !bytes.Equal(got.Raw, again.Raw) || got.Reason != again.Reason {
			t.Fatalf("after %d events: the session has %s, the log gives %s", n, got.Raw, again.Raw)
		}
		if ok != (want >= 0) {
			t.Fatalf("after %d events: header is there: %v, want index %d", n, ok, want)
		}
		if ok && !sameJSON(outcrop.CanonicalHeader(got.Raw), headers[want]) {
			t.Fatalf("after %d events: header %s, want %s", n, got.Raw, headers[want])
		}
		// The whole request: header and messages.
		f, err := outcrop.FoldSurface(l.Log().Records(0))
		if err != nil {
			t.Fatal(err)
		}
		sameAsFold(t, l.Session, f)
		if digest := l.RequestDigest(); ok && digest != outcrop.DigestOf(got.Raw, outcrop.DeriveMessages(l.Log(), f.Nodes)) {
			t.Fatalf("after %d events: digest %s", n, digest)
		}
	}
	check(0)
	for i, line := range v.events() {
		e, err := outcrop.DecodeEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.add(standIn(e)); err != nil {
			t.Fatal(err)
		}
		check(i + 1)
	}
	got, ok := l.RequestContext()
	want := v.get("expect", "requestContext")
	if ok != (jsonwire.Kind(want) == '{') {
		t.Fatalf("request context is there: %v, want %s", ok, want)
	}
	if !ok {
		return
	}
	w := vector{raw: want}
	window := w.num("contextWindow")
	if w.get("contextWindow") == nil {
		window = 0
	}
	if got.Provider != w.text("provider") || got.Model != w.text("model") || got.ContextWindow != window {
		t.Errorf("request context %+v, want %s", got, want)
	}
	// Any prefix can be asked for at any time.
	for n := range at {
		h, ok := outcrop.RequestHeaderAt(l.Log(), outcrop.Seq(n-1))
		if i, _ := jsonwire.Int(at[n]); ok != (i >= 0) || ok && !sameJSON(outcrop.CanonicalHeader(h.Raw), headers[i]) {
			t.Errorf("the header after %d events is %s", n, h.Raw)
		}
	}
}
