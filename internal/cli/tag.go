package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newTagCommand() *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use:   "tag TARGET [TAG...]",
		Short: "Put tags on a session, or take them off",
		Long: `Puts tags on a session; outcrop ls --tag TAG finds it by them. Without TAG the
tags are listed. A tag is an event of the log: it goes along when the session is
copied or forked.`,
		Args: some("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				if remove {
					return exit.Usagef("--remove needs TAG: the tag that is taken off")
				}
				return a.onSession(c.Context(), args[0], true, func(_ *desk.Target, s *outcrop.Session) error { return a.tellTags(s) })
			}
			for _, tag := range args[1:] {
				if msg := badTag(tag); msg != "" {
					return exit.Usagef("%s %s", term.Quote(tag), msg)
				}
			}
			return a.setTags(c.Context(), args[0], args[1:], !remove)
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "take the tags off")
	return c
}

func (a *app) newStarCommand() *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use:   "star TARGET...",
		Short: "Mark sessions with a star",
		Long: `Marks sessions with a star: outcrop ls --starred lists them, and retention
leaves them alone. The star is the tag outcrop:star.`,
		Args: some("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			var errs []error
			for _, name := range args {
				errs = append(errs, a.setTags(c.Context(), name, []string{collection.Star}, !remove))
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "take the star away")
	return c
}

// longestTag is in bytes.
const longestTag = 100

func badTag(tag string) string {
	switch {
	case tag == "":
		return "is empty: a tag has at least one character"
	case len(tag) > longestTag:
		return "is too long for a tag"
	case strings.HasPrefix(tag, "outcrop:"):
		return "is a name of the program's own: use outcrop star for the star"
	case !utf8.ValidString(tag) || strings.ContainsFunc(tag, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "has a space or a character that cannot be seen: write a-b for a b"
	}
	return ""
}

// setTags appends what changes something, and opens the session only then.
func (a *app) setTags(ctx context.Context, name string, tags []string, set bool) error {
	same := false
	err := a.onSession(ctx, name, true, func(_ *desk.Target, s *outcrop.Session) error {
		if same = len(changes(s, tags, set)) == 0; same {
			return a.tellTags(s)
		}
		return nil
	})
	if err != nil || same {
		return err
	}
	return a.onSession(ctx, name, false, func(_ *desk.Target, s *outcrop.Session) error {
		for _, tag := range changes(s, tags, set) {
			if _, err := s.Append(outcrop.OutcropTag{Tag: tag, Set: set}); err != nil {
				return err
			}
		}
		return a.tellTags(s)
	})
}

// changes are the tags that the session does not have, or no longer should.
func changes(s *outcrop.Session, tags []string, set bool) []string {
	had := collection.Tags(s.Log())
	var out []string
	for _, tag := range tags {
		if slices.Contains(had, tag) != set && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

func (a *app) tellTags(s *outcrop.Session) error {
	all := collection.Tags(s.Log())
	tags := plainTags(all)
	starred := len(all) > len(tags)
	if a.Flags.JSON {
		return a.Line(answer.New().Text("session", s.ID()).Bool("starred", starred).
			Raw("tags", answer.List(len(tags), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, tags[i]) })).End())
	}
	line := term.Line(s.ID())
	if starred {
		line += " *"
	}
	for _, t := range tags {
		line += " #" + term.Line(t)
	}
	a.Text(line + "\n")
	return nil
}
