package demo

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// Crash is what the crash left and the repair did.
type Crash struct {
	Path      string      // the log file
	LastEvent outcrop.Seq // last event that the crash left whole
	Tool      string      // whose call it cut
	Results   int         // closing results

	stored outcrop.Seq
	log    outcrop.Log // after the repair
	same   bool        // the workspace is as it was before
}

// crashAndRepair writes a log as a crash would have left it while the shell ran,
// with half a line at its end, opens it and closes it again.
func (d *demo) crashAndRepair(ctx context.Context) error {
	c := &d.Crash
	c.Path = filepath.Join(d.dir("crash"), "session.jsonl")
	c.LastEvent = -1
	for ev := range outcrop.Events(d.Log, 0) {
		if ev.Type == outcrop.TypeToolCall {
			c.LastEvent = ev.Seq // the last call is the shell's
			c.Tool, _ = jsonwire.Text(jsonwire.Get(ev.Data, "name"))
		}
	}
	if c.LastEvent < 0 {
		return errors.New("no call was made")
	}
	// The call was approved and is running.
	for c.LastEvent+1 < outcrop.Seq(d.Log.Len()) && d.Log.At(c.LastEvent+1).Type != outcrop.TypeToolResult {
		c.LastEvent++
	}
	enc := wire.NewEncoder(wire.Plain)
	b, err := enc.Batch(enc.Header(nil, d.header), outcrop.Prefix(d.Log, int(c.LastEvent)+1).Records(0))
	if err != nil {
		return err
	}
	next := d.Log.At(c.LastEvent + 1).AppendJSON(nil)
	if err := os.WriteFile(c.Path, append(b, next[:len(next)/2]...), 0o600); err != nil {
		return err
	}
	before, err := d.snapshot()
	if err != nil {
		return err
	}
	live, err := jsonl.OpenFile(ctx, c.Path, d.files(), store.Options{Session: outcrop.Options{Now: d.o.Now, Logger: d.o.Logger}})
	if err != nil {
		return err
	}
	c.log, c.stored = live.Session().Log(), live.Session().Stored()
	if err := errors.Join(live.Flush(ctx), live.Close(ctx)); err != nil {
		return err
	}
	after, err := d.snapshot()
	c.same = bytes.Equal(before, after)
	return err
}

// snapshot is everything in the workspace, one after the other.
func (d *demo) snapshot() (all []byte, err error) {
	err = filepath.WalkDir(d.dir("work"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(append(all, path...), b...)
		return err
	})
	return all, err
}
