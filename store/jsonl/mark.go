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

// Mark is store.Marked's: where the next record begins, its seq, and a digest
// of the bytes before it. Behind a border that was not whole yet there is none.
func (f *following) Mark() string {
	if f.base != f.next {
		return ""
	}
	d, ok := f.digestBefore(f.from)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %d %d %s", f.enc, f.from, f.base, d)
}

// Resume is store.Marked's.
func (f *following) Resume(mark string) bool {
	var enc, digest string
	var from, base int64
	if n, err := fmt.Sscanf(mark, "%s %d %d %s", &enc, &from, &base, &digest); n != 4 || err != nil {
		return false
	}
	if enc != string(f.enc) || from < f.in.r.HeaderEnd() || from > f.in.info.Size() || base < 0 {
		return false
	}
	if d, ok := f.digestBefore(from); !ok || d != digest {
		return false
	}
	f.from = from
	f.base, f.next = outcrop.Seq(base), outcrop.Seq(base)
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
