package cli_test

import (
	"context"
	"slices"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/dshsqlite/dshsqlitetest"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// dshdbCommand writes log files into a SQLite file as dsh does: dshdb FILE
// SCHEMA LOG...
func dshdbCommand(ts *testscript.TestScript, _ bool, args []string) {
	schema, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	var all []dshsqlitetest.Session
	for _, name := range args[2:] {
		st, err := jsonl.File(ts.MkAbs(name), jsonl.Options{})
		ts.Check(err)
		s, _, err := store.Inspect(context.Background(), st, "", outcrop.Options{})
		ts.Check(err)
		all = append(all, dshsqlitetest.Session{Header: s.Header(), Events: slices.Collect(outcrop.Events(s.Log(), 0)), Batch: 100})
	}
	ts.Check(dshsqlitetest.Write(context.Background(), ts.MkAbs(args[0]), schema, all...))
}
