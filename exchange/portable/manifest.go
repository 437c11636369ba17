// Package portable puts sessions into one zip file that another machine takes
// back: logs, attachments, and a manifest with a digest of everything.
//
// # Layout
//
//	sessions/1/session.jsonl.zstd     a log as its store has it (.jsonl: the text)
//	sessions/2/session.jsonl          of a session that comes from one before it
//	attachments/HEX                   an attachment; HEX is the SHA-256 of its bytes
//	manifest.json                     last
//
// manifest.json is one JSON object:
//
//	format       "outcrop-portable"
//	version      1; a reader refuses a higher one
//	masked       places that were masked, in all logs together; absent: none
//	sessions     [{id, parent?, path, bytes, sha256, events, digest, maskedFrom?}], parents first
//	attachments  [{id, path, bytes}], by id
//	missing      ids of attachments that logs name and the store did not have
//
// sha256 is of the bytes of the member, digest is "sha256:" and the digest of all
// events (package store), both in hexadecimal. Paths are those above and nothing
// else. Members have no times, so the same sessions give the same bytes.
//
// # Masked packages
//
// A package is masked unless Options.Raw. When nothing in it looks like a secret
// it is the original, to the byte. When something does, its logs are no longer
// what their sessions were: each gets the id ID-masked and the header member
// maskedFrom, so that it is never taken for the original or gone on with as such.
// Attachments are not masked.
//
// # What a reader trusts
//
// Nothing. Names are compared with the manifest and never used as paths. Every
// member is named in the manifest, has the size that it says and the digest that
// it says; sizes have a limit that depends on the size of the file. Verify checks
// all of it before anything is stored.
package portable

import (
	"fmt"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store/blob"
)

const (
	formatName   = "outcrop-portable"
	version      = 1
	manifestPath = "manifest.json"
)

// Limits of what is read.
const (
	maxManifest = 64 << 20
	maxMembers  = 1 << 20
	// A file may unpack to so many times its size, and something on top.
	maxRatio = 300
	extra    = 64 << 20
)

type manifest struct {
	Format      string       `json:"format"`
	Version     int          `json:"version"`
	Masked      int          `json:"masked,omitzero"`
	Sessions    []Session    `json:"sessions"`
	Attachments []attachment `json:"attachments"`
	Missing     []string     `json:"missing"`
}

// Session is a session of a package, as its manifest says.
type Session struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitzero"`
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Events int64  `json:"events"`
	Digest string `json:"digest"` // of all events
	// MaskedFrom is the id of the session that this is a masked copy of.
	MaskedFrom string `json:"maskedFrom,omitzero"`
}

type attachment struct {
	ID    string `json:"id"`
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

func attachmentPath(id string) string { return "attachments/" + id[len("sha256:"):] }

func sessionPath(n int, ending string) string {
	return "sessions/" + strconv.Itoa(n) + "/session." + ending
}

// parseManifest reads a manifest and judges everything in it that can be judged
// without the members.
func parseManifest(b []byte) (*manifest, error) {
	m := &manifest{}
	if err := jsonwire.Strict(b); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if !jsonwire.TextIs(jsonwire.Get(b, "format"), formatName) {
		return nil, fmt.Errorf("it is of another format than %s", formatName)
	}
	if v, ok := jsonwire.Int(jsonwire.Get(b, "version")); !ok || v < 1 {
		return nil, fmt.Errorf("its version is no number from 1 on")
	} else if v > version {
		return nil, &outcrop.Error{Op: "import", Seq: -1, Offset: -1, Err: outcrop.ErrUnsupported,
			Msg: fmt.Sprintf("the package has version %d, and this program reads version %d", v, version), Hint: "upgrade outcrop"}
	}
	if err := jsonwire.Unmarshal(b, m); err != nil {
		return nil, err
	}
	ids, paths := map[string]bool{}, map[string]bool{manifestPath: true}
	for i := range m.Sessions {
		s := &m.Sessions[i]
		plain, zstd := sessionPath(i+1, "jsonl"), sessionPath(i+1, "jsonl.zstd")
		switch {
		case s.ID == "" || ids[s.ID]:
			return nil, fmt.Errorf("session %d has no id of its own", i+1)
		case s.Path != plain && s.Path != zstd:
			return nil, fmt.Errorf("the log of session %d has the path %q, which must be %s or %s", i+1, s.Path, plain, zstd)
		case s.Bytes < 0 || s.Events < 0 || len(s.SHA256) != 64:
			return nil, fmt.Errorf("session %d has no size, no number of events or no digest", i+1)
		}
		ids[s.ID], paths[s.Path] = true, true
	}
	for i := range m.Attachments {
		a := &m.Attachments[i]
		if err := blob.Valid(a.ID); err != nil {
			return nil, fmt.Errorf("attachment %d has no id: %w", i+1, err)
		}
		if a.Path != attachmentPath(a.ID) || a.Bytes < 0 || paths[a.Path] {
			return nil, fmt.Errorf("the attachment %s has another path than %s, or stands there twice", a.ID, attachmentPath(a.ID))
		}
		paths[a.Path] = true
	}
	return m, nil
}
