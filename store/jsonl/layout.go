package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

const (
	noCwd   = "_no-cwd"
	logStem = "session"
	// maxSlug is the longest project key without its four dashes, so that the
	// whole name fits in 255 bytes.
	maxSlug = 251
)

// ProjectKey is the name of the folder that holds the sessions of a working
// directory. Different directories may share one. cwd may hold lone surrogates
// in WTF-8. It answers "" for an empty cwd, which has no key.
func ProjectKey(cwd string) string {
	if cwd == "" {
		return ""
	}
	slug := make([]byte, 0, len(cwd)+8)
	dash := false
	for u := range codeUnits(cwd) {
		if u == '/' || u == '\\' || u == ':' {
			dash = true
			continue
		}
		if dash && len(slug) > 0 {
			slug = append(slug, '-')
		}
		dash = false
		if u == '-' && len(slug) == 0 {
			continue // leading dashes go
		}
		slug = appendUnit(slug, u)
	}
	if dash && len(slug) > 0 {
		slug = append(slug, '-')
	}
	if len(slug) == 0 {
		return "--root--"
	}
	return "--" + string(slug[:min(len(slug), maxSlug)]) + "--"
}

// EncodeSegment is the name of a session's folder. Different ids have different
// names. id may hold lone surrogates in WTF-8. It answers "" for an empty id,
// which has no folder.
func EncodeSegment(id string) string {
	switch id {
	case ".":
		return "~002E"
	case "..":
		return "~002E~002E"
	}
	b := make([]byte, 0, len(id)+8)
	for u := range codeUnits(id) {
		b = appendUnit(b, u)
	}
	return string(b)
}

