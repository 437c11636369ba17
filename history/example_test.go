package history_test

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/message"
)

// A session is made smaller by hand, without a model.
func Example() {
	s, err := outcrop.New(outcrop.NewHeader("s1", 1000, "/srv/demo"), outcrop.Options{})
	if err != nil {
		panic(err)
	}
	for _, text := range []string{"Read a.txt.", "Read b.txt.", "And c.txt?"} {
		for range 100 {
			text += " It is important."
		}
		m := message.Message{Content: []message.Block{message.Text(text)}, Source: message.FromUser}
		if _, err := s.AppendSurface(outcrop.UserMessage{Message: m}, outcrop.Tail, outcrop.NoSources); err != nil {
			panic(err)
		}
	}
	m, err := history.NewManager(history.Options{})
	if err != nil {
		panic(err)
	}
	rep, err := m.Compact(context.Background(), history.Direct(s), history.Request{Start: 0, End: 1, ModelFree: true})
	if err != nil {
		panic(err)
	}
	e := rep.Edits[0]
	fmt.Println("nodes", e.Shadowed, "became", e.Replacement, "and the surface is", s.Surface().Nodes())
	fmt.Println("smaller:", e.TokensAfter < e.TokensBefore, "by a model:", !e.ModelFree)
	// Output:
	// nodes [0 1] became 5 and the surface is [5 2]
	// smaller: true by a model: false
}
