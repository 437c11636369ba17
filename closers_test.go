package outcrop

import (
	"errors"
	"fmt"
	"testing"
)

// What opening a session appends must be readable again: an open turn whose
// numbers no turn/end may carry makes the log damaged, not continued.
func TestAnOpenTurnThatNothingCanCloseIsNotContinued(t *testing.T) {
	head := Header{ID: "s"}
	for _, c := range []struct {
		name, turn, step string
		start            Seq
	}{
		{"a turn without a number", `{}`, "", 0},
		{"turn 0", `{"turn":0}`, "", 0},
		{"a turn that is no number", `{"turn":"1"}`, `{"turn":"1","step":1}`, 0},
		{"a turn beyond a double", `{"turn":1e999}`, "", 0},
		{"no data at all", `null`, "", 0},
		{"a step beyond a double", `{"turn":1}`, `{"turn":1,"step":1e999}`, 0},
		{"a good turn and step", `{"turn":1}`, `{"turn":1,"step":1}`, -1},
		{"a good turn", `{"turn":7}`, "", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := []string{`{"type":"turn/start","seq":0,"time":1,"data":` + c.turn + `}`}
			if c.step != "" {
				for i, typ := range []Type{TypeStepStart, TypeStepEnd, TypeStepStart} {
					lines = append(lines, fmt.Sprintf(`{"type":%q,"seq":%d,"time":1,"data":%s}`, typ, i+1, c.step))
				}
			}
			records := func(yield func(Record, error) bool) {
				for _, line := range lines {
					ev, err := DecodeEvent([]byte(line))
					if !yield(Record{Event: ev}, err) {
						return
					}
				}
			}
			seen, err := Inspect(head, records, Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := Restore(head, records, Options{})
			if c.start < 0 {
				if err != nil || CheckClosers(seen.Log()) != nil {
					t.Fatalf("%v, %v", err, CheckClosers(seen.Log()))
				}
				if _, _, open := OpenTurn(s.Log()); open {
					t.Fatal("the turn is open")
				}
				return
			}
			for _, err := range []error{err, CheckClosers(seen.Log())} {
				var e *Error
				if !errors.As(err, &e) || e.Code != "TURN_NOT_CLOSABLE" || e.Seq != c.start || !errors.Is(err, ErrDamaged) {
					t.Errorf("got %v", err)
				}
			}
			if length, interrupted := ForkPoint(seen.Log(), Seq(len(lines)-1)); c.step != "" && c.turn == `{"turn":"1"}` && (length != 0 || interrupted) {
				t.Errorf("a fork takes %d events, interrupted %v", length, interrupted)
			}
		})
	}
}
