package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Format is what one program writes.
type Format struct {
	Name  string // as --from takes it: "claude-code"
	Label string // for people: "Claude Code"
	// Home are the folders below a home directory where the program keeps its
	// sessions, slashes between their parts.
	Home []string
	// Claims says whether a file is a source of this format, by its path and its
	// first bytes (up to HeadBytes). It may open the file. A file that belongs
	// to another one's source is not claimed.
	Claims func(path string, head []byte) bool
	// Open makes the source of a file that was claimed, or that a person says
	// to be of this format. Nothing is read yet.
	Open func(path string) Source
}

// HeadBytes is how much of a file a format may see before it claims it.
const HeadBytes = 64 << 10

// Source is the least that is imported by itself: when it cannot be read, it is
// named and skipped.
type Source struct {
	Format string
	Path   string
	Size   int64 // in bytes, for progress; 0: that of the file at Path
	// Stamp changes when what Sessions would read does; "" or nil: it is read
	// each time. The default, for a source that is one file, is FileStamp.
	Stamp func() (string, error)
	// Sessions yields the sessions, parents before children. One is good until
	// the next is asked for. What belongs to no session is told to r, and how
	// far reading came, see Report.Advance. The source is never written to.
	Sessions func(ctx context.Context, r *Report) iter.Seq2[*Session, error]
}

// FileStamp is the stamp of a file: its size and its time.
func FileStamp(path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(fi.Size(), 10) + "." + strconv.FormatInt(fi.ModTime().UnixNano(), 10), nil
}

// Find yields the sources at a path, a file or a folder with all below it, in
// the order of their names. from names one format; "": each file is the first
// format's that claims it, and files of none are passed over. A file that was
// named itself may have any ending, its content tells; when it is nobody's, that
// is an error, and so is a folder that cannot be read. Symbolic links below a
// folder are not followed.
func Find(ctx context.Context, formats []Format, path, from string) iter.Seq2[Source, error] {
	return func(yield func(Source, error) bool) {
		fail := func(p string, err error, msg, hint string) bool {
			if pe := (*fs.PathError)(nil); msg == "" && errors.As(err, &pe) && pe.Path == p {
				msg = pe.Err.Error() // the path is said already
			}
			return yield(Source{Path: p}, &outcrop.Error{Op: "import", Path: p, Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint})
		}
		use := formats
		if from != "" {
			use = nil
			for _, f := range formats {
				if f.Name == from {
					use = []Format{f}
				}
			}
		}
		fi, err := os.Stat(path)
		if err != nil {
			fail(path, err, "", "")
			return
		}
		if !fi.IsDir() {
			if !fi.Mode().IsRegular() {
				// A pipe would be waited for, and a device has no end.
				fail(path, outcrop.ErrUnsupported, "it is neither a file nor a folder", "write what it holds into a file and import that")
				return
			}
			src, ok, err := claimNamed(use, path)
			switch {
			case err != nil:
				fail(path, err, "", "")
			case ok:
				yield(src, nil)
			case len(use) == 1 && from != "":
				yield(open(use[0], path, fi.Size()), nil) // as the person says
			default:
				fail(path, outcrop.ErrUnsupported, "it is no history of a program that can be imported from", "say which one with --from")
			}
			return
		}
		if to, err := filepath.EvalSymlinks(path); err == nil {
			path = to // a link that a person named is followed
		}
		err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				if !fail(p, err, "", "") {
					return fs.SkipAll
				}
				return nil
			}
			if !d.Type().IsRegular() {
				return nil
			}
			src, ok, err := claim(use, p)
			switch {
			case err != nil:
				if !fail(p, err, "", "") {
					return fs.SkipAll
				}
			case ok && !yield(src, nil):
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Source{Path: path}, err)
		}
	}
}

// claim finds the format of a file.
func claim(formats []Format, path string) (Source, bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return Source{}, false, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return Source{}, false, err
	}
	head := make([]byte, min(HeadBytes, fi.Size()))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return Source{}, false, err
	}
	for _, format := range formats {
		if format.Claims(path, head[:n]) {
			return open(format, path, fi.Size()), true, nil
		}
	}
	return Source{}, false, nil
}

func open(f Format, path string, size int64) Source {
	src := f.Open(path)
	src.Format = f.Name
	if src.Path == "" {
		src.Path = path
	}
	if src.Size == 0 {
		src.Size = size
	}
	if src.Stamp == nil {
		src.Stamp = func() (string, error) { return FileStamp(path) }
	}
	return src
}

// problem is an error about a source. line is 0 where there is none.
func problem(path string, line, offset int64, err error, msg string) error {
	return &outcrop.Error{Op: "import", Path: path, Line: int(line), Seq: -1, Offset: offset, Err: err, Msg: msg}
}

// Unreadable is the error for a source that is not what it should be. line and
// offset say where, from 1 and 0; offset -1 when there is none.
func Unreadable(path string, line, offset int64, format string, args ...any) error {
	return problem(path, line, offset, outcrop.ErrDamaged, fmt.Sprintf(format, args...))
}

// NoObject says why a line of a source is no record, from the error of reading
// it as a JSON object.
func NoObject(err error) string {
	if errors.Is(err, jsonwire.ErrDepth) {
		return fmt.Sprintf("a line whose values are nested more than %d deep", jsonwire.MaxReadDepth)
	}
	return "a line that is no JSON object"
}
