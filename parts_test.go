package outcrop

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is known of an event beforehand changes how its parts are found, not
// which.
func TestPartsOfAnEventAreTheSameHoweverTheyAreFound(t *testing.T) {
	types := rapid.SampledFrom([]Type{TypeTurnStart, TypeTurnEnd, TypeStepStart, TypeStepEnd, TypeAssistantChunk, TypeAssistantMessage, TypeToolCall, TypeToolResult, TypeUserMessage, TypeTodoWrite})
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"turn", "step", "callId", "message", "error", `\u0074urn`, "more"}), 0, 7, func(s string) string {
		return strings.ReplaceAll(s, `\u0074`, "t")
	})
	values := rapid.SampledFrom([]string{"1", "null", `"c1"`, `{"source":{"callId":"c2"},"content":[]}`, `{"turn":9}`})
	show := func(p parts) string { return fmt.Sprintf("%s|%s|%s|%s", p.turn, p.step, p.callID, p.content) }
	rapid.Check(t, func(t *rapid.T) {
		typ := types.Draw(t, "type")
		var members []string
		for _, n := range names.Draw(t, "names") {
			members = append(members, `"`+n+`":`+values.Draw(t, n))
		}
		line := fmt.Sprintf(`{"type":%q,"seq":0,"time":1,"data":{%s}}`, typ, strings.Join(members, ","))
		ev, err := DecodeEvent([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		// A turn bound belongs to no step.
		find := func() string {
			p := partsOf(&ev)
			if typ == TypeTurnStart || typ == TypeTurnEnd {
				p.step = nil
			}
			return show(p)
		}
		want := find()
		if id := lastMember(ev.Data, "turn"); typ == TypeStepStart && string(id) != strings.Split(want, "|")[0] {
			t.Fatalf("%s: %s, turn %s", line, want, id)
		}
		if ev.MarkDistinct(); find() != want {
			t.Fatalf("%s: %s when its names are known to be distinct, %s without", line, find(), want)
		}
	})
}

// A row in the usual spelling gives the coordinates of one in another.
func TestCoordinatesOfARowAreTheSameInAnySpelling(t *testing.T) {
	usual := `{"type":"text-chunks","seq0":1,"time0":5,"data":{"turn":12,"step":-3,"index":0,"dt":[],"texts":["a"]}}`
	for _, line := range []string{usual, strings.Replace(usual, `,"step"`, `, "step"`, 1)} {
		r, err := DecodeRun([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		turn, step := r.coordinates()
		if string(turn) != "12" || string(step) != "-3" || r.Usual() != (line == usual) {
			t.Errorf("%s: turn %s, step %s, usual %v", line, turn, step, r.Usual())
		}
	}
}
