// Package demo plays a small session with everything real but the model, and
// checks its own work.
//
// The model reads its replies from a script. There are three turns over the
// files of a workspace; after the second one a history edit prunes the big tool
// result, and another one compacts both turns. Then the log is written once more
// as a crash would have left it while the shell ran, and is repaired.
//
// What is checked in the end:
//
//   - the live surface is the fold from nothing, at every prefix of the log
//   - every request that the model got is rebuilt from the log, byte for byte,
//     and has the recorded digest
//   - the repair closes the call, the step and the turn, and runs nothing
//   - verify finds nothing in either log file
//
// All of it lies in one folder: work is the workspace, store the store, crash
// the log of the crash.
package demo

import (
	"context"
	"embed"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// data are the script that the demo's model plays, and the files of its
// workspace.
//
//go:embed data
var data embed.FS

var workFiles = []string{"notes.txt", "sites.txt", "todo.txt"}

var prompts = []string{
	"Read notes.txt and write a short report.",
	"How long is the report?",
	"Which finding matters most?",
}

const sessionID = "demo"

// Options are what the demo needs from outside.
type Options struct {
	// Dir is an empty folder that takes everything, by an absolute path.
	Dir string
	// Now is the clock, in Unix milliseconds.
	Now func() int64
	// Logger is told what the parts have to tell; nil is silent.
	Logger *slog.Logger
}

// Result is what the demo did and what it found.
type Result struct {
	Session string // its id
	Dir     string
	Store   string // address of the store

	Log        outcrop.Log
	Nodes      []outcrop.Seq // the live surface at the end
	Turns      []Turn
	Pruned     outcrop.Seq // the result that was pruned
	Prune      history.Edit
	Compaction history.Edit
	Crash      Crash

	Prefixes int // of the log that were checked
	Requests int // that the model got
	Rebuilt  int // of them from the log
	Faults   []string
}

// demo is one run.
type demo struct {
	Result
	o      Options
	header outcrop.Header
	sent   []llm.Request // what the model was given
	asked  int           // questions about calls
}

// Run plays the session, the crash and the checks. What does not hold is a
// fault of the result; an error means that it could not be played or checked.
func Run(ctx context.Context, o Options) (*Result, error) {
	d := &demo{o: o}
	d.Session, d.Dir = sessionID, o.Dir
	d.Store = "jsonl:" + d.dir("store")
	if err := d.lay(); err != nil {
		return nil, err
	}
	if err := d.session(ctx); err != nil {
		return nil, err
	}
	if err := d.crashAndRepair(ctx); err != nil {
		return nil, err
	}
	if err := d.check(ctx); err != nil {
		return nil, err
	}
	d.Turns, d.Requests = turns(d.Log), len(d.sent)
	return &d.Result, nil
}

func (d *demo) dir(name string) string { return filepath.Join(d.Dir, name) }

func (d *demo) files() jsonl.Options { return jsonl.Options{Program: "outcrop", Now: d.o.Now} }

// lay makes the workspace and the folder of the crash; the store makes its own.
func (d *demo) lay() error {
	for _, name := range [...]string{"work", "crash"} {
		if err := os.Mkdir(d.dir(name), 0o700); err != nil {
			return err
		}
	}
	for _, name := range workFiles {
		b, err := data.ReadFile("data/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.dir("work"), name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
