package cli

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// longestTitle is in characters.
const longestTitle = 200

func (a *app) newTitleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "title TARGET [TEXT...]",
		Short: "Give a session a title, or show the one that it has",
		Long: `Gives the session the title TEXT. Without TEXT the title is shown: the one that
was given last, else the first thing that a person typed. What the program put
in is never a title.`,
		Args: some("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.onSession(c.Context(), args[0], true, a.showTitle)
			}
			title := strings.Join(strings.Fields(strings.Join(args[1:], " ")), " ")
			switch n := utf8.RuneCountInString(title); {
			case title == "":
				return exit.Usagef("the title is empty: usage: %s", c.UseLine())
			case !utf8.ValidString(title):
				return exit.Usagef("the title is no UTF-8")
			case n > longestTitle:
				return exit.Usagef("the title has %d characters, and may have %d", n, longestTitle)
			}
			return a.setTitle(c.Context(), args[0], title)
		},
	}
}

// setTitle opens the session only when there is something to change: opening
// alone may add to a log.
func (a *app) setTitle(ctx context.Context, name, title string) error {
	same := false
	err := a.onSession(ctx, name, true, func(_ *desk.Target, s *outcrop.Session) error {
		had := titleOf(s)
		if same = had.Titled() && had.Title == title; same {
			return a.tellTitle(s, title, true)
		}
		return nil
	})
	if err != nil || same {
		return err
	}
	return a.onSession(ctx, name, false, func(_ *desk.Target, s *outcrop.Session) error {
		if _, err := s.Append(outcrop.SessionTitle{Title: title, Source: "user"}); err != nil {
			return err
		}
		return a.tellTitle(s, title, true)
	})
}

func titleOf(s *outcrop.Session) *store.Summary {
	sum := &store.Summary{}
	for r := range s.Log().Records(0) {
		sum.Add(r)
	}
	return sum
}

func (a *app) showTitle(_ *desk.Target, s *outcrop.Session) error {
	sum := titleOf(s)
	return a.tellTitle(s, sum.Title, sum.Titled())
}

func (a *app) tellTitle(s *outcrop.Session, title string, given bool) error {
	if a.Flags.JSON {
		return a.Line(answer.New().Text("session", s.ID()).TextOrNull("title", title).Bool("given", given).End())
	}
	if title == "" {
		a.Note("%s has no title", term.Line(s.ID()))
		return nil
	}
	a.Text(term.OneLine(title) + "\n")
	return nil
}
