package outcrop_test

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// A session is a log with its surface. A replace takes nodes off the surface;
// their events stay in the log, and what the model saw before can be rebuilt.
func Example() {
	s, err := outcrop.New(outcrop.NewHeader("s1", 0, "/home/dev/project"), outcrop.Options{})
	if err != nil {
		panic(err)
	}
	say := func(text string) outcrop.UserMessage {
		return outcrop.UserMessage{Message: message.Message{
			Source: message.FromUser, Content: []message.Block{message.Text(text)},
		}}
	}
	first, _ := s.AppendSurface(say("Read the notes."), outcrop.Tail, outcrop.NoSources)
	second, _ := s.AppendSurface(say("And the plan."), outcrop.Tail, outcrop.NoSources)
	_, _ = s.AppendSurface(say("What is next?"), outcrop.Tail, outcrop.NoSources)

	// One event takes the place of two. It names them as its sources.
	_, err = s.AppendSurface(say("Notes and plan were read."),
		outcrop.Replace(first.Seq, second.Seq), outcrop.SourcesOf(first.Seq, second.Seq))
	if err != nil {
		panic(err)
	}
	fmt.Println("surface:", s.Surface().Nodes(), "of", s.Len(), "events")
	for _, m := range s.Messages() {
		parsed, _ := message.Parse(m.Raw)
		fmt.Printf("%d %s: %s\n", m.Seq, m.Role, message.PlainText(parsed.Content))
	}

	// The past is still there.
	before, _ := outcrop.SurfaceAt(s.Log(), 2)
	fmt.Println("at event 2:", before.Nodes)

	// A refused event leaves no trace.
	_, err = s.AppendSurface(say("Nowhere."), outcrop.Replace(first.Seq, first.Seq), outcrop.SourcesOf(first.Seq))
	fmt.Println(outcrop.CodeOf(err), s.Len())
	// Output:
	// surface: [3 2] of 4 events
	// 3 user: Notes and plan were read.
	// 2 user: What is next?
	// at event 2: [0 1 2]
	// SURFACE_START_MISSING 4
}
