package pin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/message"
)

func session(t *testing.T) *outcrop.Session {
	t.Helper()
	s, err := outcrop.New(outcrop.NewHeader("s", 1, "/"), outcrop.Options{Now: func() int64 { return 1 }, NewID: func() string { return "id" }})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		say(t, s, outcrop.Tail, outcrop.NoSources)
	}
	return s
}

func say(t *testing.T, s *outcrop.Session, op outcrop.SurfaceOp, src outcrop.Sources) {
	t.Helper()
	_, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{ID: "m", Role: message.User,
		Content: []message.Block{message.Text("x")}, Source: message.FromUser}}, op, src)
	if err != nil {
		t.Fatal(err)
	}
}

func of(s *outcrop.Session) pin.State { return pin.Of(s.Log(), s.Surface().Nodes()) }

func TestTheLastWordAboutANodeCounts(t *testing.T) {
	s := session(t)
	for _, n := range []outcrop.Seq{2, 0} {
		if changed, err := pin.Set(s, n); !changed || err != nil {
			t.Fatal(changed, err)
		}
	}
	if changed, err := pin.Set(s, 2); changed || err != nil {
		t.Errorf("pinned twice: %v, %v", changed, err)
	}
	if diff := cmp.Diff(pin.State{Held: []outcrop.Seq{0, 2}}, of(s)); diff != "" {
		t.Error(diff)
	}
	if err := pin.Unset(s, 0); err != nil {
		t.Error(err)
	}
	if err := pin.Unset(s, 0); outcrop.CodeOf(err) != pin.CodeNotPinned {
		t.Errorf("unpinned twice: %v", err)
	}
	if diff := cmp.Diff(pin.State{Held: []outcrop.Seq{2}}, of(s)); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyANodeOfTheSurfaceIsPinned(t *testing.T) {
	s := session(t)
	say(t, s, outcrop.Replace(0, 1), outcrop.SourcesOf(0, 1))
	if _, err := s.Append(outcrop.OutcropTag{Tag: "x", Set: true}); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[outcrop.Seq]string{
		1:  "event 1: it is covered by 4 (NODE_NOT_ON_SURFACE): pin 4",
		5:  "event 5: it is no node of the surface",
		99: "there is no event 99",
		-1: "there is no event -1",
	} {
		if _, err := pin.Set(s, node); outcrop.CodeOf(err) != pin.CodeNotOnSurface || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", node, err)
		}
	}
}

func TestAPinWhoseNodeWasCoveredIsLost(t *testing.T) {
	s := session(t)
	if _, err := pin.Set(s, 1); err != nil {
		t.Fatal(err)
	}
	say(t, s, outcrop.Replace(0, 1), outcrop.SourcesOf(0, 1))
	if diff := cmp.Diff(pin.State{Lost: []outcrop.Seq{1}}, of(s)); diff != "" {
		t.Error(diff)
	}
	if err := pin.Unset(s, 1); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(pin.State{}, of(s)); diff != "" {
		t.Error(diff)
	}
}

func TestAForkKeepsThePinsBelowItsCut(t *testing.T) {
	s := session(t)
	for _, n := range []outcrop.Seq{0, 1} {
		if _, err := pin.Set(s, n); err != nil {
			t.Fatal(err)
		}
	}
	_, log, err := outcrop.Fork(s.Header(), s.Log(), 4, "child", 2)
	if err != nil {
		t.Fatal(err)
	}
	child, err := outcrop.Seed(outcrop.NewHeader("child", 2, "/"), log, outcrop.Options{Now: func() int64 { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pin.State{Held: []outcrop.Seq{0}}, of(child)); diff != "" {
		t.Error(diff)
	}
}
