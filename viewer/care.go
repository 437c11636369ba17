package viewer

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

func (v *Viewer) fork(a *answerer, id string) error {
	var in struct {
		At *outcrop.Seq `json:"at"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	at := outcrop.Seq(-1)
	if in.At != nil {
		if at = *in.At; at < 0 {
			return badRequest("at: give a seq from 0 on")
		}
	}
	if r := v.runningOf(id); r != nil {
		// The store has what is durable.
		if err := r.Agent().Maintain(a.r.Context(), func(*outcrop.Session) error { return nil }); err != nil && in.At == nil {
			return err
		}
	}
	var newer *outcrop.Error
	errors.As(store.Overtaken(a.r.Context(), v.o.Store, id), &newer)
	child := v.o.NewID()
	cut, err := store.ForkAt(a.r.Context(), v.o.Store, id, at, store.Child{ID: child, CreatedAt: v.o.Now()})
	if err != nil {
		return err
	}
	v.list.Forget()
	out := struct {
		facts.Schema
		Session  string      `json:"session"`
		At       outcrop.Seq `json:"at"`
		OpenTurn *int        `json:"openTurn"`
		Closed   bool        `json:"closed"`
		Newer    *facts.Text `json:"newer"`
	}{Schema: facts.V1, Session: child, At: cut.Boundary, Closed: cut.Closed}
	if cut.Turn > 0 {
		out.OpenTurn = &cut.Turn
	}
	if newer != nil {
		out.Newer = textOf(a.veil(), newer.Path)
	}
	return a.ok(out)
}

// longestTitle is in characters, longestTag in bytes.
const (
	longestTitle = 200
	longestTag   = 100
)

func (v *Viewer) title(a *answerer, id string) error {
	var in struct {
		Title string `json:"title"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	title := strings.Join(strings.Fields(in.Title), " ")
	if n := utf8.RuneCountInString(title); n == 0 || n > longestTitle {
		return badRequest("title: give a text of 1 to %d characters", longestTitle)
	}
	err := v.edit(a.r.Context(), id, func(s *outcrop.Session) error {
		_, err := s.Append(outcrop.SessionTitle{Title: title, Source: "user"})
		return err
	})
	if err != nil {
		return err
	}
	return a.ok(struct {
		facts.Schema
		Title facts.Text `json:"title"`
	}{facts.V1, facts.Text(title)})
}

func (v *Viewer) tag(a *answerer, id string) error {
	var in struct {
		Tag string `json:"tag"`
		Set bool   `json:"set"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	if in.Tag == "" || len(in.Tag) > longestTag || strings.HasPrefix(in.Tag, "outcrop:") || strings.ContainsFunc(in.Tag, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return badRequest("tag: give a word of at most %d bytes that does not begin with outcrop:", longestTag)
	}
	return v.setTag(a, id, in.Tag, in.Set)
}

func (v *Viewer) star(a *answerer, id string) error {
	var in struct {
		Starred bool `json:"starred"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	return v.setTag(a, id, collection.Star, in.Starred)
}

func (v *Viewer) setTag(a *answerer, id, tag string, set bool) error {
	changed := false
	err := v.edit(a.r.Context(), id, func(s *outcrop.Session) error {
		if slices.Contains(collection.Tags(s.Log()), tag) == set {
			return nil
		}
		changed = true
		_, err := s.Append(outcrop.OutcropTag{Tag: tag, Set: set})
		return err
	})
	if err != nil {
		return err
	}
	return a.ok(struct {
		facts.Schema
		Changed bool `json:"changed"`
	}{facts.V1, changed})
}

// mendable makes an answer of an error that the caller's part of the program
// says to a person, such as that there is no model or no key.
func mendable(err error) error {
	var known *problem
	if p := problemOf(err); p.code == "INTERNAL" && !errors.As(err, &known) {
		return &problem{status: http.StatusConflict, code: "REFUSED", msg: err.Error()}
	}
	return err
}
