// Package collection takes care of many sessions: a catalogue that makes
// listing them fast, a trash and an archive, the room that they take, and rules
// about how long they are kept.
//
// # The state folder
//
//	STATE/
//	  catalogue/HASH         what is known of the sessions of one store
//	  trash/NAME/            sessions that were removed
//	  archive/NAME/          sessions that were put away
//	  output/SESSION/        whole outputs of tools, which results in logs name
//	  search.db              the text index
//
// Nothing of it lies in a folder of sessions: dsh refuses a whole root for one
// stray file.
//
// # Catalogue
//
// It is never the truth. It knows of each session what a listing said and, once
// the whole log was read, title, turns, tags and attachments, all under a stamp
// that changes with the stored log. What has another stamp is looked at again;
// a log that grew is read on from where its reading ended. A catalogue that is
// missing, damaged or of another version is made anew. Losing the last change
// of it costs some reading, so nothing of it is synced. It is written as a whole,
// and not by a listing that found nothing new; of a log that somebody writes the
// last events are no news.
//
// # Shelves
//
// Trash and archive are shelves: folders of entries,
//
//	NAME/entry.json    what lies in it, and the step that a move has reached
//	NAME/session/      the session as its store handed it over
//	NAME/objects/      copies of the attachments that its log names
//	NAME/spill/        the folder output/SESSION
//
// and a lock for those who move. Where a move was interrupted, the next one on
// the shelf finishes it or takes it back first: a session is in its store or on
// the shelf, whole. Of the attachments the store loses those that no other
// session names; one that somebody attaches again at that very moment may be
// lost, and is then a missing attachment in the log that names it.
package collection

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// Star is the tag of sessions that a person marked with a star.
const Star = "outcrop:star"

// Options of a collection. The zero value but for State is right.
type Options struct {
	// State is the state folder; "" keeps no catalogue and has no shelves.
	State string
	// Disk is the file system of the state folder; nil the real one.
	Disk faultfs.FS
	// Now gives Unix milliseconds.
	Now func() int64
}

// Collection is the sessions of one store. One goroutine uses it.
type Collection struct {
	st  store.Store
	opt Options

	loaded bool
	known  map[string]*record // by place
	order  []*record          // as the store lists them
	dirty  bool               // they are not what the file has
}

// Of is the collection of a store.
func Of(st store.Store, o Options) *Collection {
	if o.Disk == nil {
		o.Disk = faultfs.Real
	}
	if o.Now == nil {
		o.Now = func() int64 { return 0 }
	}
	return &Collection{st: st, opt: o}
}

// Store is the store.
func (c *Collection) Store() store.Store { return c.st }

// Trash is the shelf of removed sessions, of all stores.
func (c *Collection) Trash() *Shelf { return c.shelf("trash") }

// Archive is the shelf of sessions that were put away, of all stores.
func (c *Collection) Archive() *Shelf { return c.shelf("archive") }

func (c *Collection) shelf(name string) *Shelf {
	return &Shelf{dir: filepath.Join(c.opt.State, name), name: name, disk: c.opt.Disk, now: c.opt.Now, spill: c.SpillFolder}
}

// SpillFolder is where the whole outputs of a session's tools are.
func (c *Collection) SpillFolder(id string) string {
	return filepath.Join(c.opt.State, "output", jsonl.EncodeSegment(id))
}

// IndexFile is the text index.
func (c *Collection) IndexFile() string { return filepath.Join(c.opt.State, "search.db") }

// CatalogueFile is the catalogue of the store.
func (c *Collection) CatalogueFile() string {
	sum := sha256.Sum256([]byte(c.st.Address()))
	return filepath.Join(c.opt.State, "catalogue", hex.EncodeToString(sum[:8]))
}
