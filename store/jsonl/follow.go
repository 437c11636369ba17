package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

var (
	_ store.Follower = (*Store)(nil)
	_ store.Follower = (*FileStore)(nil)
)

// Follow is store.Follower's.
func (s *Store) Follow(_ context.Context, id string) (store.Following, error) {
	f, err := s.find(id)
	if err != nil {
		return nil, err
	}
	if f.enc == "" {
		return nil, f.problem("read", id)
	}
	in, err := openLog(s.disk, f.path(), f.enc)
	if err != nil {
		return nil, err
	}
	return newFollowing(s.disk, in, f.enc), nil
}

// Follow is store.Follower's. An empty id stands for the session in the file.
func (s *FileStore) Follow(ctx context.Context, id string) (store.Following, error) {
	sd, err := s.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	return newFollowing(s.disk, sd.(*Log), s.enc), nil
}

// following reads a log file on from the last border, a line's or a frame's, at
// which it was whole.
type following struct {
	disk faultfs.FS
	in   *Log
	enc  wire.Encoding

	from int64        // everything before it was read
	base outcrop.Seq  // seq of the record that begins there
	next outcrop.Seq  // events below it were yielded
	last *wire.Reader // of a later format: what came to from, and goes on there
	seen fs.FileInfo  // of the file when there was nothing more in it
	torn bool         // the last Next left out a torn tail
}

func newFollowing(disk faultfs.FS, in *Log, enc wire.Encoding) *following {
	return &following{disk: disk, in: in, enc: enc, from: in.r.HeaderEnd()}
}

func (f *following) Header() outcrop.Header { return f.in.Header() }
func (f *following) Close() error           { return f.in.Close() }

// Torn reports whether the last Next left out a torn frame, of which a Stored of
// the log may recover events.
func (f *following) Torn() bool { return f.torn }

// Next is store.Following's.
func (f *following) Next(ctx context.Context) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		fi, err := f.look(ctx)
		if err == nil && f.seen != nil && fi.Size() == f.seen.Size() && fi.ModTime().Equal(f.seen.ModTime()) {
			return
		}
		var r *wire.Reader
		if err == nil {
			r, err = f.whole(fi.Size())
		}
		if err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		if f.read(r, yield) {
			f.seen = fi
			f.reached(r)
		}
	}
}

// reached notes the border to which a reader came.
func (f *following) reached(r *wire.Reader) {
	good := r.Tail().Good
	switch {
	case good <= f.from:
	case r.Format() < 2:
		f.from, f.base = good, f.next
	case r.Tail().Recovered == 0:
		f.from, f.last = good, r
	default:
		// What became of the events behind the border is known already.
		f.from, f.last = r.HeaderEnd(), nil
	}
}

// look sees how large the file is now. It must still be the one that was opened,
// and hold what was read of it.
func (f *following) look(ctx context.Context) (fs.FileInfo, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	fi, err := f.disk.Stat(f.in.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &outcrop.Error{Op: "follow", Session: f.Header().ID, Path: f.in.path, Code: outcrop.CodeSessionNotFound, Seq: -1, Offset: -1,
			Err: outcrop.ErrNotFound, Msg: "the log is gone"}
	case err != nil:
		return nil, pathProblem("follow", f.in.path, err)
	case !faultfs.SameFile(fi, f.in.info):
		return nil, f.moved("another file stands in its place")
	case fi.Size() < f.from:
		return nil, f.moved(fmt.Sprintf("it has %d bytes, and %d were read", fi.Size(), f.from))
	}
	return fi, nil
}

func (f *following) moved(how string) error {
	return &outcrop.Error{Op: "follow", Session: f.Header().ID, Path: f.in.path, Seq: -1, Offset: -1, Err: store.ErrMoved,
		Msg: "the log is not what it was: " + how, Hint: "look at it anew"}
}

// whole is a reader of what is new up to size, without a torn tail. Of a torn
// frame a reader gives the lines that it can decode; here they have to wait until
// the frame is complete and passes its checksum. Of plain text nothing behind the
// last newline is given anyway.
func (f *following) whole(size int64) (*wire.Reader, error) {
	f.torn = false
	r, err := f.reader(size)
	if err != nil || f.enc == wire.Plain {
		return r, err
	}
	// Most of the time one look at the end shows that it is whole.
	last, err := wire.LastEvents(f.in.f, size, f.enc)
	if err != nil {
		return nil, at(f.in.path, err)
	}
	if last.Known && !last.Torn {
		return r, nil
	}
	if f.last != nil {
		// A reader that goes on can read once.
		f.from, f.last = r.HeaderEnd(), nil
		if r, err = f.reader(size); err != nil {
			return nil, err
		}
	}
	for range r.Records() {
	}
	if !r.Tail().Torn {
		return r, nil // damage is for the second reading to tell
	}
	f.torn = true
	return f.reader(r.Tail().Good)
}

// read yields what is new, and reports whether it came to the end.
func (f *following) read(r *wire.Reader, yield func(outcrop.Record, error) bool) bool {
	first := true
	for rec, err := range r.Records() {
		if first && f.base > 0 && outcrop.CodeOf(err) == "SEQ_GAP" {
			yield(outcrop.Record{}, f.moved(fmt.Sprintf("another event than %d follows event %d", f.base, f.base-1)))
			return false
		}
		if err != nil {
			if !yield(rec, at(f.in.path, err)) {
				return false
			}
			continue
		}
		first = false
		for _, part := range behind(rec, f.next) {
			f.next = part.Last() + 1
			if !yield(part, nil) {
				return false
			}
		}
	}
	return true
}

// behind is what of a record is not below next.
func behind(rec outcrop.Record, next outcrop.Seq) []outcrop.Record {
	switch {
	case rec.Seq >= next:
		return []outcrop.Record{rec}
	case rec.Last() < next:
		return nil
	}
	var parts []outcrop.Record
	for i := int(next - rec.Run.First); i < rec.Run.Len; i++ {
		parts = append(parts, outcrop.Record{Event: rec.Run.At(i)})
	}
	return parts
}

// reader reads what the file has from f.from on, up to size.
func (f *following) reader(size int64) (*wire.Reader, error) {
	r, err := wire.NewReader(f.in.f, size, f.enc)
	if err != nil {
		return nil, at(f.in.path, err)
	}
	switch {
	case f.last != nil:
		r.GoOn(f.last)
	case f.from > r.HeaderEnd():
		r.Begin(f.from, f.base)
	}
	return r, nil
}
