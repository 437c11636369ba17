package exchange

import (
	"context"
	"iter"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// maxAtOnce bounds how many sources are read at once: each takes some megabytes.
const maxAtOnce = 8

// ahead is how many sources have begun for each that is read: some wait for
// others.
const ahead = 4

// ImportAll takes sources over, several at once, and yields what Import says of
// each, in their order. The result is that of one after another: a source whose
// name is that of an earlier one waits for it, and so does a session for the
// sources that the one is named after that it came from. An error of Import ends
// it. When it returns, nothing is running any more.
func (im *Importer) ImportAll(ctx context.Context, sources []Source) iter.Seq2[*Report, error] {
	return func(yield func(*Report, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		n := min(runtime.GOMAXPROCS(0), maxAtOnce)
		jobs := make([]job, len(sources))
		named := map[string][]int{} // the sources of a name, in order
		for i := range jobs {
			name := sourceName(sources[i].Path)
			jobs[i] = job{name: name, done: make(chan struct{})}
			if same := named[name]; len(same) > 0 {
				jobs[i].after = jobs[same[len(same)-1]].done
			}
			named[name] = append(named[name], i)
		}
		// Sources begin in their order, so that what one waits for has begun.
		room := make(chan struct{}, n)
		next := 0
		begin := func() {
			i := next
			next++
			all.Go(func() {
				j := &jobs[i]
				defer close(j.done)
				if j.after != nil {
					<-j.after
				}
				room <- struct{}{}
				defer func() { <-room }()
				if j.err = ctx.Err(); j.err != nil {
					j.report = &Report{Path: sources[i].Path, Program: sources[i].Format}
					return
				}
				j.report, j.err = im.source(ctx, sources[i], place{at: i, named: func(session string) {
					waitFor(jobs[max(0, i-ahead*n):i], session, room) // those before are done
				}})
			})
		}
		for i := range jobs {
			for next < len(jobs) && next < i+ahead*n {
				begin()
			}
			j := &jobs[i]
			<-j.done
			if !yield(j.report, j.err) || j.err != nil {
				return
			}
			j.report = nil
		}
	}
}

// job is the import of one source.
type job struct {
	name   string
	after  chan struct{} // of the source before it with the same name; nil: none
	done   chan struct{}
	report *Report
	err    error
}

// waitFor waits for the sources that a session is named after. Who waits leaves
// its room to others: what it waits for may not have got any yet.
func waitFor(before []job, session string, room chan struct{}) {
	session, _, _ = strings.Cut(session, "/")
	if session == "" {
		return
	}
	for i := range before {
		if j := &before[i]; strings.Contains(j.name, session) {
			select {
			case <-j.done:
			default:
				<-room
				<-j.done
				room <- struct{}{}
			}
		}
	}
}

// sourceName is what a source is known by: the name of its file, with that of its
// folder where each folder has a file of that name.
func sourceName(path string) string {
	name := filepath.Base(path)
	if len(name) < 24 {
		name = filepath.Base(filepath.Dir(path)) + "/" + name
	}
	return name
}