// decodeSegment is the id whose folder has this name, as well as a name tells
// that EncodeSegment did not make.
func decodeSegment(name string) string {
	if !strings.Contains(name, "~") {
		return name
	}
	b := make([]byte, 0, len(name))
	high := rune(0) // a first half of a pair that waits for its second one
	put := func(r rune) {
		switch {
		case high != 0 && r >= 0xdc00 && r < 0xe000:
			b = utf8.AppendRune(b, 0x10000+(high-0xd800)<<10+(r-0xdc00))
			high = 0
			return
		case high != 0:
			b = append(b, 0xed, 0x80|byte(high>>6&0x3f), 0x80|byte(high&0x3f))
			high = 0
		}
		switch {
		case r >= 0xd800 && r < 0xdc00:
			high = r
		case r >= 0xdc00 && r < 0xe000:
			b = append(b, 0xed, 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
		case r >= 0:
			b = utf8.AppendRune(b, r)
		}
	}
	for i := 0; i < len(name); {
		if name[i] == '~' && i+5 <= len(name) {
			if u, err := strconv.ParseUint(name[i+1:i+5], 16, 16); err == nil {
				put(rune(u))
				i += 5
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(name[i:])
		put(r)
		i += n
	}
	put(-1)
	return string(b)
}

// appendUnit appends a code unit that may stand in a name, or its escape.
func appendUnit(dst []byte, u uint16) []byte {
	if u < 0x80 && (u >= 'a' && u <= 'z' || u >= 'A' && u <= 'Z' || u >= '0' && u <= '9' || u == '.' || u == '_' || u == '-') {
		return append(dst, byte(u))
	}
	const hex = "0123456789ABCDEF"
	return append(dst, '~', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}

// codeUnits yields the UTF-16 code units of a string, surrogates that stand
// alone included: they are the three bytes ED A0..BF 80..BF.
func codeUnits(s string) func(yield func(uint16) bool) {
	return func(yield func(uint16) bool) {
		for i := 0; i < len(s); {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 && i+2 < len(s) && s[i] == 0xed && s[i+1]&0xe0 == 0xa0 && s[i+2]&0xc0 == 0x80 {
				r, n = 0xd000|rune(s[i+1]&0x3f)<<6|rune(s[i+2]&0x3f), 3
			}
			i += n
			if r >= 0x10000 {
				r -= 0x10000
				if !yield(uint16(0xd800+r>>10)) || !yield(uint16(0xdc00+r&0x3ff)) {
					return
				}
				continue
			}
			if !yield(uint16(r)) {
				return
			}
		}
	}
}

// pathFor is where a session with this header belongs.
func (s *Store) pathFor(h outcrop.Header, enc wire.Encoding) (string, error) {
	seg := EncodeSegment(h.ID)
	if seg == "" {
		return "", &outcrop.Error{Op: "create", Code: "HEADER_ID", Seq: -1, Offset: -1, Err: outcrop.ErrRefused, Msg: "the session id is empty"}
	}
	project := noCwd
	if h.Cwd != nil {
		if project = ProjectKey(*h.Cwd); project == "" {
			return "", &outcrop.Error{Op: "create", Session: h.ID, Code: "HEADER_CWD", Seq: -1, Offset: -1, Err: outcrop.ErrRefused, Msg: "the working directory is empty"}
		}
	}
	return filepath.Join(s.root, project, seg, logName(enc)), nil
}

func logName(enc wire.Encoding) string { return logStem + "." + string(enc) }

func lockIn(dir string) string { return filepath.Join(dir, logStem+".lock") }

// IsLogPath reports whether a text names a log file rather than a session: it
// has the ending of one and is a path, or there is such a file.
func IsLogPath(target string) bool {
	if _, ok := wire.EncodingOf(target); !ok {
		return false
	}
	if strings.ContainsRune(target, '/') || strings.ContainsRune(target, filepath.Separator) {
		return true
	}
	_, err := os.Stat(target)
	return err == nil
}

// folder is what lies in a session's folder.
type folder struct {
	dir    string
	format int           // of the log: the highest that can be read
	enc    wire.Encoding // of the log, "" when there is none that can be read
	locked bool          // there is a lock file
	newer  string        // the file of the newest format that is not known, "" without one
	state  folderState
	reason string // why the log cannot be continued; "" when it can
}

type folderState uint8

const (
	folderOK folderState = iota
	folderDamaged
	folderLater // of a later format of dsh: it is read
	folderNewer // and of one that is not known
)

func (f *folder) path() string { return filepath.Join(f.dir, FileName(f.format, f.enc)) }

// problem is the error for a folder whose log is not opened.
func (f *folder) problem(op, id string) error {
	e := &outcrop.Error{Op: op, Session: id, Path: f.dir, Seq: -1, Offset: -1, Err: outcrop.ErrDamaged, Msg: f.reason}
	switch f.state {
	case folderNewer:
		e.Err, e.Code, e.Hint = errors.Join(outcrop.ErrReadOnly, outcrop.ErrUnsupported), "NEWER_GENERATION", "use the program that wrote it, or a newer version of this one"
		if f.enc != "" {
			e.Hint += "; " + forkIt
		}
	case folderLater:
		return later(op, id, f.path(), int64(f.format))
	}
	return e
}

// later is the error for a log of a later format that is to be written.
func later(op, id, path string, format int64) error {
	return &outcrop.Error{Op: op, Session: id, Path: path, Code: CodeLaterFormat, Seq: -1, Offset: -1, Err: outcrop.ErrReadOnly,
		Msg: fmt.Sprintf("the log is in format %d of dsh, which is read and never written", format), Hint: goOn}
}

// CodeLaterFormat is the code of the error for a log of a later format of dsh
// that is to be continued (outcrop.ErrReadOnly).
const CodeLaterFormat outcrop.Code = "LATER_FORMAT"

// LaterReason is what a listing says of a log in a later format of dsh, whatever
// its state.
func LaterReason(format int) string {
	return "format " + strconv.Itoa(format) + " of dsh, read only: run, chat and fork go on in a new session"
}

const goOn = "outcrop run --session, outcrop chat --session and outcrop fork go on in a new session"

// lookIn reads a session's folder. ok is false when no log lies in it.
func lookIn(disk faultfs.FS, dir string) (f folder, ok bool, err error) {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return folder{dir: dir}, false, err
	}
	return lookAt(disk, dir, entries)
}

func lookAt(disk faultfs.FS, dir string, entries []fs.DirEntry) (f folder, ok bool, err error) {
	f.dir = dir
	var log fs.DirEntry // of the highest format
	both := false
	for _, e := range entries {
		name := e.Name()
		n, isLog := formatOf(name)
		switch {
		case name == logStem+".lock":
			f.locked = true
		case !isLog:
		case n > formats.Newest:
			if m, _ := formatOf(f.newer); f.newer == "" || n > m {
				f.newer = name
			}
		case log == nil || n > f.format:
			log, f.format, both = e, n, false
		case n == f.format:
			both = true
		}
	}
	if log != nil {
		f.enc, _ = wire.EncodingOf(log.Name())
	}
	switch {
	case both:
		f.enc, f.state, f.reason = wire.Plain, folderDamaged, "the folder has a plain and a zstd log: one of them does not belong here"
	case log != nil && !regular(disk, dir, log):
		f.enc, f.state, f.reason = "", folderDamaged, log.Name()+" is not a regular file"
	case f.newer != "":
		n, _ := formatOf(f.newer)
		f.state, f.reason = folderNewer, fmt.Sprintf("the folder has %s, written by a newer dsh (format %d)", f.newer, n)
		if f.enc == "" {
			f.reason += ", and no log that this version can read"
		} else {
			f.reason += fmt.Sprintf("; what is shown is %s, which is older", filepath.Base(f.path()))
		}
	case f.format > 0:
		f.state, f.reason = folderLater, LaterReason(f.format)
	}
	return f, f.enc != "" || f.reason != "", nil
}

// regular reports whether an entry is a file that can be opened without
// waiting for somebody; a link counts by what it points to.
func regular(disk faultfs.FS, dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink != 0 {
		fi, err := disk.Stat(filepath.Join(dir, e.Name()))
		return err == nil && fi.Mode().IsRegular()
	}
	return e.Type().IsRegular()
}

// FileName is the name that the log of a session format has in a session's
// folder: session.jsonl, session.vN.jsonl, or either with .zstd.
func FileName(format int, enc wire.Encoding) string {
	if format == 0 {
		return logName(enc)
	}
	return logStem + ".v" + strconv.Itoa(format) + "." + string(enc)
}

// FormatOf is the session format of a file in a session's folder, by its name;
// false when it is no log.
func FormatOf(path string) (int, bool) { return formatOf(filepath.Base(path)) }

// formatOf is 0 for session.jsonl and session.jsonl.zstd, and N for
// session.vN.jsonl and session.vN.jsonl.zstd.
func formatOf(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, logStem+".")
	if !ok {
		return 0, false
	}
	if rest == string(wire.Plain) || rest == string(wire.Zstd) {
		return 0, true
	}
	num, ending, _ := strings.Cut(rest, ".")
	num, ok = strings.CutPrefix(num, "v")
	if !ok || ending != string(wire.Plain) && ending != string(wire.Zstd) || len(num) == 0 || len(num) > 9 || num[0] == '0' {
		return 0, false
	}
	n := 0
	for _, c := range num {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// find looks for a session's folder under all projects: its id alone does not
// tell its working directory. An error may come with the folder that it is
// about.
func (s *Store) find(id string) (folder, error) {
	gone := &outcrop.Error{Op: "find", Session: id, Code: outcrop.CodeSessionNotFound, Seq: -1, Offset: -1, Err: outcrop.ErrNotFound,
		Msg: fmt.Sprintf("no session %q in %s", id, s.root), Hint: "outcrop ls lists them"}
	seg := EncodeSegment(id)
	if seg == "" {
		return folder{}, gone
	}
	projects, err := s.disk.ReadDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return folder{}, gone
	}
	if err != nil {
		return folder{}, pathProblem("find", s.root, err)
	}
	var found []folder
	for _, p := range projects {
		if !p.IsDir() {
			continue
		}
		f, ok, err := lookIn(s.disk, filepath.Join(s.root, p.Name(), seg))
		switch {
		case absent(err):
		case err != nil:
			return f, pathProblem("find", f.dir, err)
		case ok:
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return folder{}, gone
	case 1:
		return found[0], nil
	}
	return found[0], &outcrop.Error{Op: "find", Session: id, Path: found[0].dir, Code: "DUPLICATE_ID", Seq: -1, Offset: -1, Err: outcrop.ErrDamaged,
		Msg: "the session is also in " + found[1].dir, Hint: "move one of the two folders away, or name the log file itself"}
}

// absent reports that a path does not lead to anything: no such entry, one that
// cannot exist, or a file where a folder would have to be.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || isNameError(err)
}

// placed checks that a header belongs where its log lies.
func (s *Store) placed(h outcrop.Header, id string, f folder) error {
	misplaced := func(code outcrop.Code, msg string) error {
		return &outcrop.Error{Op: "open", Session: id, Path: f.path(), Code: code, Line: 1, Seq: -1, Offset: -1, Err: outcrop.ErrDamaged, Msg: msg,
			Hint: "move the folder to where its header belongs, or name the log file itself"}
	}
	if EncodeSegment(h.ID) != filepath.Base(f.dir) {
		return misplaced("IDENTITY_MISMATCH", fmt.Sprintf("the header names session %q", h.ID))
	}
	if h.Format != int64(f.format) {
		return &outcrop.Error{Op: "open", Session: id, Path: f.path(), Code: "FORMAT_MISMATCH", Line: 1, Seq: -1, Offset: -1, Err: outcrop.ErrDamaged,
			Msg:  fmt.Sprintf("the header says session format %d, the name of the file format %d", h.Format, f.format),
			Hint: "name the log file itself to look at it"}
	}
	want, err := s.pathFor(h, f.enc)
	if err == nil && filepath.Dir(want) == f.dir {
		return nil
	}
	if err == nil {
		// Another name of the same file, by a link, is the same place.
		want = filepath.Join(filepath.Dir(want), filepath.Base(f.path()))
		a, errA := s.disk.Stat(want)
		b, errB := s.disk.Stat(f.path())
		if errA == nil && errB == nil && faultfs.SameFile(a, b) {
			return nil
		}
	}
	return misplaced("MISPLACED_LOG", "the header belongs to "+filepath.Dir(want))
}

// encoding is the encoding that a new session gets, or why it cannot have one.
func (s *Store) encoding() (wire.Encoding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enc == "" {
		enc, example, err := s.rootEncoding()
		if err != nil {
			return "", err
		}
		if s.opt.Plain && enc == wire.Zstd {
			return "", &outcrop.Error{Op: "create", Path: s.root, Seq: -1, Offset: -1, Code: "ROOT_ENCODING", Err: store.ErrEncoding,
				Msg:  "the root holds zstd logs (" + example + "), and a root has one encoding",
				Hint: "use jsonl:" + s.root + ", or another folder for plain logs"}
		}
		if enc == "" {
			if s.opt.Plain {
				return wire.Plain, nil
			}
			return wire.Zstd, nil
		}
		s.enc = enc
	}
	return s.enc, nil
}

// agrees answers whether a log of this encoding can join what the root holds
// now. A root that was empty when the encoding was chosen may have got its first
// log since.
func (s *Store) agrees(chosen wire.Encoding) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enc != "" {
		return nil
	}
	enc, example, err := s.rootEncoding()
	switch {
	case err != nil:
		return err
	case enc != "" && enc != chosen:
		return &outcrop.Error{Op: "create", Path: s.root, Seq: -1, Offset: -1, Code: "ROOT_ENCODING", Err: store.ErrEncoding,
			Msg: "another program put its first log there meanwhile (" + example + "), and a root has one encoding", Hint: "begin again with jsonl:" + s.root}
	}
	s.enc = chosen
	return nil
}

// rootEncoding is the encoding of the first log that is found.
func (s *Store) rootEncoding() (enc wire.Encoding, example string, err error) {
	projects, err := s.disk.ReadDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", pathProblem("open", s.root, err)
	}
	for _, p := range projects {
		if !p.IsDir() {
			continue
		}
		sessions, err := s.disk.ReadDir(filepath.Join(s.root, p.Name()))
		if err != nil {
			continue // the listing names it
		}
		for _, e := range sessions {
			if !e.IsDir() {
				continue
			}
			if f, ok, err := lookIn(s.disk, filepath.Join(s.root, p.Name(), e.Name())); ok && err == nil && f.enc != "" {
				return f.enc, f.path(), nil
			}
		}
	}
	return "", "", nil
}

// pathProblem is an error of the operating system about one path.
func pathProblem(op, path string, err error) error {
	var pe *fs.PathError
	msg := err.Error()
	if errors.As(err, &pe) {
		msg = pe.Err.Error()
	}
	e := &outcrop.Error{Op: op, Path: path, Seq: -1, Offset: -1, Err: err, Msg: msg}
	switch {
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "check who owns it and its mode"
	case isNoSpace(err):
		e.Hint = "make room on the disk"
	}
	return e
}
