package wire_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// A log in format 3 of dsh is read as events of format 0.
func ExampleReader() {
	file := `{"type":"session","version":3,"id":"s1","createdAt":1,"isSeeded":false,"delegationDepth":0}
{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}
{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}
{"type":"assistant/attempt","seq":2,"time":9,"data":{"turn":1,"step":1,"stream":[{"type":"text-chunks","time0":5,"index":0,"dt":[1],"texts":["Go"," on"]}]}}
`
	r, err := wire.NewReader(strings.NewReader(file), int64(len(file)), wire.Plain)
	if err != nil {
		panic(err)
	}
	fmt.Println("format", r.Format())
	for rec, err := range r.Records() {
		if err != nil {
			panic(err)
		}
		for e := range rec.Events() {
			own, _ := r.Own(e.Seq)
			fmt.Println(e.Seq, "from", own, e.Type, string(e.Data))
		}
	}
	// Output:
	// format 3
	// 0 from 0 turn/start {"turn":1}
	// 1 from 1 step/start {"turn":1,"step":1}
	// 2 from 2 assistant/chunk {"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"Go"}}
	// 3 from 2 assistant/chunk {"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":" on"}}
}

// A session goes back to dsh.
func ExampleWriteFormat3() {
	s, err := outcrop.New(outcrop.Header{ID: "s1", CreatedAt: 1}, outcrop.Options{})
	if err != nil {
		panic(err)
	}
	for _, p := range []outcrop.LogPayload{outcrop.TurnStart{Turn: 1}, outcrop.StepStart{Turn: 1, Step: 1}} {
		if _, err := s.Append(p); err != nil {
			panic(err)
		}
	}
	var file bytes.Buffer
	changes, err := wire.WriteFormat3(&file, wire.Plain, s.Header(), s.Log())
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(file.String()) {
		fmt.Fprintf(os.Stdout, "%.72s\n", strings.TrimSpace(line))
	}
	fmt.Println(len(changes), "changes")
	// Output:
	// {"type":"session","version":3,"id":"s1","createdAt":1,"isSeeded":false,"
	// {"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}
	// {"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}
	// {"type":"system/message","seq":2,"time":1,"data":{"turn":1,"step":1,"mes
	// 0 changes
}
