package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"sync"
)

// maxWorkers bounds the files that one grep searches at the same time.
const maxWorkers = 8

// searchAll searches the files below a directory, several at the same time, and
// gives what each has to add, in the order of the walk. It ends with the first
// error of add.
func searchAll(ctx context.Context, wk *walker, s spot, matches func(string) bool, search *searcher, add func(found) error) error {
	type job struct {
		name string
		out  chan found // holds the one value
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	jobs := make(chan job)
	queue := make(chan job, 8*workers) // jobs that were taken, in order
	wk.visit = func(name string, link bool) error {
		if link || !matches(name) {
			return nil
		}
		j := job{name, make(chan found, 1)}
		for _, c := range []chan job{jobs, queue} {
			select {
			case c <- j:
			case <-inner.Done():
				return inner.Err()
			}
		}
		return nil
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			var buf buffers
			for j := range jobs {
				j.out <- search.named(inner, s.root, j.name, &buf)
			}
		})
	}
	var walkErr error
	all.Go(func() {
		walkErr = wk.walk(inner, s.name)
		close(jobs)
		close(queue)
	})
	var err error
	for j := range queue {
		if f := <-j.out; err == nil {
			if err = add(f); err != nil {
				cancel()
			}
		}
	}
	all.Wait()
	if err != nil {
		return err
	}
	if walkErr != nil {
		return walkErr
	}
	return ctx.Err()
}

// named searches a file of a walk. What is gone or no file any more has
// nothing.
func (s *searcher) named(ctx context.Context, root *os.Root, name string, buf *buffers) found {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return found{name: name, failed: !errors.Is(err, fs.ErrNotExist)}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return found{name: name}
	}
	out, err := s.file(ctx, f, buf)
	out.name = name
	out.failed = err != nil
	return out
}
