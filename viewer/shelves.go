package viewer

import (
	"context"
	"errors"
	"net/http"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

// Shelves hold sessions that were put away: "archive" and "trash".
type Shelves interface {
	// Put moves a session, and with tree all that come from it, to a shelf. It
	// returns the ids of those that it moved. Without tree a session from which
	// others come is refused.
	Put(ctx context.Context, id, shelf string, tree bool) ([]string, error)
	// List is what lies on a shelf and came from the store, the last one first.
	List(ctx context.Context, shelf string) ([]Shelved, error)
	// Restore moves a session back to the store. The error is
	// outcrop.ErrNotFound when it does not lie there.
	Restore(ctx context.Context, id, shelf string) error
}

// Shelved is a session on a shelf. Times are Unix milliseconds.
type Shelved struct {
	ID, Title, Cwd string // title and folder "" when there is none
	UpdatedAt, At  int64  // At: when it was put there
	Bytes          int64  // of the log
	Events         int64
	Turns          int
	Starred        bool
	// Unfinished: a move was interrupted; the next one finishes it or takes it
	// back.
	Unfinished bool
}

var noShelves = &problem{status: http.StatusForbidden, code: "READ_ONLY", msg: "this server moves no sessions"}

// shelf is the name of the shelf in a path.
func (v *Viewer) shelf(a *answerer) (string, error) {
	if v.o.Shelves == nil {
		return "", noShelves
	}
	switch name := a.r.PathValue("shelf"); name {
	case "archive", "trash":
		return name, nil
	default:
		return "", notFound("NOT_FOUND", "there is no shelf %.40q: give archive or trash", name)
	}
}

// shelved lists what lies on a shelf.
func (v *Viewer) shelved(a *answerer) error {
	shelf, err := v.shelf(a)
	if err != nil {
		return err
	}
	items, err := v.o.Shelves.List(a.r.Context(), shelf)
	if err != nil {
		return err
	}
	type row struct {
		ID         facts.Text  `json:"id"`
		Title      *facts.Text `json:"title"`
		Cwd        *facts.Text `json:"cwd"`
		UpdatedAt  int64       `json:"updatedAt"`
		At         int64       `json:"at"`
		Bytes      int64       `json:"bytes"`
		Events     int64       `json:"events"`
		Turns      int         `json:"turns"`
		Starred    bool        `json:"starred"`
		Unfinished bool        `json:"unfinished"`
	}
	veil := a.veil()
	rows := []row{}
	for _, i := range items {
		rows = append(rows, row{ID: facts.Text(i.ID), Title: veil.LineOrNil(i.Title), Cwd: veil.LineOrNil(i.Cwd), UpdatedAt: i.UpdatedAt, At: i.At,
			Bytes: i.Bytes, Events: i.Events, Turns: i.Turns, Starred: i.Starred, Unfinished: i.Unfinished})
	}
	return a.ok(struct {
		facts.Schema
		Shelf    string `json:"shelf"`
		Sessions []row  `json:"sessions"`
		Masked   int    `json:"masked"`
	}{facts.V1, shelf, rows, veil.Masked})
}

// restore moves a session back from a shelf.
func (v *Viewer) restore(a *answerer) error {
	shelf, err := v.shelf(a)
	if err != nil {
		return err
	}
	var in struct {
		Session string `json:"session"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	v.shelving.Lock()
	defer v.shelving.Unlock()
	err = v.o.Shelves.Restore(context.WithoutCancel(a.r.Context()), in.Session, shelf)
	v.list.Forget()
	switch {
	case errors.Is(err, outcrop.ErrNotFound):
		return notFound("SESSION_NOT_FOUND", "no session with this id lies in the %s", shelf)
	case err != nil:
		return mendable(err)
	}
	return a.ok(struct {
		facts.Schema
		Session facts.Text `json:"session"`
	}{facts.V1, facts.Text(in.Session)})
}

// shelve moves a session out of the store.
func (v *Viewer) shelve(shelf string) handler {
	return func(a *answerer) error {
		var in struct {
			Tree bool `json:"tree"`
		}
		if err := a.in(&in); err != nil {
			return err
		}
		id := a.r.PathValue("session")
		ctx := context.WithoutCancel(a.r.Context())
		v.list.Forget()
		switch _, there := v.list.Info(ctx, id); {
		case v.o.Shelves == nil:
			return noShelves
		case id == "" || !there:
			return notFound("SESSION_NOT_FOUND", "no session has this id")
		case v.runningOf(id) != nil:
			return &problem{status: http.StatusConflict, code: "BUSY", msg: "the session is continued here", hint: "release it first"}
		}
		v.shelving.Lock()
		defer v.shelving.Unlock()
		moved, err := v.o.Shelves.Put(ctx, id, shelf, in.Tree)
		if err != nil {
			return mendable(err)
		}
		v.list.Forget()
		out := struct {
			facts.Schema
			To       string       `json:"to"`
			Sessions []facts.Text `json:"sessions"`
		}{Schema: facts.V1, To: shelf, Sessions: []facts.Text{}}
		for _, id := range moved {
			out.Sessions = append(out.Sessions, facts.Text(id))
			v.streams.Nudge(id)
		}
		return a.ok(out)
	}
}
