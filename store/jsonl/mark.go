package jsonl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

var _ store.Marked = (*following)(nil)

// markBytes is how much of the file before a mark must be what it was.
const markBytes = 512

// Mark is store.Marked's: which file it is, where the next record begins, its
// seq, and a digest of the bytes before it. A file that took the name of the one
// that was read may differ anywhere: it is another. Behind a border that was not whole yet there is none.
// The seq is the one in the view when the log is of a later format.
func (f *following) Mark() string {
	base := f.base
	if f.in.Header().Format >= 2 {
		if base = f.next; f.last == nil {
			return ""
		}
	}
	if base != f.next {
		return ""
	}
	d, ok := f.digestBefore(f.from)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %d %d %d %s", f.enc, fileID(f.in.info), f.from, base, d)
}

// Resume is store.Marked's.
func (f *following) Resume(mark string) bool {
	var enc, digest string
	var file uint64
	var from, base int64
	if n, err := fmt.Sscanf(mark, "%s %d %d %d %s", &enc, &file, &from, &base, &digest); n != 5 || err != nil {
		return false
	}
	if file != fileID(f.in.info) || enc != string(f.enc) || from < f.in.r.HeaderEnd() || from > f.in.info.Size() || base < 0 {
		return false
	}
	if d, ok := f.digestBefore(from); !ok || d != digest {
		return false
	}
	if f.next = outcrop.Seq(base); f.in.Header().Format >= 2 {
		return true // what later events become depends on all of them: it is read again, and passed over
	}
	f.from, f.base = from, outcrop.Seq(base)
	return true
}

func (f *following) digestBefore(at int64) (string, bool) {
	b := make([]byte, min(at, markBytes))
	if _, err := io.ReadFull(io.NewSectionReader(f.in.f, at-int64(len(b)), int64(len(b))), b); err != nil {
		return "", false
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), true
}
