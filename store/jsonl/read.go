package jsonl

import (
	"io"
	"io/fs"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// Log is a log file opened for reading: as many bytes of it as it had then.
type Log struct {
	f    faultfs.File
	info fs.FileInfo
	path string
	r    *wire.Reader
	stop wire.Pos // of the record at which the reader of Records stopped
}

// openLog opens a log file and reads its header.
func openLog(disk faultfs.FS, path string, enc wire.Encoding) (*Log, error) {
	f, fi, err := openBytes(disk, path)
	if err != nil {
		return nil, err
	}
	r, err := wire.NewReader(f, fi.Size(), enc)
	if err != nil {
		f.Close()
		return nil, at(path, err)
	}
	return &Log{f: f, info: fi, path: path, r: r}, nil
}

// openBytes opens the file of a log. What is not a regular file is refused
// (FILE_KIND) and not opened: the opening of a pipe waits for its writer, that of
// a device may do anything.
func openBytes(disk faultfs.FS, path string) (faultfs.File, fs.FileInfo, error) {
	fi, err := disk.Stat(path)
	if err != nil {
		return nil, nil, pathProblem("read", path, err)
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, &outcrop.Error{Op: "read", Path: path, Code: "FILE_KIND", Seq: -1, Offset: -1, Err: outcrop.ErrRefused,
			Msg: "not a regular file but " + kindOf(fi.Mode()), Hint: "name a log file, " + logName(wire.Plain) + " or " + logName(wire.Zstd)}
	}
	f, err := faultfs.Open(disk, path)
	if err != nil {
		return nil, nil, pathProblem("read", path, err)
	}
	if fi, err = f.Stat(); err != nil {
		f.Close()
		return nil, nil, pathProblem("read", path, err)
	}
	return f, fi, nil
}

// Bytes is a file that is open for reading.
type Bytes interface {
	io.ReaderAt
	io.Closer
}

// OpenBytes opens a file for who reads the bytes of a log without taking them
// for one. What is not a regular file is refused (FILE_KIND).
func OpenBytes(path string) (Bytes, fs.FileInfo, error) { return openBytes(faultfs.Real, path) }

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "a device"
}

// at adds the path to an error about a log file; nil stays nil.
func at(path string, err error) error {
	if err == nil {
		return nil
	}
	e := store.Problem("read", "", err, "", "")
	e.Path = path
	return e
}

// Header is the log's header.
func (l *Log) Header() outcrop.Header { return l.r.Header() }

// Path is the file.
func (l *Log) Path() string { return l.path }

// Size is how many bytes the file had when it was opened.
func (l *Log) Size() int64 { return l.info.Size() }

// Reader is the decoder beneath, which also knows places and warnings.
func (l *Log) Reader() *wire.Reader { return l.r }

// Records is store.Stored's. The errors say the path.
func (l *Log) Records() iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r, err := range l.r.Records() {
			if err != nil {
				err = at(l.path, err)
			}
			if !yield(r, err) {
				l.stop = l.r.Pos()
				return
			}
		}
	}
}

// Stopped is store.Placed's.
func (l *Log) Stopped() (path string, line int, offset int64) {
	return l.path, l.stop.Line, l.stop.Offset
}

// Tail is store.Stored's.
func (l *Log) Tail() store.Tail { return tailOf(l.r.Tail(), l.info.Size()) }

// Close closes the file.
func (l *Log) Close() error { return l.f.Close() }
